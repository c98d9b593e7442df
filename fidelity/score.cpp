// See score.h.
#include "score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "beyond_peak.h"
#include "cost/compared.h"
#include "formats/measured_table.h"
#include "measured_replay.h"
#include "measured_setup.h"

namespace servecast {
namespace {

// A rate is served when so much of it comes out.
constexpr double kServedShare = 0.95;

std::optional<double> ErrorOf(const ScoredRow& row, const char* metric) {
  const std::optional<double> error = SignedError(row, metric);
  return error ? std::optional(std::fabs(*error)) : std::nullopt;
}

ErrorSummary Summary(const std::vector<double>& errors) {
  return {PercentileOf(errors, 0.5), PercentileOf(errors, 0.9), errors.size()};
}

Errors ErrorsOf(const std::vector<const ScoredRow*>& rows) {
  Errors errors;
  for (const char* metric : kScored) {
    std::vector<double> all;
    for (const ScoredRow* row : rows) {
      if (const auto error = ErrorOf(*row, metric)) all.push_back(*error);
    }
    if (!all.empty()) errors[metric] = Summary(all);
  }
  return errors;
}

// One value per run, the mean of its repetitions.
Errors OverallErrors(const std::vector<ScoredRow>& rows) {
  Errors errors;
  for (const char* metric : kScored) {
    std::map<std::string, std::vector<double>> runs;
    for (const ScoredRow& row : rows) {
      if (row.run.empty() || row.same_as != nullptr) continue;
      if (const auto error = ErrorOf(row, metric)) runs[row.run].push_back(*error);
    }
    std::vector<double> all;
    for (const auto& [run, values] : runs) {
      double sum = 0;
      for (const double value : values) sum += value;
      all.push_back(sum / static_cast<double>(values.size()));
    }
    if (!all.empty()) errors[metric] = Summary(all);
  }
  return errors;
}

Knee KneeOf(const std::vector<std::pair<double, double>>& served) {  // rate, throughput; ascending
  Knee knee;
  for (const auto& [rate, throughput] : served) {
    if (throughput < kServedShare * rate) {
      knee.first_beyond = rate;
      break;
    }
    knee.last_served = rate;
  }
  return knee;
}

// Of at least three rates.
std::vector<ScoredSweep> SweepsOf(const std::vector<const ScoredRow*>& rows) {
  std::map<std::string, std::vector<const ScoredRow*>> sweeps;
  for (const ScoredRow* row : rows) {
    const MeasuredForm form = row->measured->load.form;
    const bool open = form == MeasuredForm::kPoisson || form == MeasuredForm::kReplay;
    const bool rated = open && row->measured->serving && row->measured->load.rate > 0 &&
                       row->measured->values.contains("throughput");
    if (!rated || !row->skipped.empty() || !row->predicted.contains("throughput")) continue;
    sweeps[row->measured->sweep + "\n" + row->simulated_as].push_back(row);
  }
  std::vector<ScoredSweep> scored;
  for (auto& [name, points] : sweeps) {
    std::stable_sort(points.begin(), points.end(), [](const ScoredRow* a, const ScoredRow* b) {
      return a->measured->load.rate < b->measured->load.rate;
    });
    std::vector<std::pair<double, double>> measured, predicted;
    ScoredSweep sweep;
    sweep.name = name.substr(0, name.find('\n'));
    for (const ScoredRow* point : points) {
      const double rate = point->measured->load.rate;
      if (!measured.empty() && measured.back().first == rate) continue;
      measured.emplace_back(rate, point->measured->values.at("throughput"));
      predicted.emplace_back(rate, point->predicted.at("throughput"));
      const auto preemptions = point->measured->values.find("preemptions");
      if (preemptions == point->measured->values.end()) continue;
      sweep.measured_preemptions += preemptions->second;
      sweep.predicted_preemptions += point->predicted.at("preemptions");
    }
    if (measured.size() < 3) continue;
    sweep.measured = KneeOf(measured);
    sweep.predicted = KneeOf(predicted);
    scored.push_back(std::move(sweep));
  }
  return scored;
}

// All that a prediction depends on.
std::string KeyOf(const Scenario& scenario, const MeasuredLoad& load) {
  const auto lengths = [](const MeasuredLengths& l) {
    return fmt::format("{} {} {} {}", l.mean, l.sigma.value_or(-1), l.min, l.max);
  };
  return fmt::format("{} {} | {} | {} | {} {} {} {} {} {} {} | {} {} {}", scenario.id,
                     static_cast<int>(load.form), lengths(load.input), lengths(load.output),
                     load.rate, load.duration_s, load.requests, load.batch, load.context,
                     load.prefix, load.warm || load.seats_stated,
                     static_cast<const void*>(load.recorded.get()), load.from, load.to);
}

// One request, or one step, is of one replica; clients come to all of them.
void ShareLoad(Measured& row, Scenario& scenario) {
  PoolSpec& pool = scenario.cluster.pool();
  const std::int64_t replicas = pool.replicas;
  switch (row.load.form) {
    case MeasuredForm::kDecodeStep:
      row.load.batch = (row.load.batch + replicas - 1) / replicas;
      [[fallthrough]];
    case MeasuredForm::kPrompt:
    case MeasuredForm::kPrefix:
      pool.replicas = 1;
      break;
    case MeasuredForm::kSaturated:
      row.load.batch *= replicas;  // seats of each
      break;
    default:
      break;
  }
}

ComparedSetup ComparedAs(const Scenario& s) {
  ComparedSetup as{s.hardware.compared_as, s.engine.compared_as, "",
                   s.cluster.pool().tensor_parallel};
  for (const std::string_view feature : ComparedFeatures(s)) {
    as.with += (as.with.empty() ? "" : ", ") + std::string(feature);
  }
  if (s.cluster.pools.size() > 1) as.gpu = "none";  // a label is a pool's
  return as;
}

// Runs rows, each that asks something new.
class Scorer {
 public:
  Scorer(const std::string& folder, const std::vector<std::string>& overrides)
      : setups_(folder, overrides) {}

