// What memory this process may still take, and what a run that needs more is told.
#pragma once

#include <cstdint>
#include <optional>

#include "run_memory.h"
#include "servecast/result.h"

namespace servecast {

struct Room {
  std::int64_t bytes = 0;
  const char* limit = "";  // what sets it
};

// By the limit of its address space, its control groups, and the machine: the least of those that
// this system tells. nullopt: it tells none.
std::optional<Room> MemoryRoom();

// Why a run of that size cannot be.
std::optional<Issue> BeyondRoom(const RunMemory& need, const std::optional<Room>& room);

}  // namespace servecast
