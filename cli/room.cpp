// See room.h.
#include "room.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <string_view>

namespace servecast {
namespace {

// The first number of a file; nullopt: there is none ("max").
std::optional<std::int64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// Behind a word in a file of words and numbers.
std::optional<std::int64_t> NumberAfter(const std::string& path, std::string_view word) {
  std::ifstream file(path);
  for (std::string found; file >> found;) {
    std::int64_t number = 0;
    if (found == word && file >> number) return number;
    file.clear();
  }
  return std::nullopt;
}

std::optional<std::int64_t> OfAddressSpace() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const auto pages = NumberIn("/proc/self/statm");
  if (!pages) return std::nullopt;
  return static_cast<std::int64_t>(limit.rlim_cur) - *pages * sysconf(_SC_PAGESIZE);
}

// Of a group (version 2) and of those around it; files that were read leave the memory again.
std::optional<std::int64_t> OfControlGroups() {
  std::ifstream file("/proc/self/cgroup");
  std::string path;
  for (std::string line; std::getline(file, line);) {
    if (line.substr(0, 3) == "0::") path = line.substr(3);
  }
  std::optional<std::int64_t> least;
  for (;;) {
    const std::string folder = "/sys/fs/cgroup" + (path == "/" ? "" : path);
    const auto most = NumberIn(folder + "/memory.max"), used = NumberIn(folder + "/memory.current");
    if (most && used) {
      const std::int64_t files = NumberAfter(folder + "/memory.stat", "inactive_file").value_or(0);
      const std::int64_t room = *most - *used + files;
      if (!least || room < *least) least = room;
    }
    if (path.empty() || path == "/") return least;
    path.erase(path.find_last_of('/'));
  }
}

std::optional<std::int64_t> OfMachine() {
  const auto memory = NumberAfter("/proc/meminfo", "MemAvailable:"),
             swap = NumberAfter("/proc/meminfo", "SwapFree:");
  if (!memory) return std::nullopt;
  return (*memory + swap.value_or(0)) * 1024;
}

std::string InGb(std::int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes < 0 ? 0 : bytes) * 1e-9);
}

}  // namespace

std::optional<Room> MemoryRoom() {
  std::optional<Room> least;
  const auto take = [&least](std::optional<std::int64_t> bytes, const char* limit) {
    if (bytes && (!least || *bytes < least->bytes)) least = Room{*bytes, limit};
  };
  take(OfAddressSpace(), "the limit of its address space, ulimit -v");
  take(OfControlGroups(), "the limit of its control group");
  take(OfMachine(), "the machine's free memory");
#ifdef __EMSCRIPTEN__
  take(std::int64_t{4} << 30, "what WebAssembly can address");
#endif
  return least;
}

std::optional<Issue> BeyondRoom(const RunMemory& need, const std::optional<Room>& room) {
  if (!room || need.bytes <= room->bytes) return std::nullopt;
  return Issue{"/workload",
               fmt::format("found {} requests, whose run takes about {}; allowed what "
                           "fits {} ({})",
                           need.requests, InGb(need.bytes), InGb(room->bytes), room->limit)};
}

}  // namespace servecast
