// See transfer.h.
#include "observe/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "base/text.h"

namespace servecast {
namespace {

constexpr std::size_t kMostRefusalBytes = 4096;
// What an answer may have beyond the tokens that were asked for, in chunks and in bytes of each:
// no server that goes on for ever is read for ever.
constexpr std::int64_t kMoreChunks = 64;
constexpr std::int64_t kBytesOfChunk = 16'384;

long WholeMs(TimeNs time) { return static_cast<long>(std::max<TimeNs>(1, time / kNsPerMs)); }

}  // namespace

Server::Server(std::string url, std::string key) : url_(std::move(url)), key_(std::move(key)) {
  const std::string authorization = "Authorization: Bearer " + key_;
  curl_slist* list = nullptr;
  for (const char* line : {"Content-Type: application/json", "Accept: text/event-stream",
                           "Expect:"}) {  // No pause for a "100 Continue".
    list = curl_slist_append(list, line);
  }
  if (!key_.empty()) list = curl_slist_append(list, authorization.c_str());
  headers_.reset(list);
}

std::string Server::Without(std::string text) const {
  for (std::size_t at = 0; !key_.empty() && (at = text.find(key_, at)) != std::string::npos;) {
    text.replace(at, key_.size(), "[key]");
    at += 5;
  }
  return text;
}

void Server::Address(CURL* easy, const std::string& path) const {
  curl_easy_setopt(easy, CURLOPT_URL, (url_ + path).c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  // No stream waits behind another's bytes.
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "servecast-observe");
}

Transfer::Transfer(const Server& server, const RunClock& clock)
    : server_(server), clock_(clock), easy_(curl_easy_init()) {
  SERVECAST_CHECK(easy_ != nullptr, "libcurl makes a handle");
  server_.Address(easy_.get(), "/completions");
  curl_easy_setopt(easy_.get(), CURLOPT_ERRORBUFFER, curl_error_);
  curl_easy_setopt(easy_.get(), CURLOPT_PRIVATE, this);
  // A new connection each: on one that was used before libcurl would repeat a request by itself,
  // unseen, when the server breaks it.
  curl_easy_setopt(easy_.get(), CURLOPT_FRESH_CONNECT, 1L);
  curl_easy_setopt(easy_.get(), CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(easy_.get(), CURLOPT_PREREQFUNCTION, &Transfer::Connected);
  curl_easy_setopt(easy_.get(), CURLOPT_PREREQDATA, this);
  curl_easy_setopt(easy_.get(), CURLOPT_WRITEFUNCTION, &Transfer::TakeBytes);
  curl_easy_setopt(easy_.get(), CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_.get(), CURLOPT_HEADERFUNCTION, &Transfer::TakeHeader);
  curl_easy_setopt(easy_.get(), CURLOPT_HEADERDATA, this);
}

void Transfer::Take(Answer& answer, std::string body, std::int64_t asked) {
  answer_ = &answer;
  body_ = std::move(body);
  asked_ = asked;
  curl_easy_setopt(easy_.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
  curl_easy_setopt(easy_.get(), CURLOPT_POSTFIELDS, body_.c_str());
}

void Transfer::Begin(TimeNs limit, bool patience) {
  limit_ = limit;
  patience_ = patience;
  curl_easy_setopt(easy_.get(), CURLOPT_TIMEOUT_MS, WholeMs(limit));
  curl_easy_setopt(easy_.get(), CURLOPT_CONNECTTIMEOUT_MS, WholeMs(limit));
  events_ = EventStream();
  refusal_.clear();
  received_ = 0;
  failed_.reset();
  whole_ = finished_ = false;
  dated_.reset();
  curl_error_[0] = '\0';
  answer_->tokens.clear();
  answer_->prompt_tokens.reset();
  answer_->output_tokens.reset();
  answer_->error.clear();
  answer_->connect = 0;
  answer_->sent = heard_ = clock_.Now();
  if (answer_->tries++ == 0) answer_->first_sent = answer_->sent;
}

std::size_t Transfer::TakeBytes(char* bytes, std::size_t one, std::size_t count, void* self) {
  const std::size_t size = one * count;
  return static_cast<Transfer*>(self)->Body({bytes, size}) ? size : 0;
}

// The request is about to be written: from here on the server is measured, not the way to it.
int Transfer::Connected(void* self, char*, char*, int, int) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  transfer.heard_ = transfer.clock_.Now();
  transfer.answer_->connect = transfer.heard_ - transfer.answer_->sent;
  transfer.answer_->sent = transfer.heard_;
  return CURL_PREREQFUNC_OK;
}

std::size_t Transfer::TakeHeader(char* bytes, std::size_t one, std::size_t count, void* self) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  transfer.heard_ = transfer.clock_.Now();
  const std::string line(bytes, one * count);
  if (line.size() > 5 && LowerCase(line.substr(0, 5)) == "date:") {
    const std::time_t date = curl_getdate(line.c_str() + 5, nullptr);
    if (date > 0) {
      transfer.dated_ = Dated{transfer.clock_.WallAt(transfer.answer_->sent),
                              transfer.clock_.WallAt(transfer.heard_), static_cast<double>(date)};
    }
  }
  return one * count;
}

long Transfer::Status() const {
  long status = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  return status;
}

double Transfer::RetryAfter() const {
  curl_off_t seconds = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &seconds);
  return static_cast<double>(seconds);
}

