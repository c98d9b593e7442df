// A scenario is data: everything that a user may vary, and nothing that code derives from it.
// Member initialisers are the defaults; ranges, units and help of every member stand once, in
// core/src/io/fields.cpp: the parser, the canonical text and the catalogue read them there, and so
// do the command's help and the page's form.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/boxed.h"
#include "servecast/cluster_spec.h"
#include "servecast/engine_spec.h"
#include "servecast/hardware_spec.h"
#include "servecast/model_spec.h"
#include "servecast/result.h"
#include "servecast/target_spec.h"

namespace servecast {

struct WorkloadSpec;
extern template class Boxed<WorkloadSpec>;

inline constexpr int kScenarioSchema = 1;
// Fixed by memory: a request costs about 100 bytes in a run.
inline constexpr std::int64_t kMaxRequests = 5'000'000;

// Published with BLIS for every model and GPU (defaults.yaml of inference-sim/inference-sim,
// trained_physics_coefficients, "iter29").
inline constexpr std::array<double, 3> kBlisAlpha = {15563.199579, 777.3455, 45.907545};
inline constexpr std::array<double, 10> kBlisBeta = {
    0.152128,   0,          1.36252915,  0.752037, 32.09546717,
    4.41684444, 126.024825, 481.8613888, 0,        1.94710771};

// Of the features of the latency model "physics", in microseconds. As they are here a step takes
// what its features that are times say, unscaled; nothing was fitted, so nothing else has a weight.
inline constexpr std::array<double, 16> kPhysicsBeta = {1e6, 1e6, 1e6, 1e6, 1e6, 0,   0, 0,
                                                        1e6, 0,   0,   0,   1e6, 1e6, 0, 0};
inline constexpr std::array<double, 11> kPhysicsWait = {0, 0, 0, 0, 1e6};  // the queue's drain

struct LatencySpec {
  std::string backend = "auto";
  // Microseconds. blackbox, roofline: delay before the queue = alpha[0] + alpha[1]*prompt;
  // alpha[2] per output token, outside the GPU. blackbox: step = beta[0] + beta[1]*prefill tokens
  // + beta[2]*decode tokens.
  std::vector<double> alpha = std::vector<double>(3, 0.0);
  std::vector<double> beta = std::vector<double>(3, 0.0);
  // trained_physics: before the queue, after the last token, per output token; and the factors of
  // its parts.
  std::vector<double> physics_alpha{kBlisAlpha.begin(), kBlisAlpha.end()};
  std::vector<double> physics_beta{kBlisBeta.begin(), kBlisBeta.end()};
  // physics: weights of its features for the delay before the queue, for the time of a step, and,
  // in estimates only, for the wait in the queue; and of a step in the average of preemptions.
  std::string variant = "corrected";
  std::vector<double> alpha_coefficients = std::vector<double>(11, 0.0);
  std::vector<double> beta_coefficients{kPhysicsBeta.begin(), kPhysicsBeta.end()};
  std::vector<double> wait_coefficients{kPhysicsWait.begin(), kPhysicsWait.end()};
  double preemption_gamma = 0.3;
  // roofline. Share of the peak that prefill and decode reach; default: BLIS's for the H100.
  std::optional<double> mfu_prefill, mfu_decode;
  // roofline, trained_physics: what these two know of a model beyond ModelSpec.
  std::int64_t weight_bytes = 2;               // of a weight
  double peak_fp8_tflops = 0;                  // used with weights of one byte; 0: the 16-bit peak
  std::int64_t interleave_moe_layer_step = 0;  // experts in one layer of this + 1; 0: in all
  std::int64_t intermediate_size_mlp = 0;      // of the layers between
};

// Of the form of a pack and the meaning of its constants; other versions are refused.
inline constexpr std::string_view kCalibrationSpecVersion = "1.0";

// Where constants come from that were fitted to a server's measurements (docs/how-to/calibrate.md).
// It changes no step, only what is known of them.
struct CalibrationSpec {
  std::string spec_version;          // "": constants are of no calibration
  std::string backend = "analytic";  // the latency model whose they are
  std::string coefficients;          // of a training: hash of those of the section latency
  // The measured server, by the names of presets where these mean it; `with`: ComparedFeatures.
  std::string model, gpu, engine, with;
  std::int64_t tensor_parallel = 1;
  std::string stated;  // the same as its files have it
  std::string files;   // what these were
  std::string date;
  std::int64_t measurements = 0;
  struct Parameter {
    std::string path;
    double value = 0, low = 0, high = 0;  // 95 %
    friend bool operator==(const Parameter&, const Parameter&) = default;
  };
  std::vector<Parameter> parameters;
  struct Range {
    std::string of;  // "prompt_tokens", "batch", "context_tokens", "output_tokens", "rate_per_s"...
    double low = 0, high = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::vector<Range> seen;
  struct Error {
    std::string of, figure;  // "prompt", "step", "run"; "ttft", "tpot", "e2e", "step", "wait"
    bool held_out = false;
    std::int64_t points = 0;
    double median = 0, max = 0;  // absolute, per cent of what was measured
    friend bool operator==(const Error&, const Error&) = default;
  };
  std::vector<Error> errors;

