// python -m vidur.main: options as Vidur's nested classes name them (microsoft/vidur@7d47513).
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "import/kinds.h"
#include "import/traffic.h"

namespace servecast {
namespace {

using Json = nlohmann::json;
using enum OptionValue;

constexpr std::string_view kPredictor = "step times are those of latency.backend";
constexpr std::string_view kScheduler = "another scheduler's";
constexpr std::string_view kVidurs = "Vidur's default";

// Those with one meaning; the others are read by the chosen type.
constexpr Option kVidurOptions[] = {
    {"seed", kCount, "seed"},
    {"replica-config-model-name", kName, {}, ""},
    {"replica-config-device", kText, {}, "", {}, {}, kVidurs},
    {"replica-config-tensor-parallel-size", kCount, "pool.tensor_parallel"},
    {"replica-config-num-pipeline-stages", kCount, "pool.pipeline_parallel"},
    {"replica-config-memory-margin-fraction", kNumber, {}, "", {}, {}, kVidurs},
    {"replica-config-network-device", kText, {}, "links are those of the GPU's preset"},
    {"cluster-config-num-replicas", kCount, "pool.replicas"},
    {"global-scheduler-config-type", kText, {}, "", {}, {}, kVidurs},
    {"replica-scheduler-config-type", kText, {}, "", {}, {}, kVidurs},
    {"request-generator-config-type", kText, {}, "", {}, {}, kVidurs},
    {"length-generator-config-type", kText, {}, "", {}, {}, kVidurs},
    {"interval-generator-config-type", kText, {}, "", {}, {}, kVidurs},
    {"synthetic-request-generator-config-num-requests", kCount, "workload.requests"},
    {"synthetic-request-generator-config-duration",
     kNumber,
     {},
     "a number of requests ends a run here"},
    {"trace-request-generator-config-trace-file",
     kText,
     {},
     "a trace: servecast run --trace reads it"},
    {"time-limit", kNumber, {}, "", {}, {}, kVidurs},
    {"poisson-request-interval-generator-config-qps", kNumber, {}, "", {}, {}, kVidurs},
    {"gamma-request-interval-generator-config-qps", kNumber, {}, "", {}, {}, kVidurs},
    {"gamma-request-interval-generator-config-cv", kNumber, {}, "", {}, {}, kVidurs},
    {"fixed-request-length-generator-config-prefill-tokens", kCount, {}, "", {}, {}, kVidurs},
    {"fixed-request-length-generator-config-decode-tokens", kCount, {}, "", {}, {}, kVidurs},
};

class VidurRun {
 public:
  VidurRun(GivenOptions given, Draft& draft) : given_(std::move(given)), draft_(draft) {}

  void Read() {
    if (!draft_.BeginServer("a command of Vidur")) return;
    given_.LeaveUnread(0, true, draft_);
    draft_.TakeModelName(TextOr("replica-config-model-name", "meta-llama/Llama-2-7b-hf"),
                         "--replica_config_model_name");
    // Vidur's a100 has 80 GB, and so has its h100.
    const std::string device = TextOr("replica-config-device", "a100");
    draft_.TakeGpu(device == "a100" ? "A100 SXM 80GB" : device, "--replica_config_device");
    draft_.Take("engine.preset", "vllm", "Vidur");
    draft_.Take("engine.compat", "vidur", "Vidur");
    draft_.Take("engine.enable_prefix_caching", false, "Vidur has no prefix cache");
    draft_.Take("engine.async_scheduling", false, "Vidur schedules when a step has ended");
    Named();
    Scheduler();
    Traffic();
    Rest();
  }

