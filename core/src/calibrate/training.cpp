// See training.h.
#include "calibrate/training.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "calibrate/ridge.h"
#include "cost/physics_features.h"
#include "experiment/statistics.h"
#include "io/json_document.h"

namespace servecast {
namespace {

constexpr std::size_t kEnoughBeta = 200, kEnoughAlpha = 100;  // samples of a configuration
constexpr std::size_t kEnoughIdle = 50;                       // of no queue, for their median
constexpr double kMostDegrees = 0.1;                          // of a configuration's samples

// One vector that is to be trained.
struct Task {
  const char* name;
  std::vector<std::size_t> order;     // of columns: of two that say the same, the first is used
  std::vector<double> before;         // coefficients of the scenario
  std::size_t preemption = SIZE_MAX;  // the column that depends on gamma
  std::vector<std::size_t> positive = {};  // coefficients that must not be below 0
  std::size_t enough = kEnoughBeta;
  double within = 15, across = 25, most = 3;  // limits: per cent, per cent, medians
};

using SampleList = std::vector<const TrainingSample*>;

std::vector<double> RowOf(const Task& task, const TrainingSample& sample, std::size_t gamma) {
  std::vector<double> row = sample.features;
  if (task.preemption < row.size()) row[task.preemption] = sample.smoothed[gamma];
  return row;
}

TrainingError ErrorOf(const Task& task, std::string of, const SampleList& samples,
                      const std::vector<double>& coefficients, std::size_t gamma) {
  TrainingError error;
  error.of = std::move(of);
  error.samples = static_cast<std::int64_t>(samples.size());
  std::vector<double> targets;
  double relative = 0, above = 0, squares = 0;
  for (const TrainingSample* sample : samples) {
    // A time is never below 0.
    const double off =
        std::max(0.0, Dot(RowOf(task, *sample, gamma), coefficients)) - sample->target_us;
    targets.push_back(sample->target_us);
    squares += off * off;
    error.most_us = std::max(error.most_us, std::fabs(off));
    if (sample->target_us <= 0) continue;
    relative += std::fabs(off) / sample->target_us;
    ++above;
  }
  if (samples.empty()) return error;
  if (above > 0) error.mape = 100 * relative / above;
  error.rmse_us = std::sqrt(squares / static_cast<double>(samples.size()));
  std::nth_element(targets.begin(),
                   targets.begin() + static_cast<std::ptrdiff_t>(targets.size() / 2),
                   targets.end());
  error.median_us = targets[targets.size() / 2];
  return error;
}

// A named part of the samples, judged by itself.
struct Part {
  const char* name;
  bool (*holds)(const TrainingSample&);
};
constexpr Part kStepParts[] = {
    {"mostly prefill", [](const TrainingSample& s) { return 2 * s.prefill_tokens >= s.tokens; }},
    {"mostly decode", [](const TrainingSample& s) { return 2 * s.prefill_tokens < s.tokens; }},
    {"prefill alone", [](const TrainingSample& s) { return s.prefill_tokens == s.tokens; }},
    {"decode alone", [](const TrainingSample& s) { return s.prefill_tokens == 0; }},
    {"preempting", [](const TrainingSample& s) { return s.preemption > 0.01; }},
    {"KV cache above 90 %", [](const TrainingSample& s) { return s.kv_usage > 0.9; }},
    {"1 to 4 tokens", [](const TrainingSample& s) { return s.tokens <= 4; }},
};
constexpr Part kRequestParts[] = {
    {"scheduled at once", [](const TrainingSample& s) { return s.waiting == 0; }},
    {"queued", [](const TrainingSample& s) { return s.waiting > 0; }},
    {"preempting", [](const TrainingSample& s) { return s.preemption > 0.01; }},
    {"KV cache above 90 %", [](const TrainingSample& s) { return s.kv_usage > 0.9; }},
};

struct BinAxis {
  const char* by;
  double (*value)(const TrainingSample&);
  std::vector<double> edges;
};

class Trainer {
 public:
  // `configurations`: their samples by time.
  Trainer(Task task, std::vector<SampleList> configurations, std::vector<std::string> names,
          std::vector<std::string>& warnings)
      : task_(std::move(task)),
        all_(std::move(configurations)),
        names_(std::move(names)),
        warnings_(warnings) {
    out_.name = task_.name;
    out_.coefficients = out_.low = out_.high = task_.before;
    for (const SampleList& samples : all_) {
      const auto n = static_cast<std::size_t>(kTrainedShare * static_cast<double>(samples.size()));
      const auto cut = samples.begin() + static_cast<std::ptrdiff_t>(n);
      fitted_.emplace_back(samples.begin(), cut);
      held_out_.emplace_back(cut, samples.end());
      out_.samples += static_cast<std::int64_t>(samples.size());
    }
  }

