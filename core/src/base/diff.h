// What changed between two texts, by lines.
#pragma once

#include <string>
#include <string_view>

namespace servecast {

// As `diff -u` prints it and `patch` takes it, with three lines around each change; "" where the
// texts are equal. O(lines + changed lines before times after); where these are more than a
// thousand each, all between the first and the last change is one.
std::string UnifiedDiff(std::string_view before, std::string_view after, std::string_view name);

}  // namespace servecast
