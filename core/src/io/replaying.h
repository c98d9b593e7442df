// What opening a trace changes in a scenario document; for the command and the page alike.
#pragma once

#include <string>
#include <string_view>

namespace servecast {

// The document that replays a trace, which may have lengths alone (`has_arrivals` false).
//
// A document with arrivals or lengths of a trace is one already: it stays as it is, so that what it
// says of the replay (rate_scale, keep, repeat, scale), lengths of its own and a prefix hold. Any
// other gets the trace's arrivals, if it has them, and lengths; sessions and prefix go, as rows say
// how long whole prompts are. Text that is no such document stays, for the parser to refuse.
std::string ReplayingDocument(std::string_view text, bool has_arrivals);

}  // namespace servecast
