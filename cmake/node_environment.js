// --pre-js of the command lines for node.
// The module's bytes come from beside this file: Emscripten 3.1.6 would fetch() a path, which node
// refuses. getenv() sees the environment of the process.
Module["wasmBinary"] = require("fs").readFileSync(__filename.replace(/\.c?js$/, ".wasm"));
Module["preRun"] = [].concat(Module["preRun"] || [], () => {
  if (typeof ENV !== "undefined") Object.assign(ENV, process.env);
});
