// See client.h.
#include "observe/client.h"

#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/text.h"
#include "io/json_document.h"
#include "io/json_writer.h"
#include "observe/pacing.h"
#include "observe/transfer.h"

namespace servecast {
namespace {

// What is sent. Greedy, and never ended by the model: each answer has the length that was asked
// for.
std::string BodyOf(const ObserveOptions& options, const ObserveRun& run, const RequestTable& table,
                   std::int64_t row) {
  JsonWriter out(false);
  out.BeginObject();
  out.Key("model");
  out.Text(run.model);
  out.Key("prompt");
  out.Raw(PromptJson(PromptTokens(table, row, run.salt), options.prompts));
  out.Key("max_tokens");
  out.Integer(AskedTokens(table, row));
  out.Key("temperature");
  out.Integer(0);
  out.Key("ignore_eos");
  out.Boolean(true);
  out.Key("stream");
  out.Boolean(true);
  out.Key("stream_options");
  out.Raw(R"({"include_usage":true})");
  out.EndObject();
  return out.Take();
}

// A connection is a file.
void AllowManyFiles() {
  struct rlimit files {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t wanted = 65'536;
  files.rlim_cur = std::max(files.rlim_cur, std::min(wanted, files.rlim_max));
  setrlimit(RLIMIT_NOFILE, &files);
}

class Load {
 public:
  Load(const ObserveOptions& options, const RequestTable& table, const ObserveRun& run)
      : options_(options),
        table_(table),
        run_(run),
        server_(options.url, options.key),
        multi_(curl_multi_init()),
        pacer_(table, options.max_concurrency),
        answers_(static_cast<std::size_t>(table.size())),
        taken_(answers_.size(), 0) {
    SERVECAST_CHECK(multi_ != nullptr, "libcurl makes a handle");
  }

  Observed Run() {
    PrepareBody();
    clock_ = RunClock();  // Begins when all is ready.
    while (!pacer_.Done()) {
      if (run_.stop != nullptr && *run_.stop != 0) {
        Interrupt();
        break;
      }
      const TimeNs begin = clock_.Now();
      if (begin >= run_.horizon) StopSending();
      SendDue(begin);
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      TakeEnded();
      EndSilent();
      ShowProgress();
      longest_turn_ = std::max(longest_turn_, clock_.Now() - begin);
      Wait();
    }
    return Take();
  }

 private:
  using Again = std::pair<TimeNs, Transfer*>;

  void SendDue(TimeNs now) {
    while (!again_.empty() && again_.top().first <= now) {
      Transfer& transfer = *again_.top().second;
      again_.pop();
      Send(transfer, now);
    }
    while (const auto due = pacer_.Take(now)) {
      const auto r = static_cast<std::size_t>(due->row);
      taken_[r] = 1;
      ++progress_.sent;
      Answer& answer = answers_[r];
      answer.row = due->row;
      answer.due = due->due;
      answer.ready = due->ready;
      Transfer& transfer = FreeTransfer();
      transfer.Take(answer, TakeBody(due->row), AskedTokens(table_, due->row));
      Send(transfer, clock_.Now());
    }
  }

  void Send(Transfer& transfer, TimeNs now) {
    Answer& answer = transfer.answer();
    const auto r = static_cast<std::size_t>(answer.row);
    TimeNs limit = options_.timeout;
    const TimeNs patience = table_.timeout.empty() || table_.timeout[r] == kNever
                                ? kNever
                                : answer.due + table_.timeout[r] - now;
    if (patience <= 0) {
      if (answer.tries == 0) answer.first_sent = answer.sent = now;
      answer.ended = now;
      answer.outcome = Outcome::kGaveUp;
      answer.error = "its client gave up before it was sent";
      return End(transfer);
    }
    limit = std::min(limit, patience);
    transfer.Begin(limit, patience <= options_.timeout);
    const CURLMcode code = curl_multi_add_handle(multi_.get(), transfer.easy());
    SERVECAST_CHECK(code == CURLM_OK, "libcurl takes a request");
    sent_.insert(&transfer);
  }

  // Every try that libcurl says is over.
  void TakeEnded() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      Transfer* transfer = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
      transfer->Finish(code);
      if (const auto& dated = transfer->dated()) {
        server_clock_.Add(dated->sent_s, dated->received_s, dated->date_s);
      }
      const double after_s = transfer->RetryAfter();
      Remove(*transfer);
      const Answer& answer = transfer->answer();
      const bool sends = clock_.Now() < run_.horizon;
      const auto wait =
          RetryWait(answer.outcome, answer.tries, options_.retries, after_s, answer.row);
      if (sends && wait) {
        again_.emplace(answer.ended + *wait, transfer);
      } else {
        End(*transfer);
      }
    }
  }

