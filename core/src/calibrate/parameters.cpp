// See parameters.h. Left out is what no measurement of one server can tell from these: the time of
// a layer's kernels from that of a step, and the sampler's from that of a sequence.
#include "calibrate/parameters.h"

namespace servecast {
namespace {

// Ranges are those of the fields (io/fields_model.cpp, io/fields_engine.cpp), but that a server is
// neither so slow that it is broken.
constexpr CalibrationParameter kParameters[] = {
    {ConstantOf("hardware.compute_efficiency"), "Arithmetic", "share of the data sheet's peak", "1",
     0.02, 1, true, 0.25, 0.01, false,
     "single prompts of 1,024 to 8,192 tokens, one output token each"},
    {ConstantOf("hardware.attention_efficiency"), "Attention", "share of the peak", "1", 0.02, 1,
     true, 0.25, 0.01, false, "single prompts of 16,384 tokens and more"},
    {ConstantOf("hardware.bandwidth_efficiency"), "Memory bandwidth, weights",
     "share of the data sheet's", "1", 0.02, 1, true, 0.25, 0.01, false,
     "decodes at batch 1 with a short context"},
    {ConstantOf("hardware.kv_bandwidth_efficiency"), "Memory bandwidth, KV",
     "share of the data sheet's", "1", 0.02, 1, true, 0.25, 0.01, false,
     "decodes at batch 1 with contexts from 1,000 to 60,000 tokens"},
    {ConstantOf("hardware.mixed_attention_rows"), "Attention beside prompts", "rows", "1", 1, 256,
     false, 32, 1, true, "a run with prompts among decodes, at half of the highest rate"},
    {ConstantOf("engine.step_overhead_us"), "Per step", "µs", "us", 0, 1e5, false, 500, 50, true,
     "decodes of a second, smaller model on the same host"},
    {ConstantOf("engine.sequence_overhead_us"), "Per sequence and step", "µs", "us", 0, 1e4, false,
     25, 1, false, "decodes with short contexts at batches of 1, 32 and 128"},
    {ConstantOf("engine.request_overhead_ms"), "Per request", "ms", "ms", 0, 1e4, false, 5, 0.1,
     false, "single prompts of 128 tokens, one output token each"},
    {ConstantOf("engine.prompt_token_overhead_us"), "Per prompt token", "µs", "us", 0, 1e4, false,
     10, 0.5, true, "prompts behind a cached prefix of 1,024 to 32,768 tokens"},
    {ConstantOf("engine.delivery_overhead_us"), "Delivery of a token", "µs", "us", 0, 1e4, false,
     100, 5, true, "TTFT of runs at a low rate and at a high one"},
};

// Coefficients are times, so nothing is inverse; bounds are those of the fields, but for the time
// of a step, as a step of no time would never end.
template <std::vector<double> LatencySpec::*kOf, std::size_t kAt>
constexpr FittedConstant Coefficient(const char* path) {
  return {path, [](const Scenario& s) { return (s.latency.*kOf)[kAt]; },
          [](Scenario& s, double v) { (s.latency.*kOf)[kAt] = v; }};
}

constexpr CalibrationParameter kCoefficients[] = {
    {Coefficient<&LatencySpec::beta, 0>("latency.beta.0"), "Per step", "µs", "us", 1, 1e6, false,
     1000, 50, false, "decodes at batch 1"},
    {Coefficient<&LatencySpec::beta, 1>("latency.beta.1"), "Per prompt token of a step", "µs", "us",
     0, 1e5, false, 25, 1, false, "single prompts of 1,024 to 8,192 tokens, one output token each"},
    {Coefficient<&LatencySpec::beta, 2>("latency.beta.2"), "Per decode of a step", "µs", "us", 0,
     1e5, false, 25, 1, false, "decodes at batches of 1, 32 and 128"},
    {Coefficient<&LatencySpec::alpha, 0>("latency.alpha.0"), "Per request", "µs", "us", 0, 1e7,
     false, 5000, 100, false, "single prompts of 128 tokens, one output token each"},
    {Coefficient<&LatencySpec::alpha, 1>("latency.alpha.1"), "Per prompt token, before the queue",
     "µs", "us", 0, 1e4, false, 10, 0.5, true,
     "prompts behind a cached prefix of 1,024 to 32,768 tokens"},
    {Coefficient<&LatencySpec::alpha, 2>("latency.alpha.2"), "Delivery of a token", "µs", "us", 0,
     1e5, false, 500, 5, true, "TTFT and E2E of runs at a low rate"},
};

}  // namespace

std::span<const CalibrationParameter> CalibrationParametersOf(const Scenario& server) {
  if (server.latency.backend == "blackbox") return kCoefficients;
  return kParameters;
}

std::span<const CalibrationParameter> CalibrationParameters() { return kParameters; }

const CalibrationParameter* FindCalibrationParameter(std::string_view path) {
  for (const CalibrationParameter& parameter : kParameters) {
    if (path == parameter.path) return &parameter;
  }
  return nullptr;
}

}  // namespace servecast
