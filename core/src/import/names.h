// The presets that people mean by their names for models, GPUs and engines. Whatever a preset does
// not describe has none: rather no prediction than that of another card.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servecast {

// "meta-llama/Llama-3.1-8B-Instruct-FP8" is llama-3.1-8b; "" when none is meant.
std::string ModelPresetOf(std::string_view name);
// "Qwen3-Embedding-8B", "Qwen3-Reranker-4B": a model that pools what it reads, and generates
// nothing.
bool PoolsByName(std::string_view model);
// The same model by two names: but for owner, case, tuning, date and type of the weights.
bool SameModel(std::string_view a, std::string_view b);

// "NVIDIA H100 80GB HBM3" is h100-sxm. What the name says of form factor and memory must be true of
// the preset; where it says nothing, a preset of scenarios, SXM and the larger memory are meant. ""
// when none is meant.
std::string HardwarePresetOf(std::string_view name);

struct EngineName {
  std::string preset;  // "" for an engine without one
  bool exact = true;   // of that very version
};
// Of presets of several versions that with the nearest; of two as near, the earlier. An empty name
// and version mean the default engine.
EngineName EnginePresetOf(std::string_view engine, std::string_view version);

// Whether "0.12.0" is of version `major`.`minor` or a later one; not when it has no number.
bool IsFrom(std::string_view version, int major, int minor);

// Weights in the words of a scenario; "" for 16 bits, nullopt for what is not modelled.
// By a column: "FP8", "bfloat16".
std::optional<std::string> WeightsOf(std::string_view precision);
// By a model's name: "Qwen3-32B-AWQ".
std::optional<std::string> WeightsInName(std::string_view model);

// Whether a model's name says that its weights have 16 bits: "gpt-oss-20b-BF16".
bool SaysSixteenBits(std::string_view model);

// What the name of a folder says: "a100-pcie-llama-3.1-8b" a GPU and a model, "h100-vllm-0.15.1" a
// GPU, which HardwarePresetOf reads, and an engine. "" for what it does not.
std::string ModelIn(std::string_view folder);
struct EngineIn {
  std::string engine, version;
};
EngineIn EngineInName(std::string_view folder);

}  // namespace servecast
