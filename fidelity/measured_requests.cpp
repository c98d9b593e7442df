// See measured_requests.h.
#include "measured_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "host/files.h"

namespace servecast {
namespace {

constexpr NumberRange kArrival = {0, 1e10};
constexpr NumberRange kTokens = {0, 1e7};

constexpr double kClocksDifferS = 0.05;  // of a client, by which it seems to send before its answer

const ColumnNames kArrivalColumns = {"send_s", "arrival_s", "relative_time_sec"};
const ColumnNames kInputColumns = {"input_tokens_server", "input_tokens", "input_num_tokens"};
const ColumnNames kOutputColumns = {"output_tokens_configured", "output_tokens",
                                    "output_num_tokens"};

// Milliseconds, seconds, or the moment of it; NaN when the row does not say.
double TimeOf(MeasuredRow& row, ColumnNames ms, ColumnNames s, ColumnNames at, double arrival_s) {
  if (const auto value = row.Number(ms)) return *value;
  if (const auto value = row.Number(s)) return 1e3 * *value;
  if (const auto value = row.Number(at, kArrival)) return 1e3 * (*value - arrival_s);
  return kNotMeasured;
}

struct Request {
  MeasuredRequest request;
  std::string identity, client;
};

Request RequestOf(MeasuredRow& row) {
  Request out;
  MeasuredRequest& r = out.request;
  r.arrival_s = row.NeededNumber(kArrivalColumns, kArrival);
  const auto tokens = [&row](ColumnNames columns) {
    return static_cast<std::int32_t>(std::max<std::int64_t>(1, row.NeededWhole(columns, kTokens)));
  };
  r.input = tokens(kInputColumns);
  r.output = tokens(kOutputColumns);
  r.ttft_ms = TimeOf(row, {"ttft_ms"}, {"ttft_s", "ttft"}, {"first_token_s"}, r.arrival_s);
  r.e2e_ms = TimeOf(row, {"latency_ms", "e2e_ms"}, {"e2e_s", "e2e"}, {"last_token_s"}, r.arrival_s);
  const std::string failed = LowerCase(row.Text({"has_error", "error"}));
  if (!failed.empty() && failed != "0" && failed != "false") r.ttft_ms = r.e2e_ms = kNotMeasured;
  r.scheduled = row.Number({"scheduled_s"}).has_value();
  out.identity = row.Text({"prompt_pool_id", "conversation_id"});
  out.client = row.Text({"client_id"});
  return out;
}

// Clients of conversations that send nothing before they have their answers are a closed loop: when
// they come the server decides. Where one does send before, all come at their recorded arrivals.
void FindLoop(const std::vector<Request>& read, std::vector<MeasuredRequest>& requests) {
  std::map<std::string_view, std::int32_t> last;
  std::vector<MeasuredRequest> looped = requests;
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i].client.empty() || read[i].identity.empty()) return;
    const auto index = static_cast<std::int32_t>(i);
    const auto [at, first] = last.try_emplace(read[i].client, index);
    if (!first) {
      const MeasuredRequest& before = requests[static_cast<std::size_t>(at->second)];
      const double pause_s = requests[i].arrival_s - before.arrival_s - before.e2e_ms * 1e-3;
      if (pause_s < -kClocksDifferS) return;
      if (std::isfinite(pause_s)) {
        looped[i].follows = at->second;
        looped[i].pause_s = std::max(0.0, pause_s);
      }
    }
    at->second = index;
  }
  requests = std::move(looped);
}

// Whether prompts hold the answers before them: each is as long as the one before and its answer.
void FindAnswers(std::vector<MeasuredRequest>& requests) {
  const auto before = [&requests](const MeasuredRequest& r) -> const MeasuredRequest& {
    return requests[static_cast<std::size_t>(r.shares_with)];
  };
  const bool all = std::all_of(requests.begin(), requests.end(), [&](const MeasuredRequest& r) {
    return r.shares_with < 0 || r.input >= before(r).input + before(r).output;
  });
  for (MeasuredRequest& r : requests) r.answer_too = all && r.shares_with >= 0;
}

// The prompts of a run, one at a time, as its server counted them: what its log's count of tokens
// that were looked up in the prefix cache grows by.
std::vector<std::int32_t> PromptsOfLog(const MeasuredTable& log, const std::string& file) {
  std::vector<std::int32_t> prompts;
  std::int64_t counted = 0;
  for (std::size_t i = 0; i < log.Rows(); ++i) {
    MeasuredRow row(log, file, i);
    const auto now = row.Whole({"prefix_queries"}, {0, 1e12});
    const std::int64_t more = now.value_or(-1) - counted;
    if (!row.problem().empty() || more < 0 || more > 10'000'000) return {};
    if (more > 0) prompts.push_back(static_cast<std::int32_t>(more));
    counted += more;
  }
  return prompts;
}

