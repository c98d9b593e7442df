// Recipes of srt-slurm, by which InferenceX runs servers on clusters: options of SGLang, vLLM or
// TensorRT-LLM for prefill, decode or both, the GPU, and the load that is sent.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/member_options.h"
#include "import/traffic.h"

namespace servecast {
namespace {

using RecipeJson = nlohmann::json;

// Short names of models in these recipes.
std::string ModelOfRecipe(const std::string& path) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"dsr1", "deepseek-ai/DeepSeek-R1"},
      {"deepseek-r1", "deepseek-ai/DeepSeek-R1"},
      {"gptoss", "openai/gpt-oss-120b"},
      {"qwen", "Qwen/Qwen3-235B-A22B"}};
  const std::string lower = LowerCase(path);
  for (const auto& [name, model] : kNames) {
    if (lower.find(name) == 0) return model;
  }
  return path;
}

std::int64_t WorkersOf(const RecipeJson* resources, const std::string& role) {
  if (resources == nullptr) return 1;
  const std::string key = (role.empty() ? std::string("agg") : role) + "_workers";
  return std::clamp<std::int64_t>(ParseCount(TextIn(*resources, key.c_str())).value_or(1), 1, 1024);
}

struct RecipeEngine {
  const char* config;
  CommandWords command;
  bool (*read)(const CommandWords&, ServerContext, Draft&);
};

void ReadWorkers(const RecipeEngine& engine, const RecipeJson& options, const std::string& role,
                 const RecipeJson& recipe, Draft& draft) {
  RecipeJson own = options;
  ServerContext context;
  context.from = "srt-slurm's " + (role.empty() ? std::string("workers") : role);
  context.role = role;
  context.replicas = WorkersOf(ObjectIn(recipe, "resources"), role);
  context.model = TextIn(options, "served-model-name");
  const RecipeJson* model = ObjectIn(recipe, "model");
  if (context.model.find('/') == std::string::npos && model != nullptr) {
    context.model = ModelOfRecipe(TextIn(*model, "path"));
  }
  // A path on the cluster.
  for (const char* key : {"model-path", "model", "model_path", "served-model-name"}) own.erase(key);
  CommandWords words = engine.command;
  for (std::string& word : OptionWords(own)) words.push_back(std::move(word));
  if (model != nullptr) context.version = VersionOfImage(TextIn(*model, "container"));
  engine.read(words, context, draft);
}

// "512x1024x2048": one after another; the first counts.
void TakeRecipeLoad(const RecipeJson& benchmark, Draft& draft) {
  const auto number = [&benchmark](const char* key) {
    return NumberIn(TextIn(benchmark, key)).value_or(0);
  };
  if (number("isl") < 1 || number("osl") < 1) return;
  TakeLengths(FixedLength(number("isl")), FixedLength(number("osl")), "benchmark.isl and osl",
              draft);
  const std::string all = TextIn(benchmark, "concurrencies");
  const std::string first = all.substr(0, all.find_first_of("x, "));
  const auto users = ParseCount(first);
  if (!users || *users < 1 || *users > 1'000'000) return;
  if (first.size() < all.size()) {
    draft.Warn(
        Format("benchmark.concurrencies is {} here, the first of {}: which of these is meant?",
               first, ShownText(all, 80)));
  }
  BenchTraffic traffic;
  traffic.concurrency = *users;
  TakeArrivals(traffic, "benchmark.concurrencies", draft);
}

void ReadRecipe(const RecipeJson& recipe, Draft& draft) {
  const RecipeJson* backend = ObjectIn(recipe, "backend");
  if (backend == nullptr) return;
  const RecipeEngine kEngines[] = {{"sglang_config", {"sglang", "serve"}, ReadSglangLaunch},
                                   {"vllm_config", {"vllm", "serve"}, ReadVllmLaunch},
                                   {"trtllm_config", {"trtllm-serve", "serve"}, ReadTrtllmLaunch}};
  const std::size_t before = draft.servers();
  for (const RecipeEngine& engine : kEngines) {
    const RecipeJson* config = ObjectIn(*backend, engine.config);
    if (config == nullptr) continue;
    for (const char* role : {"prefill", "decode", "aggregated"}) {
      const RecipeJson* options = ObjectIn(*config, role);
      const bool whole = std::string_view(role) == "aggregated";
      if (options != nullptr) ReadWorkers(engine, *options, whole ? "" : role, recipe, draft);
    }
  }
  if (draft.servers() == before) return;
  if (const RecipeJson* resources = ObjectIn(recipe, "resources"); resources != nullptr) {
    const std::string gpu = TextIn(*resources, "gpu_type");
    if (!gpu.empty()) draft.TakeGpu(gpu, "resources.gpu_type");
  }
  if (const RecipeJson* benchmark = ObjectIn(recipe, "benchmark"); benchmark != nullptr) {
    TakeRecipeLoad(*benchmark, draft);
  }
}

}  // namespace

void ReadSrtSlurm(const ImportSource& source, Draft& draft) {
  for (const RecipeJson& document : source.manifests) {
    if (document.is_object() && TextIn(document, "kind").empty()) ReadRecipe(document, draft);
  }
}

}  // namespace servecast
