// Pricing steps as the golden traces were priced, and finding the first row that differs from them.
#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "testing/vllm_golden.h"

namespace servecast::testing {
namespace {

constexpr double kTimeToleranceS = 1e-6;

std::string ShowId(RequestId id) { return fmt::format("{}", id); }

// One row after another; after the first difference the rest is not looked at.
class Comparer {
 public:
  explicit Comparer(const GoldenCase& golden) : golden_(golden) {}

  void Row(std::string row) { row_ = std::move(row); }

  void Text(const char* column, const std::string& expected, const std::string& found) {
    if (difference_ || expected == found) return;
    difference_ =
        fmt::format("{}: {}: expected {}, found {}", row_, column,
                    expected.empty() ? "nothing" : expected, found.empty() ? "nothing" : found);
  }
  void Int(const char* column, std::int64_t expected, std::int64_t found) {
    if (expected != found) Text(column, fmt::format("{}", expected), fmt::format("{}", found));
  }
  void Real(const char* column, double expected, double found) {
    if (expected != found) Text(column, fmt::format("{}", expected), fmt::format("{}", found));
  }
  void Time(const char* column, double expected_s, TimeNs found) {
    const double found_s = static_cast<double>(found) * 1e-9;
    if (std::abs(expected_s - found_s) <= kTimeToleranceS) return;
    Text(column, fmt::format("{} s", expected_s), fmt::format("{} s", found_s));
  }

  void Step(const GoldenStep& expected, const StepRecord& found) {
    const StepRecord& record = expected.record;
    Row(fmt::format("step {}", record.index));
    Int("step", record.index, found.index);
    Members(record, found);
    Text("preempted", Join(record.preempted, ShowId), Join(found.preempted, ShowId));
    Text("finished", Join(record.finished, ShowId), Join(found.finished, ShowId));
    Int("free_after_schedule", record.free_after_schedule, found.free_after_schedule);
    Int("free_after_step", record.free_after_step, found.free_after_step);
    Int("running_after_schedule", record.running_after_schedule, found.running_after_schedule);
    Int("waiting_after_schedule", record.waiting_after_schedule, found.waiting_after_schedule);
    Int("running_after_step", record.running_after_step, found.running_after_step);
    Int("waiting_after_step", record.waiting_after_step, found.waiting_after_step);
    Sums(expected, found);
    Time("sched_s", expected.sched_s, found.scheduled);
    Time("start_s", expected.start_s, found.start);
    Time("end_s", expected.end_s, found.end);
  }

  const std::optional<std::string>& difference() const { return difference_; }

 private:
  template <class T, class Show>
  static std::string Join(const std::vector<T>& items, Show show) {
    std::string text;
    for (const T& item : items) text += (text.empty() ? "" : " ") + show(item);
    return text;
  }

  // Column by column as in the file, so that the difference reads like it.
  void Members(const StepRecord& expected, const StepRecord& found) {
    const auto column = [&](const char* name, auto show) {
      Text(name, Join(expected.members, show), Join(found.members, show));
    };
    if (expected.members == found.members) return;
    column("scheduled", [](const StepMember& m) { return fmt::format("{}:{}", m.id, m.tokens); });
    column("kind", [](const StepMember& m) { return std::string(1, static_cast<char>(m.kind)); });
    column("computed_before",
           [](const StepMember& m) { return fmt::format("{}", m.computed_before); });
    column("drafts", [](const StepMember& m) { return fmt::format("{}", m.drafts); });
    column("accepted", [](const StepMember& m) { return fmt::format("{}", m.accepted); });
    column("sampled", [](const StepMember& m) { return fmt::format("{}", m.sampled); });
  }

  void Sums(const GoldenStep& expected, const StepRecord& found) {
    std::int64_t t = 0;
    std::int64_t k = 0;
    double q = 0;
    for (const StepMember& member : found.members) {
      const std::int64_t prompt =
          golden_.requests.prompt_tokens[static_cast<std::size_t>(member.id)];
      t += member.tokens;
      if (member.tokens == 1 && member.computed_before >= prompt) {
        k += member.computed_before;
      } else {
        q += static_cast<double>(member.tokens) *
             (static_cast<double>(member.computed_before) + static_cast<double>(member.tokens) / 2);
      }
    }
    Int("T", expected.t, t);
    Int("K", expected.k, k);
    Real("Q", expected.q, q);
  }