 private:
  std::string Text(std::string_view name) const { return given_.Text(name); }
  std::string TextOr(std::string_view name, std::string_view otherwise) const {
    const std::string text = Text(name);
    return text.empty() ? std::string(otherwise) : text;
  }
  double NumberOr(std::string_view name, double otherwise) const {
    return Value(name).value_or(otherwise);
  }
  // Of any option, in the table or not.
  std::optional<double> Value(std::string_view name) const {
    for (const GivenOption& given : given_.options) {
      std::string plain = given.name.substr(std::min<std::size_t>(2, given.name.size()));
      std::replace(plain.begin(), plain.end(), '_', '-');
      if (plain == name) return NumberIn(given.value.value_or(""), true);
    }
    return std::nullopt;
  }

  void Named() {
    for (const GivenOption& given : given_.options) {
      if (given.option == nullptr || given.option->path.empty()) continue;
      const auto number = NumberIn(given.value.value_or(""));
      if (number && *number >= 1) {
        draft_.Take(draft_.ServerPath(given.option->path), NumberJson(*number), given.Words());
      } else {
        draft_.Ignore(given.Words(), "found no number from 1 behind it");
      }
    }
    const double margin = NumberOr("replica-config-memory-margin-fraction", 0.1);
    if (margin >= 0 && margin < 0.99) {
      draft_.Take("engine.gpu_memory_utilization", NumberJson(1 - margin),
                  "--replica_config_memory_margin_fraction");
    }
    if (const double limit = NumberOr("time-limit", 0); limit > 0) {
      draft_.Take("measure.horizon_s", NumberJson(limit), "--time_limit");
    }
    const std::string router = TextOr("global-scheduler-config-type", "round_robin");
    const char* ours = router == "lor"      ? "least_outstanding"
                       : router == "random" ? "random"
                                            : "round_robin";
    draft_.Take("cluster.router.policy", ours, "--global_scheduler_config_type " + router);
  }

  void Scheduler() {
    const std::string type = TextOr("replica-scheduler-config-type", "sarathi");
    const bool known = type == "sarathi" || type == "orca" || type == "lightllm" ||
                       type == "faster_transformer" || type == "vllm";
    if (!known) draft_.Ignore("--replica_scheduler_config_type " + type, kNotModelled);
    const std::string policy = known ? type : "sarathi";
    std::string of = policy == "faster_transformer" ? "faster-transformer" : policy;
    of += "-scheduler-config-";
    const std::string why = "Vidur's scheduler " + policy;
    draft_.Take("scheduler.policy", policy == "vllm" ? "vllm_v0" : policy, why);
    draft_.Take("engine.max_num_seqs", NumberJson(NumberOr(of + "batch-size-cap", 128)), why);
    draft_.Take("engine.block_size", NumberJson(NumberOr(of + "block-size", 16)), why);
    draft_.Take("engine.watermark", NumberOr(of + "watermark-blocks-fraction", 0.01), why);
    if (const auto blocks = Value(of + "num-blocks"); blocks && *blocks >= 2) {
      draft_.Take("engine.num_gpu_blocks_override", NumberJson(*blocks), why);
    }
    const double tokens = policy == "sarathi" ? NumberOr(of + "chunk-size", 512)
                                              : NumberOr(of + "max-tokens-in-batch", 4096);
    draft_.Take("engine.max_num_batched_tokens", NumberJson(std::max(tokens, 1.0)), why);
  }

  void Traffic() {
    if (TextOr("request-generator-config-type", "synthetic") == "trace_replay") return;
    const std::string gaps = TextOr("interval-generator-config-type", "poisson");
    if (gaps == "gamma") {
      draft_.Take(
          "workload.arrivals",
          {{"process", "gamma"},
           {"rate_per_s", NumberJson(NumberOr("gamma-request-interval-generator-config-qps", 0.2))},
           {"cv", NumberJson(NumberOr("gamma-request-interval-generator-config-cv", 0.5))}},
          "Vidur's gaps");
    } else if (gaps == "static") {
      draft_.Take("workload.arrivals", {{"process", "static"}}, "Vidur's gaps");
    } else {
      if (gaps != "poisson")
        draft_.Ignore("--interval_generator_config_type " + gaps,
                      "a trace of gaps is not read here");
      draft_.Take("workload.arrivals",
                  {{"process", "poisson"},
                   {"rate_per_s",
                    NumberJson(NumberOr("poisson-request-interval-generator-config-qps", 0.5))}},
                  "Vidur's gaps");
    }
    draft_.Assume("workload.requests", 128, "Vidur's default");
    Lengths();
  }