// A client counts what its trace has, but a server sees its own answers in what came before.
void CountAsServer(const MeasuredTable& log, const std::string& file, std::vector<Request>& read) {
  const std::vector<std::int32_t> prompts = PromptsOfLog(log, file);
  if (prompts.size() != read.size()) return;
  for (std::size_t i = 1; i < read.size(); ++i) {
    const MeasuredRequest& before = read[i - 1].request;
    const double answered_s = before.arrival_s + before.e2e_ms * 1e-3;
    if (!(read[i].request.arrival_s > answered_s - kClocksDifferS)) return;  // several at a time
  }
  for (std::size_t i = 0; i < read.size(); ++i) read[i].request.input = prompts[i];
}

Result<RecordedRequests> RequestsOf(const MeasuredTable& table, const std::string& file,
                                    const MeasuredTable& log) {
  std::vector<Request> read;
  for (std::size_t i = 0; i < table.Rows(); ++i) {
    MeasuredRow row(table, file, i);
    if (row.problem().empty()) read.push_back(RequestOf(row));
    if (!row.problem().empty()) return Issue{"", row.problem()};
  }
  if (read.empty()) return Issue{"", file + ": no requests in it"};
  std::stable_sort(read.begin(), read.end(), [](const Request& a, const Request& b) {
    return a.request.arrival_s < b.request.arrival_s;
  });
  CountAsServer(log, file, read);
  auto requests = std::make_shared<std::vector<MeasuredRequest>>();
  std::map<std::string, std::int32_t, std::less<>> seen;
  for (Request& r : read) {
    const auto index = static_cast<std::int32_t>(requests->size());
    if (!r.identity.empty()) {
      const auto [at, first] = seen.try_emplace(r.identity, index);
      if (!first) r.request.shares_with = at->second;
      at->second = index;
    }
    requests->push_back(r.request);
  }
  FindLoop(read, *requests);
  FindAnswers(*requests);
  return RecordedRequests(std::move(requests));
}

std::string_view NameOf(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

bool IsRequestTable(const MeasuredTable& table) {
  return table.HasAny(kArrivalColumns) && table.HasAny(kInputColumns) &&
         table.HasAny({"ttft_ms", "ttft_s", "ttft", "first_token_s"}) &&
         !table.HasAny({"model", "experiment"});
}

std::string_view CsvStem(std::string_view path) {
  for (const std::string_view ending : {".csv", ".csv.gz", ".tsv", ".tsv.gz"}) {
    if (path.size() <= ending.size()) continue;
    const std::size_t stem = path.size() - ending.size();
    if (LowerCase(path.substr(stem)) == ending) return path.substr(0, stem);
  }
  return "";
}

RequestFiles::RequestFiles(const std::string& folder, const std::vector<std::string>& paths)
    : folder_(folder) {
  for (const std::string& path : paths) {
    if (!CsvStem(path).empty()) paths_.push_back(path);
  }
}

std::optional<std::string> RequestFiles::Find(std::string_view directory, std::string_view run) {
  if (run.empty()) return std::nullopt;
  std::string flat(run);
  for (std::size_t at = flat.find('/'); at != std::string::npos; at = flat.find('/')) {
    flat.replace(at, 1, "__");
  }
  const std::string* found = nullptr;
  int best = 3;
  for (const std::string& path : paths_) {
    if (path.compare(0, directory.size(), directory) != 0) continue;
    const std::string_view stem = CsvStem(path), name = NameOf(stem);
    if (name != flat) continue;
    const std::string_view between =
        stem.substr(directory.size(), stem.size() - directory.size() - name.size());
    const int rank = between == "requests/" ? 0 : between.empty() ? 1 : 2;
    if (rank >= best) continue;
    best = rank;
    found = &path;
  }
  if (found == nullptr) return std::nullopt;
  of_runs_.insert(std::string(CsvStem(*found)));
  return *found;
}

const Result<RecordedRequests>& RequestFiles::Read(const std::string& path) {
  const auto known = read_.find(path);
  if (known != read_.end()) return known->second;
  return read_.emplace(path, ReadAnew(path)).first->second;
}

Result<RecordedRequests> RequestFiles::ReadAnew(const std::string& path) const {
  const std::string file = PlainText(path);
  const auto text_of = [this](const std::string& name) {
    return ReadFile(folder_ + "/" + name, kMostFileBytes);
  };
  const Result<std::string> text = text_of(path);
  if (!text.ok()) return Issue{"", file + ": " + text.issues()[0].message};
  const std::string log = std::string(CsvStem(path)) + "__timeseries";
  const auto beside = std::find_if(paths_.begin(), paths_.end(), [&log](const std::string& other) {
    return CsvStem(other) == log;
  });
  const Result<std::string> logged = beside == paths_.end() ? std::string() : text_of(*beside);
  return RequestsOf(MeasuredTable(text.value()), file,
                    MeasuredTable(logged.ok() ? logged.value() : ""));
}

bool RequestFiles::IsOfARun(const std::string& path) const {
  const std::string_view stem = CsvStem(path);
  return std::any_of(of_runs_.begin(), of_runs_.end(), [stem](const std::string& of_run) {
    return stem.substr(0, of_run.size()) == of_run;
  });
}

}  // namespace servecast