  // Those of which nothing has come for too long; looked for a hundred times a second.
  void EndSilent() {
    const TimeNs now = clock_.Now();
    if (!options_.stall || now < next_silence_) return;
    next_silence_ = now + 10 * kNsPerMs;
    for (Transfer* transfer : std::vector<Transfer*>(sent_.begin(), sent_.end())) {
      if (now - transfer->heard() < *options_.stall) continue;
      Remove(*transfer);
      transfer->EndSilent(*options_.stall);
      End(*transfer);
    }
  }

  void Remove(Transfer& transfer) {
    curl_multi_remove_handle(multi_.get(), transfer.easy());
    sent_.erase(&transfer);
  }

  void End(Transfer& transfer) {
    const Answer& answer = transfer.answer();
    const bool answered = answer.outcome == Outcome::kAnswered;
    progress_.answered += answered ? 1 : 0;
    last_end_ = std::max(last_end_, answer.ended);
    pacer_.Ended(answer.row, answer.ended, answered);
    free_.push_back(&transfer);
  }

  void StopSending() {
    pacer_.Stop();
    for (; !again_.empty(); again_.pop()) End(*again_.top().second);
  }

  void Interrupt() {
    interrupted_ = true;
    pacer_.Stop();
    for (; !again_.empty(); again_.pop()) sent_.insert(again_.top().second);
    for (Transfer* transfer : sent_) {
      curl_multi_remove_handle(multi_.get(), transfer->easy());
      transfer->Interrupt();
      last_end_ = std::max(last_end_, transfer->answer().ended);
    }
  }

  // Until something is due or has come. The last millisecond is waited for by looking.
  void Wait() {
    TimeNs until = clock_.Now() + 200 * kNsPerMs;
    until = std::min(until, pacer_.Next());
    if (clock_.Now() < run_.horizon) until = std::min(until, run_.horizon);
    if (options_.stall && !sent_.empty()) until = std::min(until, next_silence_);
    if (!again_.empty()) until = std::min(until, again_.top().first);
    if (until - clock_.Now() > 2 * kNsPerMs) PrepareBody();
    const TimeNs left = until - clock_.Now();
    if (pacer_.Done() || left <= 0) return;
    curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(left / kNsPerMs), nullptr);
  }

  // The next request's body is made while there is time.
  void PrepareBody() {
    const auto row = pacer_.Peek();
    if (!row || *row == prepared_row_) return;
    prepared_ = BodyOf(options_, run_, table_, *row);
    prepared_row_ = *row;
  }
  std::string TakeBody(std::int64_t row) {
    if (row != prepared_row_) return BodyOf(options_, run_, table_, row);
    prepared_row_ = -1;
    return std::move(prepared_);
  }

  Transfer& FreeTransfer() {
    if (free_.empty()) {
      transfers_.push_back(std::make_unique<Transfer>(server_, clock_));
      free_.push_back(transfers_.back().get());
    }
    Transfer& transfer = *free_.back();
    free_.pop_back();
    return transfer;
  }

  void ShowProgress() {
    const TimeNs now = clock_.Now();
    if (!run_.progress || now < next_progress_) return;
    next_progress_ = now + kNsPerS;
    progress_.at_once = pacer_.at_once();
    run_.progress(progress_);
  }

  Observed Take() {
    Observed observed;
    TimeNs first = kNever;
    for (std::size_t r = 0; r < answers_.size(); ++r) {
      if (taken_[r] == 0) continue;
      first = std::min(first, answers_[r].first_sent);
      observed.answers.push_back(std::move(answers_[r]));
    }
    observed.interrupted = interrupted_;
    observed.duration = first == kNever ? 0 : last_end_ - first;
    observed.started_at_s = clock_.WallAt(0);
    observed.wall_clock_moved_s = clock_.WallMoved();
    observed.server_ahead_s = server_clock_.Ahead();
    observed.longest_turn = longest_turn_;
    return observed;
  }

