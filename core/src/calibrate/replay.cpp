// See replay.h.
#include "calibrate/replay.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "calibrate/predict.h"
#include "calibrate/training.h"
#include "servecast/simulation.h"
#include "servecast/trace.h"
#include "servecast/workload_spec.h"
#include "serving/hooks.h"

namespace servecast {
namespace {

// Gaps between the tokens of the requests from one on, ms: each, or each so-and-so-manieth.
class TokenGaps final : public StepObserver {
 public:
  TokenGaps(std::size_t requests, std::size_t from) : TokenGaps(requests, from, requests, 1) {}
  TokenGaps(std::size_t requests, std::size_t from, std::size_t to, std::int64_t every)
      : last_(requests, -1), from_(from), to_(to), every_(every) {}
  void Token(std::size_t request, TimeNs at) {
    if (request < from_ || request >= to_) return;
    if (last_[request] >= 0 && seen_++ % every_ == 0) {
      gaps_.push_back(static_cast<double>(at - last_[request]) * 1e-6);
    }
    last_[request] = at;
  }
  void OnStep(const StepRecord& step) override {
    for (const StepMember& member : step.members) {
      if (member.sampled > 0) Token(static_cast<std::size_t>(member.id), step.end);
    }
  }
  std::vector<double> Take() { return std::move(gaps_); }

 private:
  std::vector<TimeNs> last_;
  std::size_t from_, to_;
  std::int64_t every_, seen_ = 0;
  std::vector<double> gaps_;
};

struct TracedTimes {
  std::vector<double> ttft, tpot, e2e, itl;  // ms
  void Add(double first, double all, double output) {
    ttft.push_back(first);
    e2e.push_back(all);
    if (output > 1) tpot.push_back((all - first) / (output - 1));
  }
};

bool IsComplete(const TracedJourney& j) {
  return j.arrived >= 0 && j.first_token >= 0 && j.finished >= 0 && !j.aborted && j.prompt >= 1 &&
         j.output >= 1;
}

std::vector<double> MeasuredGaps(const StepTrace& trace, const std::vector<std::int32_t>& row_of,
                                 std::size_t rows, std::size_t from) {
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const bool gap = i > 0 && trace.steps[i].id != trace.steps[i - 1].id + 1;
    if (gap || (trace.steps[i].Tokens() > 0 && !trace.steps[i].HasMembers())) return {};
  }
  TokenGaps gaps(rows, from);
  for (const TracedStep& step : trace.steps) {
    for (std::size_t i = step.from; i < step.to; ++i) {
      const TracedMember& m = trace.members[i];
      const std::int32_t row = row_of[static_cast<std::size_t>(m.journey)];
      const bool token = !m.prefill || m.computed + m.scheduled >= m.prompt + m.output;
      const TracedJourney& j = trace.journeys[static_cast<std::size_t>(m.journey)];
      // With asynchronous scheduling an ended request is in one step more.
      if (row >= 0 && token && m.output < j.output)
        gaps.Token(static_cast<std::size_t>(row), step.end);
    }
  }
  return gaps.Take();
}

}  // namespace

double KsDistance(std::vector<double>& a, std::vector<double>& b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double most = 0;
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const double at = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= at) ++i;
    while (j < b.size() && b[j] <= at) ++j;
    most = std::max(most, std::fabs(static_cast<double>(i) / static_cast<double>(a.size()) -
                                    static_cast<double>(j) / static_cast<double>(b.size())));
  }
  return most;
}

ReplayDistance DistanceOf(const char* figure, std::vector<double> measured,
                          std::vector<double> simulated) {
  ReplayDistance d;
  d.figure = figure;
  d.measured = static_cast<std::int64_t>(measured.size());
  d.simulated = static_cast<std::int64_t>(simulated.size());
  d.ks = KsDistance(measured, simulated);
  d.measured_p50_ms = measured[measured.size() / 2];
  d.simulated_p50_ms = simulated[simulated.size() / 2];
  d.median_error =
      d.measured_p50_ms > 0 ? 100 * std::fabs(d.simulated_p50_ms / d.measured_p50_ms - 1) : 0;
  d.met = d.ks < kMostKs && d.median_error < kMostMedianError;
  return d;
}

