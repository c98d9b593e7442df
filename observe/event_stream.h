// A streamed answer: server-sent events (the HTML standard, section 9.2.6) in pieces cut anywhere,
// and what an event of /v1/completions says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace servecast {

class EventStream {
 public:
  // Of one event; a server that sends more is not read on.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  // Calls `take` with the data of each event that ends in `bytes`, in order. False: an event is
  // larger than kMostBytes, and nothing is taken any more. O(bytes).
  bool Add(std::string_view bytes, const std::function<void(std::string_view)>& take);

 private:
  void EndLine(const std::function<void(std::string_view)>& take);

  std::string line_, data_;
  bool has_data_ = false, after_return_ = false, first_line_ = true, too_large_ = false;
};

// What an event of a completion says.
struct StreamChunk {
  bool done = false;                                         // "[DONE]"
  bool token = false;                                        // it has a choice: output came
  bool finished = false;                                     // the choice says why it ended
  std::optional<std::int64_t> prompt_tokens, output_tokens;  // of the server's count
  std::string error;  // the server's own, or what the event is instead of a completion's; else ""
};

// Whatever the text is: what is no completion is an error of the chunk.
StreamChunk ReadChunk(std::string_view data);

// Why a server refuses, of the body of its answer: the message of its JSON, else the text itself;
// safe to print, at most 200 bytes.
std::string RefusalOf(std::string_view body);

}  // namespace servecast
