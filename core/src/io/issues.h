// How many issues an input may cause, so that a hostile one is answered in bounded time and space.
#pragma once

#include <cstddef>

#include "servecast/result.h"

namespace servecast {

inline constexpr std::size_t kMostIssues = 100;

// The kind of the last issue of a list that is cut: it says how many more there are.
inline constexpr const char* kMoreIssues = "more";

// Stands for so many issues that were not made; for Bounded to count.
Issue Unlisted(std::size_t count);

// The first kMostIssues, then one that says how many more there are.
Issues Bounded(Issues issues);

}  // namespace servecast
