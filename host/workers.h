// Many independent tasks on several cores, as if they were done one after the other.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace servecast {

// Cores that this process may use, one at least.
std::size_t Cores();

// Calls make(0) to make(count - 1), each of which returns one line with its line break, in up to
// `workers` processes of their own, and `take` with each line here, in order of the index: what it
// writes is the same whatever the timing. Processes, for the engine keeps what it has parsed of
// presets. False: a worker ended before its work did, and said why on stderr, or was killed.
bool InOrder(std::size_t count, std::size_t workers,
             const std::function<std::string(std::size_t)>& make,
             const std::function<void(const std::string&)>& take);

}  // namespace servecast