  bool On() const { return !spec_version.empty(); }
  friend bool operator==(const CalibrationSpec&, const CalibrationSpec&) = default;
};

// A whole question to the simulator, presets resolved.
struct Scenario {
  std::string name;
  std::string description;
  std::int64_t seed = 1;
  ModelSpec model;
  HardwareSpec hardware;
  EngineSpec engine;
  ClusterSpec cluster;
  SchedulerSpec scheduler;
  LatencySpec latency;
  CalibrationSpec calibration;
  Boxed<WorkloadSpec> workload;  // workload_spec.h
  std::vector<SloSpec> slo;
  MeasureSpec measure;

  // Written by the parser: the canonical document (presets by name, sorted keys, defaults dropped),
  // and the same with presets inlined. Labels (name, description) are not in `resolved_text`'s
  // fingerprint part: renaming a scenario does not change what it simulates.
  std::string canonical_text;
  std::string resolved_text;
  std::uint64_t id = 0;            // hash of canonical_text
  std::uint64_t content_hash = 0;  // hash of the resolved scenario without labels

  // Reduces the scenario to this pool alone; the texts stay.
  void UsePool(std::size_t pool);

  // Replicas that run in lock step, as the ranks of one engine. REQUIRES: one pool.
  std::int64_t RanksInStep() const {
    return scheduler.RanksInStep() ? cluster.pool().attention_data_parallel : 1;
  }
};

// Reads a scenario document (schema 1). All issues are collected; unknown keys come with the
// nearest known one. O(size of the text).
Result<Scenario> ParseScenario(std::string_view text);
// Without its id, texts and content hash, which take half the time: for who has many to run.
Result<Scenario> ParseToRun(std::string_view text);

// `text` with members set: each override is "path.to.member=value" (list items by number), value
// as JSON or, failing that, as text. A name alone is a section's preset, and a scheduler's policy:
// "model=qwen3-32b" is model.preset, and later members stand beside it. Only the form is checked
// here; ParseScenario checks the rest.
Result<std::string> ApplyOverrides(std::string_view text,
                                   const std::vector<std::string>& overrides);

// The document of an embedded preset scenario; nullopt when there is none of that name.
std::optional<std::string_view> ScenarioPreset(std::string_view id);

// The preset scenario whose name is nearest to `id`; "" when none is near.
std::string NearestScenarioPreset(std::string_view id);

// The readable link grammar "p=PRESET&path=value&...", percent-decoded here, to a document.
Result<std::string> ParseReadableLink(std::string_view fragment);

// Presets, every field of a scenario (type, unit, range, default, help), policies, columns: JSON,
// as wasm/servecast.d.ts describes it.
std::string CatalogJson();
// The same, with the columns that only the command writes.
std::string CommandCatalogJson();

// The same for a terminal.
std::string CatalogText();

// 16 hex digits.
std::string HashText(std::uint64_t hash);

}  // namespace servecast