  Issues OverrideIssues() const { return setups_.OverrideIssues(); }

  ScoredRow Score(const Measured& measured) {
    ScoredRow out;
    out.measured = &measured;
    out.skipped = measured.skipped;
    if (!out.skipped.empty()) return out;
    const Result<SimulatedSetup>& setup = setups_.Read(measured.setup);
    if (!setup.ok()) {
      out.skipped = setup.issues()[0].message;
      return out;
    }
    const SimulatedSetup& as = setup.value();
    out.simulated_as =
        fmt::format("{}{}, {}, {}", as.model, as.weights == "16 bits" ? "" : " in " + as.weights,
                    as.gpu, as.engine);
    out.same_engine = as.same_engine;
    out.as = ComparedAs(as.scenario);
    out.setup = SharedSetup(as.scenario);
    if (measured.serving) {
      out.run = fmt::format("{}\n{}\n{}", as.scenario.id, measured.workload, measured.load.rate);
    }
    Predict(as.scenario, out);
    return out;
  }

 private:
  void Predict(const Scenario& scenario, ScoredRow& out) {
    const std::string key = out.key = KeyOf(scenario, out.measured->load);
    auto known = predicted_.find(key);
    if (known == predicted_.end()) {
      Measured row = *out.measured;
      Scenario shared = scenario;
      ShareLoad(row, shared);
      Result<Metrics> metrics = Issue{"", "a pipeline of stages has no step of its own"};
      if (row.load.form != MeasuredForm::kDecodeStep ||
          scenario.cluster.pool().pipeline_parallel == 1) {
        metrics = replay_.Run(row, std::move(shared));
      }
      known = predicted_.emplace(key, std::move(metrics)).first;
    }
    const Result<Metrics>& predicted = known->second;
    if (!predicted.ok()) {
      const Issue& issue = predicted.issues()[0];
      out.skipped =
          fmt::format("{}{}{}", issue.path, issue.path.empty() ? "" : ": ", issue.message);
      return;
    }
    out.predicted = predicted.value();
    const bool any = std::any_of(std::begin(kScored), std::end(kScored), [&](const char* metric) {
      return ErrorOf(out, metric).has_value();
    });
    if (!any) out.skipped = "no figure is both measured and predicted";
  }

  // Most rows are of a few set-ups.
  std::shared_ptr<const Scenario> SharedSetup(const Scenario& scenario) {
    auto& shared = shared_[scenario.id];
    if (shared == nullptr) shared = std::make_shared<const Scenario>(scenario);
    return shared;
  }

