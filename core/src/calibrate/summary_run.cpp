// See summary_run.h.
#include "calibrate/summary_run.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace servecast {
namespace {

constexpr std::int64_t kSummaryDraws = 3;

}  // namespace

Issues AddSummaryRun(const SummaryRun& run, Measurements& read) {
  CalibrationPoint point;
  point.form = PointForm::kRun;
  point.label = run.label;
  const auto add = [&point](Figure figure, std::optional<double> ms) {
    if (ms && *ms > 0) point.figures.push_back({figure, *ms});
  };
  add(Figure::kTtft, run.ttft_ms);
  add(Figure::kTpot, run.tpot_ms);
  add(Figure::kE2e, run.e2e_ms);
  if (point.figures.empty()) {
    return {{run.label, "found no mean of TTFT, TPOT or E2E, allowed one at least"}};
  }
  RunLoad load;
  const std::int64_t requests = std::max<std::int64_t>(1, std::llround(run.requests));
  const double rate = run.arrivals.rate_per_s;
  load.rate_per_s = rate;
  load.one_server = run.one_server;
  if (rate <= 0) load.concurrency = run.arrivals.clients;
  const bool drawn = rate > 0 && !run.arrivals.even;
  load.draws = DrawRuns(requests, rate, run.prompt, run.output, drawn ? kSummaryDraws : 1);
  if (rate > 0 && run.arrivals.even) {
    for (std::size_t i = 0; i < load.draws[0].rows.size(); ++i) {
      load.draws[0].rows[i].arrival_ns = std::llround(static_cast<double>(i) / rate * 1e9);
    }
  }
  point.run = std::make_shared<const RunLoad>(std::move(load));
  read.points.push_back(std::move(point));
  return {};
}

}  // namespace servecast