void Transfer::Fail(Outcome outcome, std::string error) {
  if (failed_) return;  // the first reason is the reason
  failed_ = outcome;
  answer_->error = server_.Without(std::move(error));
}

// False ends the transfer.
bool Transfer::Body(std::string_view bytes) {
  const TimeNs now = heard_ = clock_.Now();
  if (Status() != 200) {
    refusal_ += bytes.substr(0, kMostRefusalBytes - std::min(kMostRefusalBytes, refusal_.size()));
    return true;
  }
  if (received_ == 0 && bytes.substr(0, 2) == "\x1f\x8b") {
    Fail(Outcome::kMalformed, "found a compressed answer (gzip), allowed plain text, as asked for");
  }
  received_ += static_cast<std::int64_t>(bytes.size());
  if (received_ > (asked_ + kMoreChunks) * kBytesOfChunk) {
    Fail(Outcome::kMalformed, Format("found more than {} bytes for {} tokens", received_, asked_));
  }
  if (!events_.Add(bytes, [this, now](std::string_view data) { Event(data, now); })) {
    Fail(Outcome::kMalformed,
         Format("found an event larger than {} bytes", EventStream::kMostBytes));
  }
  // Some servers keep a connection open behind the last event.
  return !failed_ && (!whole_ || answer_->tokens.empty());
}

void Transfer::Event(std::string_view data, TimeNs now) {
  if (failed_ || whole_) return;
  const StreamChunk chunk = ReadChunk(data);
  if (!chunk.error.empty()) {
    return Fail(Outcome::kMalformed, ReadChunk(server_.Without(std::string(data))).error);
  }
  whole_ = chunk.done;
  finished_ = finished_ || chunk.finished;
  if (chunk.prompt_tokens) answer_->prompt_tokens = chunk.prompt_tokens;
  if (chunk.output_tokens) answer_->output_tokens = chunk.output_tokens;
  if (!chunk.token) return;
  answer_->tokens.push_back(now);
  const auto count = static_cast<std::int64_t>(answer_->tokens.size());
  if (count > asked_ + kMoreChunks) {
    Fail(Outcome::kMalformed, Format("found more than {} chunks for {} tokens", count - 1, asked_));
  }
}

void Transfer::FailAs(CURLcode code, long status) {
  const char* words = curl_error_[0] != '\0' ? curl_error_ : curl_easy_strerror(code);
  const bool began = !answer_->tokens.empty();
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return Fail(patience_ ? Outcome::kGaveUp : Outcome::kTimedOut,
                "no whole answer within " + NumberText(Seconds(limit_)) + " s");
  }
  if (status != 0 && status != 200) {
    const std::string why = refusal_.empty() ? "" : ": " + RefusalOf(server_.Without(refusal_));
    const bool refused = status == 429 || status == 503;
    return Fail(refused ? Outcome::kRefused : Outcome::kStatus, Format("status {}{}", status, why));
  }
  if (code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return Fail(Outcome::kMalformed, ShownText(words, 200));
  }
  if (code != CURLE_OK) {
    return Fail(began ? Outcome::kCutShort : Outcome::kUnconnected, ShownText(words, 200));
  }
  if (began) return Fail(Outcome::kCutShort, "the stream ended before [DONE]");
  Fail(Outcome::kMalformed, "found an answer without output, allowed a stream of events");
}

void Transfer::Finish(CURLcode code) {
  Answer& a = *answer_;
  a.ended = clock_.Now();
  // Not every server says [DONE].
  const bool whole = (whole_ || (finished_ && code == CURLE_OK)) && !a.tokens.empty();
  if (!failed_ && !whole) FailAs(code, Status());
  a.outcome = failed_.value_or(Outcome::kAnswered);
}

void Transfer::EndSilent(TimeNs stall) {
  answer_->ended = clock_.Now();
  answer_->outcome = Outcome::kTimedOut;
  answer_->error = "silent for " + NumberText(Seconds(stall)) + " s";
}

void Transfer::Interrupt() {
  answer_->ended = clock_.Now();
  answer_->outcome = Outcome::kInterrupted;
  answer_->error = "the run was ended";
}

}  // namespace servecast