  SetupReader setups_;
  MeasuredReplay replay_;
  std::map<std::uint64_t, std::shared_ptr<const Scenario>> shared_;
  std::map<std::string, Result<Metrics>> predicted_;
};

// As much apart as two files may print one figure: 25.037 and 25.04.
constexpr double kSameFigure = 3e-4;

// Whether two rows whose set-ups were understood alike tell of one run: by what both of them say.
bool IsSameRun(const Measured& a, const Measured& b) {
  const auto figure = [](double x, double y) {
    return std::fabs(x - y) <= kSameFigure * std::max(x, y);
  };
  const auto said = [](const auto& x, const auto& y) { return !x || !y || *x == *y; };
  return figure(a.stated_ttft, b.stated_ttft) && figure(a.stated_e2e, b.stated_e2e) &&
         (a.workload.empty() || b.workload.empty() || a.workload == b.workload) &&
         said(a.setup.max_num_batched_tokens, b.setup.max_num_batched_tokens);
}

// One run under two names, as in a summary of summaries: of these the one whose requests are
// recorded counts, else the first.
void FindRepeated(std::vector<ScoredRow>& rows) {
  std::vector<ScoredRow*> runs;
  for (ScoredRow& row : rows) {
    const bool stated = row.measured->stated_ttft > 0 && row.measured->stated_e2e > 0;
    if (!row.run.empty() && row.skipped.empty() && stated) runs.push_back(&row);
  }
  std::stable_partition(runs.begin(), runs.end(), [](const ScoredRow* row) {
    return row->measured->load.form == MeasuredForm::kReplay;
  });
  // Runs that are told apart, by set-up and rate, then by E2E.
  std::map<std::string, std::multimap<double, const Measured*>> known;
  for (ScoredRow* row : runs) {
    const Measured& m = *row->measured;
    const MeasuredSetup& s = m.setup;
    auto& alike = known[fmt::format("{} {} {} {} {}", row->simulated_as, s.tensor_parallel,
                                    s.pipeline_parallel, s.data_parallel, m.load.rate)];
    bool repeated = false;
    const auto end = alike.upper_bound(m.stated_e2e * (1 + 2 * kSameFigure));
    for (auto at = alike.lower_bound(m.stated_e2e * (1 - 2 * kSameFigure)); at != end; ++at) {
      if (!IsSameRun(*at->second, m)) continue;
      repeated = true;
      if (at->second->set == m.set) continue;  // a repetition, which is a value of its own
      row->same_as = at->second;
      break;
    }
    if (!repeated) alike.emplace(m.stated_e2e, &m);
  }
}

// "row 3: batch 8 context 1000"
std::string RowName(const Measured& m) {
  if (m.file_row == 0) return m.row;
  return fmt::format("row {}{}{}", m.file_row, m.row.empty() ? "" : ": ", m.row);
}

ScoredSet SetOf(const std::string& name, const std::vector<const ScoredRow*>& rows) {
  ScoredSet set;
  set.name = name;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // A row of the file that is two here is skipped when both are, once.
    const bool again = i > 0 && rows[i]->measured->file_row == rows[i - 1]->measured->file_row &&
                       rows[i]->measured->file_row > 0;
    set.rows += again ? 0 : 1;
    if (rows[i]->skipped.empty()) continue;
    if (again && !rows[i - 1]->skipped.empty()) continue;
    set.skipped.emplace_back(RowName(*rows[i]->measured), PlainText(rows[i]->skipped));
  }
  set.errors = ErrorsOf(rows);
  set.sweeps = SweepsOf(rows);
  return set;
}

void CountUnderstood(const ScoredRow& row, std::map<std::string, UnderstoodSetup>& understood) {
  if (row.simulated_as.empty()) return;
  const MeasuredSetup& s = row.measured->setup;
  const std::string engine = s.engine.empty() ? "an unnamed engine" : s.engine;
  const std::string names = fmt::format("{}, {}, {}{}{}", s.model, s.gpu, engine,
                                        s.engine_version.empty() ? "" : " ", s.engine_version);
  UnderstoodSetup& setup = understood[names + "\n" + row.simulated_as];
  setup.names = names;
  setup.presets = row.simulated_as;
  setup.same_engine = row.same_engine;
  ++setup.rows;
}

}  // namespace

std::optional<double> SignedError(const ScoredRow& row, const char* metric) {
  const auto measured = row.measured->values.find(metric);
  const auto predicted = row.predicted.find(metric);
  if (measured == row.measured->values.end() || predicted == row.predicted.end()) {
    return std::nullopt;
  }
  if (!(measured->second > 0) || !std::isfinite(predicted->second)) return std::nullopt;
  return (predicted->second - measured->second) / measured->second;
}

Result<std::vector<ScoredRow>> ScoreRows(const std::vector<MeasuredFolder>& folders,
                                         const std::vector<std::string>& overrides) {
  std::vector<ScoredRow> scored;
  for (const MeasuredFolder& folder : folders) {
    Scorer scorer(folder.path, overrides);
    Issues issues = scorer.OverrideIssues();
    if (!issues.empty()) return issues;
    for (const Measured& row : folder.rows) scored.push_back(scorer.Score(row));
  }
  LeaveOutBeyondPeak(scored);
  FindRepeated(scored);
  return scored;
}

FidelityTable TableOf(const std::vector<ScoredRow>& rows) {
  FidelityTable table;
  std::map<std::string, std::vector<const ScoredRow*>> sets;
  std::map<std::string, UnderstoodSetup> understood;
  std::set<std::string> runs;
  for (const ScoredRow& row : rows) {
    sets[row.measured->set].push_back(&row);
    CountUnderstood(row, understood);
    if (row.same_as != nullptr) {
      ++table.measured_twice;
    } else if (!row.run.empty() && row.skipped.empty()) {
      runs.insert(row.run);
    }
  }
  for (const auto& [name, of_set] : sets) table.sets.push_back(SetOf(name, of_set));
  for (auto& [names, setup] : understood) table.understood.push_back(std::move(setup));
  table.overall = OverallErrors(rows);
  table.runs = runs.size();
  return table;
}

}  // namespace servecast