  // `gamma`: the place of one that is fixed; else of the best.
  TrainedVector Run(std::optional<std::size_t>& gamma) {
    const std::size_t columns = task_.before.size();
    if (static_cast<std::size_t>(out_.samples) < 2 * (columns + kFoldBlocks)) {
      if (out_.samples > 0) {
        warnings_.push_back(
            Format("{}: {} samples are too few to train {} coefficients, which stay "
                   "as they are",
                   task_.name, out_.samples, columns));
      }
      return std::move(out_);
    }
    out_.trained = true;
    Choose(gamma);
    const std::size_t g = *gamma;
    RowFactor factor = FactorOf(fitted_, g);
    const std::vector<bool> used = IndependentColumns(factor, task_.order);
    SayUnused(factor, used);
    const RidgeFit fit = FitRidge(factor, used, out_.lambda);
    out_.coefficients = fit.coefficients;
    out_.degrees = fit.degrees;
    AddIntervals(factor, used, g);
    AddErrors(g);
    AddCrossErrors(g);
    AddChecks();
    return std::move(out_);
  }

 private:
  RowFactor FactorOf(const std::vector<SampleList>& parts, std::size_t g,
                     std::size_t except = SIZE_MAX) const {
    RowFactor factor(task_.before.size());
    for (std::size_t c = 0; c < parts.size(); ++c) {
      if (c == except) continue;
      for (const TrainingSample* s : parts[c]) {
        factor.Add(RowOf(task_, *s, g), s->target_us, s->weight);
      }
    }
    return factor;
  }

  // A part of each configuration's time.
  std::vector<SampleList> Block(std::size_t block) const {
    std::vector<SampleList> parts;
    for (const SampleList& samples : fitted_) {
      const auto at = [&](std::size_t b) {
        return samples.begin() + static_cast<std::ptrdiff_t>(samples.size() * b / kFoldBlocks);
      };
      parts.emplace_back(at(block), at(block + 1));
    }
    return parts;
  }

  // The lambda and gamma of least mean error, where each block of time is predicted from those
  // before it. O(gammas * (samples + lambdas * folds * columns^3)).
  void Choose(std::optional<std::size_t>& gamma) {
    bool preempts = false;
    for (const SampleList& samples : fitted_) {
      for (const TrainingSample* s : samples) preempts |= s->smoothed[1] > 0;
    }
    std::vector<std::size_t> gammas = {gamma.value_or(1)};
    if (!gamma && preempts && task_.preemption != SIZE_MAX) gammas = {1, 0, 2};
    double best = std::numeric_limits<double>::infinity();
    for (const std::size_t g : gammas) {
      std::array<double, std::size(kLambdas)> sums{};
      RowFactor before(task_.before.size());
      for (std::size_t block = 0; block < kFoldBlocks; ++block) {
        const std::vector<SampleList> now = Block(block);
        if (block > 0) {
          const std::vector<bool> used = IndependentColumns(before, task_.order);
          for (std::size_t l = 0; l < std::size(kLambdas); ++l) {
            sums[l] += RootMeanSquare(now, g, FitRidge(before, used, kLambdas[l]).coefficients);
          }
        }
        before.Add(FactorOf(now, g));
      }
      for (std::size_t l = 0; l < std::size(kLambdas); ++l) {
        if (!(sums[l] < best)) continue;
        best = sums[l];
        out_.lambda = kLambdas[l];
        gamma = g;
      }
    }
    if (!gamma) gamma = 1;
  }

  double RootMeanSquare(const std::vector<SampleList>& parts, std::size_t g,
                        const std::vector<double>& coefficients) const {
    double squares = 0, weights = 0;
    for (const SampleList& samples : parts) {
      for (const TrainingSample* s : samples) {
        const double off = Dot(RowOf(task_, *s, g), coefficients) - s->target_us;
        squares += s->weight * off * off;
        weights += s->weight;
      }
    }
    return weights > 0 ? std::sqrt(squares / weights) : 0;
  }

