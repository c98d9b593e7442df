// See training_pack.h.
#include "calibrate/training_pack.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "calibrate/pack.h"
#include "calibrate/pack_json.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr const char* kAlphaNames[] = {"seats taken",
                                       "KV usage",
                                       "the prompt's arithmetic",
                                       "bias",
                                       "drain of the queue",
                                       "queue and memory",
                                       "prefix cache",
                                       "room for the prompt",
                                       "preemptions",
                                       "memory behind the GPU's",
                                       "bias under load"};
constexpr const char* kBetaNames[] = {"arithmetic of prefill",
                                      "attention of prefill",
                                      "weights",
                                      "attention of decodes",
                                      "reading the KV cache",
                                      "share of the token budget",
                                      "share of prefill",
                                      "experts touched",
                                      "all-reduce",
                                      "KV heads",
                                      "small steps",
                                      "preemptions",
                                      "KV blocks transferred",
                                      "KV blocks read in host memory",
                                      "mixed step",
                                      "bias"};
constexpr const char* kBlackboxBeta[] = {"a step", "a prefill token", "a decode token"};
constexpr const char* kBlackboxAlpha[] = {"a request", "a prompt token"};

Ordered VectorJson(const Training& training, const TrainedVector& v) {
  Ordered coefficients = Ordered::array();
  for (std::size_t i = 0; i < v.coefficients.size(); ++i) {
    coefficients.push_back({{"feature", FeatureName(training.backend, v.name, i)},
                            {"value", v.coefficients[i]},
                            {"low", PackNumber(v.low[i])},
                            {"high", PackNumber(v.high[i])},
                            {"unit", "us"}});
  }
  Ordered errors = Ordered::array();
  for (const TrainingError& e : v.errors) {
    errors.push_back({{"of", Printable(e.of)},
                      {"samples", e.samples},
                      {"mape", PackNumber(e.mape)},
                      {"rmse_us", PackNumber(e.rmse_us)},
                      {"max_us", PackNumber(e.most_us)},
                      {"median_us", PackNumber(e.median_us)}});
  }
  Ordered checks = Ordered::array();
  for (const TrainingCheck& c : v.checks) {
    checks.push_back({{"of", Printable(c.what)},
                      {"value", PackNumber(c.value)},
                      {"limit", c.limit},
                      {"met", c.met}});
  }
  Ordered residuals = Ordered::array();
  for (const ResidualBin& b : v.residuals) {
    residuals.push_back({{"by", b.by},
                         {"from", b.from},
                         {"to", b.to},
                         {"samples", b.samples},
                         {"mean_percent", PackNumber(b.mean_percent)},
                         {"rms_percent", PackNumber(b.rms_percent)}});
  }
  return {{"trained", v.trained},
          {"samples", v.samples},
          {"lambda", v.lambda},
          {"degrees", PackNumber(v.degrees)},
          {"coefficients", coefficients},
          {"errors", errors},
          {"checks", checks},
          {"residuals", residuals}};
}

// Lowest and highest of the samples' own, as PackWarnings compares them.
Ordered SeenJson(const std::vector<TracedServer>& servers) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double low = kNone, high = 0, out_low = kNone, out_high = 0;
  for (const TracedServer& server : servers) {
    for (const TracedJourney& j : server.trace.journeys) {
      if (j.prompt > 0) low = std::min(low, j.prompt);
      high = std::max(high, j.prompt);
      if (j.output > 0) out_low = std::min(out_low, j.output);
      out_high = std::max(out_high, j.output);
    }
  }
  Ordered seen = Ordered::object();
  if (high > 0) seen["prompt_tokens"] = {low, high};
  if (out_high > 0) seen["output_tokens"] = {out_low, out_high};
  return seen;
}

// The form of a coefficient file, so that --coefficients takes a pack, too.
Ordered FileJson(const Training& training, const Scenario& s, const PackOrigin& origin,
                 const std::string& date) {
  const auto held_out = [](const TrainedVector& v) {
    return v.errors.size() > 2 ? PackNumber(v.errors[2].rmse_us) : 0;
  };
  return {{"spec_version", "1.0"},
          {"variant", s.latency.variant},
          {"alpha_target", "arrived_to_queued"},
          {"trained_on",
           {{"model", origin.model},
            {"hardware", origin.gpu},
            {"tp", origin.tensor_parallel},
            {"engine_version", origin.engine},
            {"training_date", date},
            {"n_samples_alpha", training.alpha.samples},
            {"n_samples_beta", training.beta.samples},
            {"lambda_alpha", training.alpha.lambda},
            {"lambda_beta", training.beta.lambda},
            {"gamma", training.gamma},
            {"hold_out_rmse_alpha", held_out(training.alpha)},
            {"hold_out_rmse_beta", held_out(training.beta)}}},
          {"alpha_coefficients", training.alpha.coefficients},
          {"beta_coefficients", training.beta.coefficients}};
}

}  // namespace

const char* FeatureName(std::string_view backend, std::string_view vector, std::size_t feature) {
  if (backend == "blackbox") {
    return vector == "beta" ? kBlackboxBeta[feature] : kBlackboxAlpha[feature];
  }
  return vector == "beta" ? kBetaNames[feature] : kAlphaNames[feature];
}

std::string TrainingPackJson(const Training& training, const std::vector<TracedServer>& servers,
                             const std::vector<ReplayDistance>& before,
                             const std::vector<ReplayDistance>& after, const std::string& date) {
  const Scenario& s = servers[0].scenario;
  PackOrigin origin = OriginOf(s, {}, date);
  for (const std::string& line : training.found) origin.files.push_back(Printable(line));
  origin.measurements = training.beta.samples + training.alpha.samples;
  std::vector<std::string> warnings;
  for (const std::string& line : training.warnings) warnings.push_back(Printable(line));
  Ordered pack = PackHead(training.backend);
  pack["latency"] = Ordered::parse(LatencyOf(training, s));
  pack["training"] = {{"beta", VectorJson(training, training.beta)},
                      {"alpha", VectorJson(training, training.alpha)}};
  pack["replay"] = ReplayJson(before, after);
  pack["seen"] = SeenJson(servers);
  pack["warnings"] = warnings;
  pack["provenance"] = OriginJson(origin);
  if (training.backend == "physics") {
    pack["training"]["wait"] = VectorJson(training, training.wait);
    pack["physics_coefficients"] = FileJson(training, s, origin, date);
  }
  return pack.dump(2, ' ', false, Ordered::error_handler_t::replace);
}

}  // namespace servecast
