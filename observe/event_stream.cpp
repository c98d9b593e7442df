// See event_stream.h.
#include "observe/event_stream.h"

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "io/json_document.h"

namespace servecast {

using Json = nlohmann::json;

bool EventStream::Add(std::string_view bytes, const std::function<void(std::string_view)>& take) {
  for (const char c : bytes) {
    if (too_large_) return false;
    const bool second = after_return_ && c == '\n';  // of \r\n
    after_return_ = c == '\r';
    if (second) continue;
    if (c == '\r' || c == '\n') {
      EndLine(take);
    } else {
      line_ += c;
      too_large_ = line_.size() + data_.size() > kMostBytes;
    }
  }
  return !too_large_;
}

void EventStream::EndLine(const std::function<void(std::string_view)>& take) {
  std::string_view line = line_;
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (first_line_ && line.substr(0, 3) == kMark) line.remove_prefix(3);
  first_line_ = false;
  if (line.empty()) {
    if (has_data_) take(data_);
    data_.clear();
    has_data_ = false;
  } else if (line.substr(0, 4) == "data" && (line.size() == 4 || line[4] == ':')) {
    line.remove_prefix(line.size() == 4 ? 4 : 5);
    if (!line.empty() && line[0] == ' ') line.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += line;
    has_data_ = true;
  }  // Comments and other fields say nothing of an answer.
  line_.clear();
}

namespace {

constexpr std::size_t kShownBytes = 200;

std::optional<std::int64_t> CountIn(const Json& usage, const char* key) {
  const auto found = usage.find(key);
  if (found == usage.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto count = found->get<std::uint64_t>();
  if (count > 1'000'000'000) return std::nullopt;
  return static_cast<std::int64_t>(count);
}

// The message of {"error": {"message": ...}}, {"error": "..."}, {"message": ...} or
// {"detail": "..."}; "" without one.
std::string MessageIn(const Json& json) {
  if (json.is_string()) return ShownText(json.get_ref<const std::string&>(), kShownBytes);
  if (!json.is_object()) return {};
  for (const char* key : {"error", "message", "detail"}) {
    const auto found = json.find(key);
    if (found == json.end()) continue;
    if (found->is_string()) return MessageIn(*found);
    const auto inner = found->is_object() ? found->find("message") : found->end();
    if (found->is_object() && inner != found->end() && inner->is_string()) return MessageIn(*inner);
  }
  return {};
}

}  // namespace

std::string RefusalOf(std::string_view body) {
  const Json json = LooseJson(body);
  const std::string message = json.is_object() ? MessageIn(json) : std::string();
  return message.empty() ? ShownText(body, kShownBytes) : message;
}

StreamChunk ReadChunk(std::string_view data) {
  StreamChunk chunk;
  if (data == "[DONE]") {
    chunk.done = true;
    return chunk;
  }
  const Json json = LooseJson(data);
  if (!json.is_object()) {
    chunk.error = "found an event " + ShownText(data) + ", allowed an object of JSON or [DONE]";
    return chunk;
  }
  if (const auto error = json.find("error"); error != json.end() && !error->is_null()) {
    chunk.error = RefusalOf(data);
    return chunk;
  }
  if (const auto usage = json.find("usage"); usage != json.end() && usage->is_object()) {
    chunk.prompt_tokens = CountIn(*usage, "prompt_tokens");
    chunk.output_tokens = CountIn(*usage, "completion_tokens");
  }
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array()) {
    chunk.error = "found an event " + ShownText(data) + ", allowed one with choices";
    return chunk;
  }
  chunk.token = !choices->empty();
  if (chunk.token && choices->front().is_object()) {
    const auto reason = choices->front().find("finish_reason");
    chunk.finished = reason != choices->front().end() && reason->is_string();
  }
  return chunk;
}

}  // namespace servecast