  const GoldenCase& golden_;
  std::string row_;
  std::optional<std::string> difference_;
};

// What the steps say about one request.
struct DerivedRequest {
  TimeNs first_scheduled = -1, first_token = -1, finish = -1;
  std::int64_t preemptions = 0;
  std::int64_t cached_at_first_schedule = 0, cached_on_resumes = 0;
  std::int64_t first_step = -1, finish_step = -1;
};

std::vector<DerivedRequest> DeriveRequests(std::size_t count,
                                           const std::vector<StepRecord>& steps) {
  std::vector<DerivedRequest> requests(count);
  for (const StepRecord& step : steps) {
    for (const StepMember& member : step.members) {
      DerivedRequest& request = requests[static_cast<std::size_t>(member.id)];
      if (request.first_step < 0) {
        request.first_step = step.index;
        request.first_scheduled = step.start;
      }
      if (member.kind == MemberKind::kNew) {
        request.cached_at_first_schedule = member.computed_before;
      } else if (member.kind == MemberKind::kResumed) {
        request.cached_on_resumes += member.computed_before;
      }
      if (member.sampled > 0 && request.first_token < 0) request.first_token = step.end;
    }
    for (const RequestId id : step.preempted) ++requests[static_cast<std::size_t>(id)].preemptions;
    for (const RequestId id : step.finished) {
      requests[static_cast<std::size_t>(id)].finish = step.end;
      requests[static_cast<std::size_t>(id)].finish_step = step.index;
    }
  }
  return requests;
}

}  // namespace

StepPrice GoldenLatency::Price(const BatchShape& shape) const {
  std::int64_t t = shape.decode_seqs;
  std::int64_t k = shape.decode_context_tokens;
  double q = 0;
  for (const PrefillChunk& chunk : shape.prefill) {
    t += chunk.tokens;
    if (chunk.tokens == 1 && chunk.context >= chunk.prompt) {
      k += chunk.context;
    } else {
      q += static_cast<double>(chunk.tokens) *
           (static_cast<double>(chunk.context) + static_cast<double>(chunk.tokens) / 2);
    }
  }
  for (const DraftedDecodes& decodes : shape.drafted) {
    const auto n = static_cast<double>(decodes.tokens);
    t += decodes.tokens * decodes.sequences;
    q +=
        n * (static_cast<double>(decodes.context) + static_cast<double>(decodes.sequences) * n / 2);
  }
  const double ms =
      ((5.0 + 0.02 * static_cast<double>(t)) + 1e-4 * static_cast<double>(k)) + 1e-5 * q;
  StepPrice price;
  price.duration = static_cast<TimeNs>(std::nearbyint(ms * static_cast<double>(kNsPerMs)));
  return price;
}

std::optional<std::string> FirstDifference(const GoldenCase& golden,
                                           const std::vector<StepRecord>& steps) {
  Comparer comparer(golden);
  const std::size_t common = std::min(steps.size(), golden.steps.size());
  for (std::size_t i = 0; i < common && !comparer.difference(); ++i) {
    comparer.Step(golden.steps[i], steps[i]);
  }
  comparer.Row("all steps");
  comparer.Int("count", static_cast<std::int64_t>(golden.steps.size()),
               static_cast<std::int64_t>(steps.size()));
  if (comparer.difference()) return comparer.difference();

  const std::vector<DerivedRequest> requests = DeriveRequests(golden.results.size(), steps);
  for (std::size_t id = 0; id < requests.size() && !comparer.difference(); ++id) {
    const GoldenRequest& expected = golden.results[id];
    const DerivedRequest& found = requests[id];
    comparer.Row(fmt::format("request {}", id));
    if (!expected.rejected.empty()) {
      comparer.Int("first_step", -1, found.first_step);
      continue;
    }
    if (expected.unfinished) {
      comparer.Int("finish_step", -1, found.finish_step);
      continue;
    }
    comparer.Time("arrival_s", expected.arrival_s, golden.requests.arrival[id]);
    comparer.Time("first_scheduled_s", expected.first_scheduled_s, found.first_scheduled);
    comparer.Time("first_token_s", expected.first_token_s, found.first_token);
    comparer.Time("finish_s", expected.finish_s, found.finish);
    comparer.Int("preemptions", expected.preemptions, found.preemptions);
    comparer.Int("cached_at_first_schedule", expected.cached_at_first_schedule,
                 found.cached_at_first_schedule);
    comparer.Int("cached_on_resumes", expected.cached_on_resumes, found.cached_on_resumes);
    comparer.Int("first_step", expected.first_step, found.first_step);
    comparer.Int("finish_step", expected.finish_step, found.finish_step);
  }
  return comparer.difference();
}

std::optional<std::string> FirstDifference(const GoldenCase& golden,
                                           const RequestResults& results) {
  Comparer comparer(golden);
  comparer.Row("all requests");
  comparer.Int("count", static_cast<std::int64_t>(golden.results.size()),
               static_cast<std::int64_t>(results.state.size()));
  if (comparer.difference()) return comparer.difference();
  for (std::size_t id = 0; id < golden.results.size() && !comparer.difference(); ++id) {
    const GoldenRequest& expected = golden.results[id];
    comparer.Row(fmt::format("reported request {}", id));
    if (!expected.rejected.empty()) {
      comparer.Text("state", "rejected",
                    results.state[id] == RequestState::kRejected ? "rejected" : "not rejected");
      continue;
    }
    if (expected.unfinished) {
      comparer.Text("state", "not completed",
                    results.state[id] == RequestState::kCompleted ? "completed" : "not completed");
      continue;
    }
    comparer.Time("first_scheduled_s", expected.first_scheduled_s, results.first_scheduled[id]);
    comparer.Time("first_token_s", expected.first_token_s, results.first_token[id]);
    comparer.Time("finish_s", expected.finish_s, results.completion[id]);
    comparer.Int("preemptions", expected.preemptions, results.preemptions[id]);
    comparer.Int("cached_at_first_schedule", expected.cached_at_first_schedule,
                 results.cached_tokens[id]);
    comparer.Text("state", "completed",
                  results.state[id] == RequestState::kCompleted ? "completed" : "not completed");
  }
  return comparer.difference();
}

}  // namespace servecast::testing
