// What of a set-up tells how near it is to another one: the features that the model of the error
// knows (docs/decisions/069-evidence-and-bands.md). Measured rows and scenarios are
// compared by this one form, whoever fills it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "servecast/scenario.h"

namespace servecast {

// How a server is loaded, in the order of kRunKindNames.
enum class RunKind { kServing, kLoop, kSaturation, kStep, kPrompt, kAtOnce, kMaxLoad, kTurns };
inline constexpr std::string_view kRunKindNames[] = {"serving", "loop",   "saturation", "step",
                                                     "prompt",  "atonce", "maxload",    "turns"};
// nullopt: no such kind.
std::optional<RunKind> RunKindOf(std::string_view name);

// Names are those of presets where there is one; "" is unknown, and differs from all others.
struct SetupFeatures {
  std::string laboratory;   // who measured; "": a user's own server, near to nobody's
  std::string model;        // as ModelKey has it
  std::string form;         // dense, dense-window, moe, moe-mla, moe-sink
  std::string weights;      // 16, fp8, int4 ...: model.quantization
  std::string gpu, engine;  // presets: "h100-sxm", "vllm-0.19"
  RunKind run = RunKind::kServing;
  bool expert_parallel = false;
  double tensor_parallel = 1;
  double active_billions = 0;  // parameters that a token goes through; 0: unknown
  // Mean tokens of a prompt and of an answer, and clients; 0: unknown.
  double prompt = 0, output = 0, clients = 0;
  double gpus = 1;  // of one server

  bool Experts() const { return form.rfind("moe", 0) == 0; }
  bool Vllm() const { return engine.rfind("vllm", 0) == 0; }
  // "vllm" of "vllm-0.19".
  std::string_view EngineFamily() const;
  // "hopper" of "h100-sxm"; "": unknown.
  std::string_view GpuFamily() const;
  // Who makes it: "nvidia", "amd"; "": unknown.
  std::string_view GpuMaker() const;

  friend bool operator==(const SetupFeatures&, const SetupFeatures&) = default;
};

// In lower case, with hyphens: "Llama-3.1-8B" and "llama-3.1-8b" are one model.
std::string ModelKey(std::string_view name);

// Of a scenario with one pool. A GPU or an engine whose figures were changed is an unknown one. Of
// a workload with several lengths, the means; what a trace has is unknown.
SetupFeatures FeaturesOf(const Scenario& scenario);

// Whether one laboratory measured both, on the same set-up under the same kind of load.
bool SameSetup(const SetupFeatures& a, const SetupFeatures& b);
// The same whoever measured.
bool SameServer(const SetupFeatures& a, const SetupFeatures& b);

// How much may differ between two set-ups. `setup`: without lengths and clients.
struct SetupDistance {
  double setup = 0, all = 0;
};
SetupDistance DistanceOf(const SetupFeatures& a, const SetupFeatures& b);

// near: another set-up of the same engine, GPU, form of model, width of weights, expert parallelism
// or none, and kind of run. middle: the same engine, family of GPU, and experts or none. else far.
enum class Nearness { kNear, kMiddle, kFar };
inline constexpr std::string_view kNearnessNames[] = {"near", "middle", "far"};
Nearness NearnessOf(const SetupFeatures& a, const SetupFeatures& b);

}  // namespace servecast
