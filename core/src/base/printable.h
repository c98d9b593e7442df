// Text that others wrote, safe to show on a terminal and on a page.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace servecast {

// Control characters (C0, DEL, C1), characters that turn the direction of text or cannot be seen,
// and bytes that are no UTF-8 as \u001b, \u202e, \U000e0001 or \xff; all else as it is.
std::string Printable(std::string_view text);

// The same, cut to at most so many bytes of whole characters, "..." included. O(most).
std::string ShownText(std::string_view text, std::size_t most = 60);

}  // namespace servecast
