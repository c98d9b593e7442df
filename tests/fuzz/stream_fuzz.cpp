// Fuzz target: a server's streamed answer: however it is cut its events are the same, and each is
// output, a count, an end or an error.
#include <string>
#include <vector>

#include "base/base.h"
#include "fuzz/inputs.h"
#include "observe/event_stream.h"

namespace servecast::fuzz {
namespace {

std::vector<std::string> EventsOf(std::string_view text, std::size_t piece) {
  EventStream stream;
  std::vector<std::string> events;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const bool good = stream.Add(text.substr(at, piece),
                                 [&events](std::string_view data) { events.emplace_back(data); });
    SERVECAST_CHECK(good, "a small stream is read on");
  }
  return events;
}

void ReadStream(std::string_view input) {
  const std::vector<std::string> events = EventsOf(input, 4096);
  SERVECAST_CHECK(EventsOf(input, 1) == events, "cut anywhere, the events are the same");
  for (const std::string& event : events) {
    const StreamChunk chunk = ReadChunk(event);
    const bool fine = !chunk.done || (!chunk.token && chunk.error.empty());
    SERVECAST_CHECK(fine, "an end is an end");
    SERVECAST_CHECK(chunk.error.size() <= 300, "an error is short");
  }
  SERVECAST_CHECK(RefusalOf(input).size() <= 200, "a refusal is short");
}

}  // namespace
}  // namespace servecast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  servecast::fuzz::ReadStream(servecast::fuzz::TextOf(data, size));
  return 0;
}
