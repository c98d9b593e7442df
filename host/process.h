// How a command of ours ends, whatever happens: with what it wrote whole or gone, and a code that
// tells. Exit 0: done; 2: bad input, or what could not be written; 70: our bug.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace servecast {

inline constexpr int kBug = 70;

// The whole of a `main`: runs `command`, from the arguments behind the program's name to the exit
// code, with answers to signals and to memory that runs out, and says so when standard output could
// not be written.
int RunProgram(int argc, char** argv, const std::function<int(std::vector<std::string>)>& command);

// Becomes the program `name`, "servecast-PART" of `./dev build PART`, that lies beside this one.
// Returns an exit code, with the reason on stderr, only if it cannot: under node, always.
int BecomeProgramBeside(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace servecast