  void SayUnused(RowFactor& factor, const std::vector<bool>& used) {
    std::string never, like;
    const std::size_t n = used.size() + 1;
    for (std::size_t j = 0; j < used.size(); ++j) {
      if (used[j]) continue;
      bool any = false;
      for (std::size_t i = 0; i < n; ++i) any |= factor.Triangle()[i * n + j] != 0;
      std::string& list = any ? like : never;
      list += Format("{}{}", list.empty() ? "" : ", ", j + 1);
    }
    if (!never.empty()) {
      warnings_.push_back(Format("{} {}: never seen, so 0 and not known", task_.name, never));
    }
    if (!like.empty()) {
      warnings_.push_back(
          Format("the traces cannot tell {} {} from the others, which say the same "
                 "here: 0; another load, model or GPU would tell",
                 task_.name, like));
    }
  }

  // What shrinking hides an interval must not: it is that of least squares without lambda, and
  // reaches to the coefficient.
  void AddIntervals(RowFactor& factor, const std::vector<bool>& used, std::size_t g) {
    const RidgeFit fit = FitRidge(factor, used, 0);
    std::vector<std::vector<double>> rows;
    std::vector<double> residuals, weights;
    for (const SampleList& samples : fitted_) {
      for (const TrainingSample* s : samples) {
        rows.push_back(RowOf(task_, *s, g));
        residuals.push_back(Dot(rows.back(), fit.coefficients) - s->target_us);
        weights.push_back(s->weight);
      }
    }
    const double degrees = std::max(3.0, static_cast<double>(rows.size()) - fit.degrees);
    const std::vector<double> half =
        HalfWidths(factor, used, fit, rows, residuals, weights, StudentT(degrees, 0.975));
    for (std::size_t j = 0; j < half.size(); ++j) {
      out_.low[j] = std::min(out_.coefficients[j], fit.coefficients[j] - half[j]);
      out_.high[j] = std::max(out_.coefficients[j], fit.coefficients[j] + half[j]);
    }
  }