Result<std::vector<ReplayDistance>> CompareReplay(const StepTrace& trace, Scenario scenario) {
  Trace rows;
  std::vector<const TracedJourney*> of_row;
  std::vector<std::int32_t> row_of(trace.journeys.size(), -1);
  for (std::size_t i = 0; i < trace.journeys.size(); ++i) {
    const TracedJourney& j = trace.journeys[i];
    if (!IsComplete(j)) continue;
    row_of[i] = static_cast<std::int32_t>(of_row.size());
    of_row.push_back(&j);
    rows.rows.push_back({j.arrived - of_row[0]->arrived, static_cast<std::int32_t>(j.prompt),
                         static_cast<std::int32_t>(j.output)});
  }
  std::vector<ReplayDistance> distances;
  constexpr TimeNs kThreeYears = 100'000'000'000'000'000;  // ns: no trace is of three years
  if (of_row.size() < kLeastReplayed || of_row.back()->arrived - of_row[0]->arrived > kThreeYears) {
    return distances;
  }
  const auto from = static_cast<std::size_t>(kTrainedShare * static_cast<double>(of_row.size()));
  TracedTimes measured, simulated;
  for (std::size_t i = from; i < of_row.size(); ++i) {
    const TracedJourney& j = *of_row[i];
    const TimeNs first = j.first_response >= 0 ? j.first_response : j.first_token;
    const TimeNs last = j.departed >= 0 ? j.departed : j.finished;
    measured.Add(static_cast<double>(first - j.arrived) * 1e-6,
                 static_cast<double>(last - j.arrived) * 1e-6, j.output);
  }
  measured.itl = MeasuredGaps(trace, row_of, of_row.size(), from);
  *scenario.workload = {};
  scenario.slo.clear();
  scenario.measure = {};
  scenario.cluster.pool().replicas = 1;  // a trace of steps is of one engine
  scenario.workload->requests = static_cast<std::int64_t>(of_row.size());
  scenario.workload->prompt_tokens.distribution = LengthDistribution::kTrace;
  scenario.workload->output_tokens.distribution = LengthDistribution::kTrace;
  scenario.workload->arrivals.process = ArrivalProcess::kTrace;
  TokenGaps gaps(of_row.size(), from);
  SimulationHooks hooks;
  hooks.observer = &gaps;
  Result<Simulation> simulation =
      Simulation::Create(std::move(scenario), std::move(rows), std::move(hooks));
  if (!simulation.ok()) return Issues(simulation.issues());
  while (!simulation.value().Advance(INT64_MAX)) {
  }
  const Report report = simulation.value().Snapshot(ReportDetail::kRequests);
  const std::vector<double>& ttft = report.ColumnOf("ttft_ms");
  const std::vector<double>& e2e = report.ColumnOf("e2e_ms");
  for (std::size_t i = from; i < of_row.size(); ++i) {
    if (std::isfinite(e2e[i])) simulated.Add(ttft[i], e2e[i], of_row[i]->output);
  }
  simulated.itl = gaps.Take();
  const auto add = [&distances](const char* figure, std::vector<double>& a,
                                std::vector<double>& b) {
    if (!a.empty() && !b.empty()) distances.push_back(DistanceOf(figure, a, b));
  };
  add("ttft", measured.ttft, simulated.ttft);
  const bool gaps_known = !measured.itl.empty();
  gaps_known ? add("itl", measured.itl, simulated.itl) : add("tpot", measured.tpot, simulated.tpot);
  add("e2e", measured.e2e, simulated.e2e);
  return distances;
}

Result<std::vector<ReplayDistance>> CompareRun(const Scenario& server, const RunLoad& run) {
  std::vector<ReplayDistance> distances;
  if (run.seen.ttft.size() < kLeastReplayed) return distances;
  ClientTimes simulated;
  for (const Trace& trace : run.draws) {
    TokenGaps gaps(trace.rows.size(), run.from, run.to, run.seen.every);
    const Result<Report> report = RunRequests(ServerOfRun(server, run), trace, run.concurrency,
                                              ReportDetail::kRequests, &gaps);
    if (!report.ok()) return Issues(report.issues());
    const std::vector<double>& ttft = report.value().ColumnOf("ttft_ms");
    const std::vector<double>& e2e = report.value().ColumnOf("e2e_ms");
    for (std::size_t i = run.from; i < std::min(run.to, e2e.size()); ++i) {
      if (!std::isfinite(e2e[i])) continue;
      simulated.ttft.push_back(ttft[i]);
      simulated.e2e.push_back(e2e[i]);
    }
    const std::vector<double> drawn = gaps.Take();
    simulated.itl.insert(simulated.itl.end(), drawn.begin(), drawn.end());
  }
  const auto add = [&](const char* figure, std::vector<double> ClientTimes::*of) {
    if ((run.seen.*of).empty() || (simulated.*of).empty()) return;
    distances.push_back(DistanceOf(figure, run.seen.*of, std::move(simulated.*of)));
  };
  add("ttft", &ClientTimes::ttft);
  add("itl", &ClientTimes::itl);
  add("e2e", &ClientTimes::e2e);
  return distances;
}

}  // namespace servecast