  const ObserveOptions& options_;
  const RequestTable& table_;
  const ObserveRun& run_;
  Server server_;
  CurlMulti multi_;
  Pacer pacer_;
  RunClock clock_;
  std::vector<Answer> answers_;      // by row
  std::vector<std::uint8_t> taken_;  // by row: it was due
  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::vector<Transfer*> free_;
  std::set<Transfer*> sent_;  // of which libcurl knows
  std::priority_queue<Again, std::vector<Again>, std::greater<>> again_;
  std::string prepared_;
  std::int64_t prepared_row_ = -1;
  ServerClock server_clock_;
  Progress progress_;
  TimeNs next_progress_ = 0, next_silence_ = 0, last_end_ = 0, longest_turn_ = 0;
  bool interrupted_ = false;
};

std::size_t Append(char* bytes, std::size_t one, std::size_t count, void* text) {
  constexpr std::size_t kMostModelBytes = std::size_t{4} << 20;
  std::string& to = *static_cast<std::string*>(text);
  if (to.size() + one * count > kMostModelBytes) return 0;
  to.append(bytes, one * count);
  return one * count;
}

void BeginCurl() {
  static const CURLcode kBegun = curl_global_init(CURL_GLOBAL_DEFAULT);
  SERVECAST_CHECK(kBegun == CURLE_OK, "libcurl begins");
}

}  // namespace

Result<std::string> FirstModel(const ObserveOptions& options) {
  BeginCurl();
  const Server server(options.url, options.key);
  const CurlEasy easy(curl_easy_init());
  std::string text;
  server.Address(easy.get(), "/models");
  curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, 30'000L);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &Append);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &text);
  const CURLcode code = curl_easy_perform(easy.get());
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  const auto refuse = [&](const std::string& found) {
    return Issue{"URL", "found " + found + " from " + ShownText(options.url) +
                            "/models, allowed a server that answers it, or --model NAME"};
  };
  if (code != CURLE_OK) return refuse(curl_easy_strerror(code));
  if (status != 200) {
    return refuse(Format("status {}: {}", status, RefusalOf(server.Without(text))));
  }
  const nlohmann::json json = LooseJson(text);
  if (json.is_object() && json.contains("data") && json["data"].is_array() &&
      !json["data"].empty() && json["data"][0].is_object()) {
    const nlohmann::json& first = json["data"][0];
    if (first.contains("id") && first["id"].is_string() && !first["id"].empty()) {
      return first["id"].get<std::string>();
    }
  }
  return refuse("no model in " + ShownText(server.Without(text)));
}

std::optional<Issue> WarmUp(const ObserveOptions& options, const ObserveRun& run) {
  BeginCurl();
  const Server server(options.url, options.key);
  const RunClock clock;
  Transfer transfer(server, clock);
  RequestTable table;
  table.prompt_tokens.assign(static_cast<std::size_t>(options.warm_up), 16);
  table.output_tokens.assign(static_cast<std::size_t>(options.warm_up), 4);
  table.arrival.assign(static_cast<std::size_t>(options.warm_up), 0);
  // A few tokens, of which none is looked at alone; the first may be slow.
  constexpr TimeNs kFirstMayTake = 10 * kNsPerS;
  const TimeNs limit =
      options.stall ? std::min(options.timeout, *options.stall + kFirstMayTake) : options.timeout;
  for (std::int64_t row = 0; row < table.size(); ++row) {
    Answer answer;
    transfer.Take(answer, BodyOf(options, run, table, row), AskedTokens(table, row));
    transfer.Begin(limit, false);
    transfer.Finish(curl_easy_perform(transfer.easy()));
    if (answer.outcome == Outcome::kAnswered) continue;
    const bool found = answer.error.rfind("found ", 0) == 0;
    return Issue{"URL", (found ? "" : "found ") + answer.error + " from " + ShownText(options.url) +
                            "/completions in the warm-up, allowed a server that streams "
                            "completions"};
  }
  return std::nullopt;
}

Observed Observe(const ObserveOptions& options, const RequestTable& table, const ObserveRun& run) {
  BeginCurl();
  AllowManyFiles();
  return Load(options, table, run).Run();
}

}  // namespace servecast
