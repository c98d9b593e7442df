// vLLM's options, of `vllm serve` and its older names: one table that commands, manifests and
// exports share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/options.h"
#include "import/words.h"

namespace servecast {

std::span<const Option> VllmOptions();

// What stands around a server's options.
struct ServerContext {
  std::string from;     // "a command of vLLM"
  std::string version;  // "0.11.0"; "" when nothing says it
  std::string role;     // "prefill", "decode"; "": whole requests, or what its options say
  std::int64_t replicas = 1;
  std::int64_t gpus = 0;                   // that it asks for; 0: not said
  std::string model = {};                  // where it is not among the options
  const Variables* environment = nullptr;  // as far as the text sets it
  std::string image = {};                  // of its container
  const Variables* files = nullptr;        // what the text writes into files, by their names
  CommandWords options = {};  // that stand beside its words; where both say one, its words count

  // nullptr: not set.
  const std::string* Variable(std::string_view name) const;
};

// One server of vLLM by its options ("MODEL --max-num-seqs 128").
void ReadVllmServer(std::span<const std::string> words, const ServerContext& context, Draft& draft);

// "vllm/vllm-openai:v0.11.0" is 0.11.0, and so of SGLang's images; "" when the tag is no version,
// or one of somebody else's image, who counts otherwise.
std::string VersionOfImage(std::string_view image);

// GPUs in "0,1" and "device=0,1", by number or name; empty: all, or none.
std::vector<std::string> DevicesIn(std::string_view text);

// What a server of any engine is in a scenario: replicas, roles, the GPUs that it asks for.
struct ServerShape {
  std::int64_t tensor = 1, pipeline = 1, data = 1;
  std::string role;
};
// Experts that are spread over `experts` ranks, above 1, of a group of `tensor` GPUs. Warns where
// that is a part of the group: there SGLang and TensorRT-LLM split each expert, too, which is not
// modelled.
void TakeExpertRanks(std::int64_t experts, std::int64_t tensor, const std::string& words,
                     Draft& draft);
void TakeServerShape(const ServerShape& shape, const ServerContext& context, Draft& draft);

}  // namespace servecast
