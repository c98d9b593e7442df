// --pre-js of the command lines for node: getenv() sees the environment of the process.
Module["preRun"] = [].concat(Module["preRun"] || [], () => {
  if (typeof ENV !== "undefined") Object.assign(ENV, process.env);
});