  void Lengths() {
    const std::string type = TextOr("length-generator-config-type", "fixed");
    if (type == "trace") {
      draft_.Ignore("--length_generator_config_type trace",
                    "a trace: servecast run --trace reads it");
      return;
    }
    if (type == "fixed") {
      const std::string of = "fixed-request-length-generator-config-";
      TakeLengths(FixedLength(NumberOr(of + "prefill-tokens", 2048)),
                  FixedLength(NumberOr(of + "decode-tokens", 512)), "Vidur's lengths", draft_);
      return;
    }
    const std::string of = type + "-request-length-generator-config-";
    const double ratio = std::max(NumberOr(of + "prefill-to-decode-ratio", 20), 1e-3);
    Json prompt = {{"distribution", type == "zipf" ? "zipf" : "uniform"},
                   {"min", NumberJson(NumberOr(of + "min-tokens", 1024))},
                   {"max", NumberJson(NumberOr(of + "max-tokens", 4096))}};
    if (type == "zipf") prompt["theta"] = NumberOr(of + "theta", 0.6);
    TakeLengths(std::move(prompt), {{"distribution", "ratio"}, {"ratio", NumberJson(ratio)}},
                "Vidur's lengths", draft_);
    draft_.Remark(
        "Vidur draws prompt and output together; here both follow the prompt's distribution");
  }

  // What has no meaning here, or another's.
  void Rest() {
    static constexpr std::string_view kRead[] = {"scheduler-config", "interval-generator-config",
                                                 "length-generator-config"};
    for (const GivenOption& given : given_.options) {
      if (given.option != nullptr && (!given.option->path.empty() || given.option->why.empty()))
        continue;
      std::string plain = given.name;
      std::replace(plain.begin(), plain.end(), '_', '-');
      const auto has = [&plain](std::string_view part) {
        return plain.find(part) != std::string::npos;
      };
      if (given.option != nullptr) {
        draft_.Ignore(given.Words(), given.option->why);
      } else if (has("predictor") || has("prediction")) {
        draft_.Ignore(given.Words(), kPredictor);
      } else if (has("metrics") || has("log-level") || has("cache-dir")) {
        draft_.Ignore(given.Words(), kNoTime);
      } else if (!std::any_of(std::begin(kRead), std::end(kRead), has)) {
        draft_.Ignore(given.Words(), "is not known here");
      } else if (given.value && given.value->find('$') == 0) {
        draft_.Ignore(given.Words(), "the text does not say what that is; Vidur's default here");
      } else if (has("max-waiting-iters")) {
        draft_.Ignore(given.Words(), kScheduler);
      }
    }
  }

  GivenOptions given_;
  Draft& draft_;
};

}  // namespace

std::span<const Option> VidurOptions() { return kVidurOptions; }

void ReadVidurCommand(const ImportSource& source, Draft& draft) {
  for (const CommandWords& words : source.commands) {
    const auto main = std::find_if(words.begin(), words.end(), [](const std::string& word) {
      return word == "vidur.main" || word.find("vidur/main.py") != std::string::npos;
    });
    // Options alone, as records of runs have them.
    const bool options =
        words[0].find("_config_") != std::string::npos && words[0].substr(0, 2) == "--";
    if (main == words.end() && !options) continue;
    const auto begin = main == words.end() ? words.begin() : main + 1;
    ReadNamingIdle(
        ReadOptions(std::span<const std::string>(words).subspan(
                        static_cast<std::size_t>(begin - words.begin())),
                    kVidurOptions),
        draft, [](GivenOptions given, Draft& into) { VidurRun(std::move(given), into).Read(); });
  }
}

}  // namespace servecast