  static SampleList Joined(const std::vector<SampleList>& parts) {
    SampleList all;
    for (const SampleList& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  void AddErrors(std::size_t g) {
    const SampleList held = Joined(held_out_);
    out_.errors.push_back(ErrorOf(task_, "held out, before", held, task_.before, g));
    out_.errors.push_back(ErrorOf(task_, "fitted", Joined(fitted_), out_.coefficients, g));
    out_.errors.push_back(ErrorOf(task_, "held out", held, out_.coefficients, g));
    const bool steps = std::string_view(task_.name) == "beta";
    const Part* part = steps ? std::begin(kStepParts) : std::begin(kRequestParts);
    const Part* end = steps ? std::end(kStepParts) : std::end(kRequestParts);
    for (; part != end; ++part) {
      SampleList some;
      for (const TrainingSample* s : held) {
        if (part->holds(*s)) some.push_back(s);
      }
      if (some.empty()) continue;
      out_.errors.push_back(
          ErrorOf(task_, Format("held out, {}", part->name), some, out_.coefficients, g));
    }
    AddResiduals(held, g);
  }

  void AddResiduals(const SampleList& held, std::size_t g) {
    const BinAxis axes[] = {
        {"batch",
         [](const TrainingSample& s) { return s.batch; },
         {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1e9}},
        {"context",
         [](const TrainingSample& s) { return s.context; },
         {0, 1, 512, 1024, 2048, 4096, 8192, 16384, 32768, 1e9}},
        {"queue", [](const TrainingSample& s) { return s.waiting; }, {0, 1, 2, 5, 10, 100, 1e9}},
        {"utilization",
         [](const TrainingSample& s) { return s.utilization; },
         {0, 0.05, 0.2, 0.4, 0.6, 0.8, 1e9}},
    };
    for (const BinAxis& axis : axes) {
      for (std::size_t i = 0; i + 1 < axis.edges.size(); ++i) {
        ResidualBin bin{axis.by, axis.edges[i], axis.edges[i + 1]};
        double target = 0;
        for (const TrainingSample* s : held) {
          const double x = axis.value(*s);
          if (x < bin.from || x >= bin.to) continue;
          const double off = Dot(RowOf(task_, *s, g), out_.coefficients) - s->target_us;
          ++bin.samples;
          target += s->target_us;
          bin.mean_percent += off;
          bin.rms_percent += off * off;
        }
        if (bin.samples == 0 || target <= 0) continue;
        const auto n = static_cast<double>(bin.samples);
        bin.rms_percent = 100 * std::sqrt(bin.rms_percent / n) / (target / n);
        bin.mean_percent = 100 * bin.mean_percent / target;
        out_.residuals.push_back(bin);
      }
    }
  }

  // Each configuration, predicted by the others.
  void AddCrossErrors(std::size_t g) {
    for (std::size_t c = 0; all_.size() > 1 && c < all_.size(); ++c) {
      RowFactor factor = FactorOf(all_, g, c);
      const RidgeFit fit = FitRidge(factor, IndependentColumns(factor, task_.order), out_.lambda);
      out_.errors.push_back(ErrorOf(task_, "left out: " + names_[c], all_[c], fit.coefficients, g));
      const TrainingError& error = out_.errors.back();
      out_.checks.push_back({Format("mape of {}, which was left out", names_[c]), error.mape,
                             task_.across, error.mape < task_.across});
    }
  }

  void AddChecks() {
    for (std::size_t c = 0; c < all_.size(); ++c) {
      const auto n = static_cast<double>(all_[c].size());
      if (all_[c].size() < task_.enough) {
        warnings_.push_back(Format("{}: {} has {} samples; {} are recommended", task_.name,
                                   names_[c], all_[c].size(), task_.enough));
      }
      if (n > 0 && out_.degrees / n > kMostDegrees) {
        warnings_.push_back(
            Format("{}: {} degrees of freedom for {} samples of {}: it may fit "
                   "noise; take more samples",
                   task_.name, ShortNumber(out_.degrees), all_[c].size(), names_[c]));
      }
    }
    const TrainingError& held = out_.errors[2];
    out_.checks.push_back(
        {"mape of what was held out", held.mape, task_.within, held.mape < task_.within});
    const double most = held.median_us > 0 ? held.most_us / held.median_us : 0;
    out_.checks.push_back({"largest error in medians", most, task_.most, most < task_.most});
    for (const std::size_t j : task_.positive) {
      out_.checks.push_back(
          {Format("sign of {} {}", task_.name, j + 1), out_.coefficients[j], 0, out_.high[j] >= 0});
    }
  }

  Task task_;
  std::vector<SampleList> all_, fitted_, held_out_;
  std::vector<std::string> names_;
  std::vector<std::string>& warnings_;
  TrainedVector out_;
};

// The median wait of who finds no queue is that of a pass of the scheduler.
void CorrectNoise(std::vector<TrainingSample>& wait, const std::string& name,
                  std::vector<std::string>& found) {
  std::vector<double> idle;
  for (const TrainingSample& s : wait) {
    if (s.waiting == 0) idle.push_back(s.target_us);
  }
  if (idle.size() <= kEnoughIdle) {
    found.push_back(
        Format("{}: {} requests found no queue, too few of {} to take their median off "
               "all waits",
               name, idle.size(), kEnoughIdle + 1));
    return;
  }
  std::nth_element(idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(idle.size() / 2),
                   idle.end());
  const double median = idle[idle.size() / 2];
  for (TrainingSample& s : wait) s.target_us = std::max(0.0, s.target_us - median);
  found.push_back(Format("{}: {} us, the median wait without a queue, are taken off all waits",
                         name, ShortNumber(median)));
}

// Where another is taken up a request waits for it, which is no time of its own: it says nothing,
// unless all do.
void LeaveOutWhoWaited(std::vector<TrainingSample>& alpha) {
  const auto behind = [](const TrainingSample& s) { return s.behind; };
  if (!std::all_of(alpha.begin(), alpha.end(), behind)) std::erase_if(alpha, behind);
}

// The same samples with the features of the blackbox model.
void MakeBlackbox(TrainingSamples& samples) {
  for (TrainingSample& s : samples.beta) {
    s.features = {1, s.prefill_tokens, s.tokens - s.prefill_tokens};
  }
  for (TrainingSample& s : samples.alpha) s.features = {1, s.prompt};
  samples.wait.clear();
}

// Time of an output token beside the GPU: from the end at the core to the client's.
double PerOutputToken(const std::vector<TracedServer>& servers) {
  double late = 0, tokens = 0;
  for (const TracedServer& server : servers) {
    for (const TracedJourney& j : server.trace.journeys) {
      if (j.finished < 0 || j.departed < j.finished || j.output <= 0) continue;
      late += static_cast<double>(j.departed - j.finished) * 1e-3 * j.output;
      tokens += j.output * j.output;
    }
  }
  return tokens > 0 ? late / tokens : 0;
}

Task BetaTask(const Scenario& s, bool blackbox) {
  Task task{"beta", {}, s.latency.beta_coefficients};
  if (blackbox) {
    task.order = {0, 1, 2};
    task.before = s.latency.beta;
    task.positive = {0, 1, 2};
    return task;
  }
  // Seconds before shares: what carries over to another model or GPU.
  task.order = {0, 1, 2, 4, 3, 8, 12, 13, 15, 10, 5, 6, 7, 14, 11, 9};
  task.preemption = kBetaPreemption;
  task.positive = {0, 2, 10, 15};
  return task;
}

Task RequestTask(const char* name, std::vector<double> before, bool blackbox) {
  Task task{name, {}, std::move(before)};
  task.enough = kEnoughAlpha;
  task.within = 25;
  task.across = 40;
  task.most = 5;
  task.order = {2, 3, 4, 0, 1, 5, 6, 7, 8, 9, 10};
  task.preemption = kAlphaPreemption;
  task.positive = {3};
  if (!blackbox) return task;
  task.order = {1, 0};
  task.before.resize(2);
  task.preemption = SIZE_MAX;
  task.positive = {0, 1};
  return task;
}

std::vector<SampleList> ListsOf(const std::vector<TrainingSamples>& all,
                                std::vector<TrainingSample> TrainingSamples::*which) {
  std::vector<SampleList> lists;
  for (const TrainingSamples& samples : all) {
    SampleList list;
    for (const TrainingSample& s : samples.*which) list.push_back(&s);
    std::stable_sort(
        list.begin(), list.end(),
        [](const TrainingSample* a, const TrainingSample* b) { return a->at < b->at; });
    lists.push_back(std::move(list));
  }
  return lists;
}

}  // namespace

Result<Training> Train(const std::vector<TracedServer>& servers, const TrainingOptions& options) {
  Training training;
  training.backend = options.blackbox ? "blackbox" : "physics";
  std::vector<TrainingSamples> samples;
  std::vector<std::string> names;
  Issues issues;
  for (const TracedServer& server : servers) {
    Result<TrainingSamples> made = SamplesOf(server.trace, server.scenario);
    if (!made.ok()) {
      issues.insert(issues.end(), made.issues().begin(), made.issues().end());
      continue;
    }
    training.found.insert(training.found.end(), made.value().found.begin(),
                          made.value().found.end());
    LeaveOutWhoWaited(made.value().alpha);
    if (options.blackbox) MakeBlackbox(made.value());
    if (options.noise_correction) {
      CorrectNoise(made.value().wait, server.trace.name, training.found);
    }
    if (server.scenario.engine.enable_prefix_caching &&
        std::none_of(server.trace.journeys.begin(), server.trace.journeys.end(),
                     [](const TracedJourney& j) { return j.hit_ratio >= 0; })) {
      training.warnings.push_back(Format(
          "{}: the prefix cache is on and no snapshot says what prompts found in it; alpha 7 "
          "is not known",
          server.trace.name));
    }
    samples.push_back(std::move(made.value()));
    names.push_back(server.trace.name);
  }
  if (!issues.empty()) return issues;
  const Scenario& s = servers[0].scenario;
  std::optional<std::size_t> gamma;
  const auto train = [&](Task task, std::vector<TrainingSample> TrainingSamples::*which) {
    return Trainer(std::move(task), ListsOf(samples, which), names, training.warnings).Run(gamma);
  };
  training.beta = train(BetaTask(s, options.blackbox), &TrainingSamples::beta);
  if (!training.beta.trained) {
    return Issue{"", Format("found {} steps to train on, allowed twice as many as coefficients and "
                            "more",
                            training.beta.samples)};
  }
  training.alpha =
      train(RequestTask("alpha", options.blackbox ? s.latency.alpha : s.latency.alpha_coefficients,
                        options.blackbox),
            &TrainingSamples::alpha);
  if (!options.blackbox) {
    training.wait =
        train(RequestTask("wait", s.latency.wait_coefficients, false), &TrainingSamples::wait);
  }
  training.gamma = kGammas[*gamma];
  if (options.blackbox) training.per_output_token_us = PerOutputToken(servers);
  return training;
}

std::string LatencyOf(const Training& training, const Scenario& scenario) {
  if (training.backend == "blackbox") {
    std::vector<double> alpha = training.alpha.coefficients;
    for (double& value : alpha) value = std::max(0.0, value);
    alpha.push_back(training.per_output_token_us);
    std::vector<double> beta = training.beta.coefficients;
    for (double& value : beta) value = std::max(0.0, value);
    return CompactJson(nlohmann::json{{"backend", "blackbox"}, {"alpha", alpha}, {"beta", beta}});
  }
  return CompactJson(nlohmann::json{{"backend", "physics"},
                                    {"variant", scenario.latency.variant},
                                    {"alpha_coefficients", training.alpha.coefficients},
                                    {"beta_coefficients", training.beta.coefficients},
                                    {"wait_coefficients", training.wait.coefficients},
                                    {"preemption_gamma", training.gamma}});
}

}  // namespace servecast
