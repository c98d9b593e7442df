// --pre-js of the command `servecast` for node, behind node_environment.js: what a process of the
// system has, and Emscripten does not give it.
{
  const system = require("fs");
  // A pipe that node opened does not wait: its end may ask to try again.
  const patient = (call) => (...words) => {
    for (;;) {
      try {
        return call(...words);
      } catch (error) {
        if (error.code === "EOF") return 0;
        if (error.code !== "EAGAIN") throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      }
    }
  };
  system.readSync = patient(system.readSync);
  system.writeSync = patient(system.writeSync);
}
// Emscripten takes all three for terminals.
Module["onRuntimeInitialized"] = () => {
  for (const each of [0, 1, 2]) FS.streams[each].tty = require("tty").isatty(each);
};
// A broken invariant, as host/process.h has it.
Module["onAbort"] = () => process.exit(70);
