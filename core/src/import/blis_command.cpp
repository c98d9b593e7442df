// blis run: options of inference-sim's command, of February 2026 and of today.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "import/kinds.h"
#include "import/traffic.h"

namespace servecast {
namespace {

using Json = nlohmann::json;
using enum OptionValue;

constexpr std::string_view kFile = "another file: what it says is not here";

constexpr std::string_view kBliss = "BLIS's default";

constexpr Option kBlisOptions[] = {
    {"model", kName, {}, ""},
    {"hardware", kText, {}, "", "--gpu"},
    {"tp", kCount, "pool.tensor_parallel"},
    {"num-instances", kCount, {}, "", {}, {}, kBliss},
    {"max-num-seqs", kCount, "engine.max_num_seqs"},
    {"max-num-running-reqs", kCount, "engine.max_num_seqs"},
    {"max-num-batched-tokens", kCount, "engine.max_num_batched_tokens"},
    {"max-num-scheduled-tokens", kCount, "engine.max_num_batched_tokens"},
    {"max-model-len", kCount, "engine.max_model_len"},
    {"block-size-in-tokens", kCount, "engine.block_size"},
    {"gpu-memory-utilization", kNumber, "engine.gpu_memory_utilization"},
    {"total-kv-blocks", kCount, "engine.num_gpu_blocks_override"},
    {"long-prefill-token-threshold", kCount, "engine.long_prefill_token_threshold"},
    {"enable-expert-parallel", kSwitch, "engine.enable_expert_parallel"},
    {"seed", kCount, "seed"},
    {"rate", kNumber, {}, "", {}, {}, kBliss},
    {"num-requests", kCount, "workload.requests", {}, "--max-prompts"},
    {"concurrency", kCount, {}, "", {}, {}, kBliss},
    {"think-time-ms", kNumber, {}, "", {}, {}, kBliss},
    {"prompt-tokens", kNumber, {}, "", {}, {}, kBliss},
    {"prompt-tokens-stdev", kNumber, {}, "", {}, {}, kBliss},
    {"prompt-tokens-min", kNumber, {}, "", {}, {}, kBliss},
    {"prompt-tokens-max", kNumber, {}, "", {}, {}, kBliss},
    {"output-tokens", kNumber, {}, "", {}, {}, kBliss},
    {"output-tokens-stdev", kNumber, {}, "", {}, {}, kBliss},
    {"output-tokens-min", kNumber, {}, "", {}, {}, kBliss},
    {"output-tokens-max", kNumber, {}, "", {}, {}, kBliss},
    {"prefix-tokens", kCount, {}, "", {}, {}, kBliss},
    {"latency-model", kText, {}, "", {}, {}, kBliss},
    {"roofline", kFlag, {}, ""},
    {"alpha-coeffs", kText, {}, "", {}, {}, kBliss},
    {"beta-coeffs", kText, {}, "", {}, {}, kBliss},
    {"routing-policy", kText, {}, "", {}, {}, kBliss},
    {"scheduler", kText, {}, "", {}, {}, kBliss},
    {"priority-policy", kText, {}, "", {}, {}, kBliss},
    {"horizon", kNumber, {}, "", {}, {}, kBliss},
    {"kv-cpu-blocks", kCount, {}, "say engine.kv_offload.cpu_gib, in whole blocks"},
    {"kv-offload-threshold", kNumber, {}, "is a member of engine.kv_offload, which needs cpu_gib"},
    {"kv-transfer-bandwidth", kNumber, {}, "is a member of engine.kv_offload, which needs cpu_gib"},
    {"kv-transfer-base-latency",
     kNumber,
     {},
     "is a member of engine.kv_offload, which needs cpu_gib"},
    {"kv-offload-config", kText, {}, kFile},
    {"workload", kText, {}, "", {}, {}, kBliss},
    {"workload-spec", kText, {}, kFile},
    {"workload-traces-filepath", kText, {}, "a trace: servecast run --trace reads it"},
    {"policy-config", kText, {}, kFile},
    {"defaults-filepath", kText, {}, "published coefficients: servecast coefficients lists them"},
    {"coeffs-filepath", kText, {}, "published coefficients: servecast coefficients lists them"},
    {"model-config-folder", kText, {}, kFile},
    {"hardware-config", kText, {}, kFile},
    {"vllm-version", kText, {}, "BLIS's rules know no versions of vLLM"},
    {"dp", kCount, {}, "BLIS's rules here have one replica"},
    {"admission-policy", kText, {}, kNotModelled},
    {"routing-scorers", kText, {}, "say the weights of cluster.router"},
    {"results-path", kText, {}, kNoTime},
    {"metrics-path", kText, {}, kNoTime},
    {"log", kText, {}, kNoTime},
};

// BLIS's own shapes of requests: mean and standard deviation of prompt and output.
struct Preset {
  std::string_view name;
  double prompt, prompt_stdev, output, output_stdev;
};
constexpr Preset kPresets[] = {{"chatbot", 256, 100, 256, 100},
                               {"contentgen", 1024, 150, 1024, 200},
                               {"summarization", 4096, 500, 512, 150},
                               {"multidoc", 10240, 1200, 1536, 300},
                               {"distribution", 512, 256, 512, 256}};

std::optional<Json> NumbersOf(std::string_view list) {
  Json numbers = Json::array();
  for (const std::string_view item : Split(list, ",")) {
    const auto number = NumberIn(Stripped(item));
    if (!number) return std::nullopt;
    numbers.push_back(NumberJson(*number));
  }
  return numbers;
}

class Run {
 public:
  Run(GivenOptions given, Draft& draft) : given_(std::move(given)), draft_(draft) {}

  void Read() {
    if (!draft_.BeginServer("blis run")) return;
    given_.LeaveUnread(0, true, draft_);
    if (const std::string model = given_.Text("model"); !model.empty())
      draft_.TakeModelName(model, "--model");
    if (const std::string gpu = given_.Text("hardware"); !gpu.empty())
      draft_.TakeGpu(gpu, "--hardware");
    Rules();
    std::vector<std::string_view> apart;
    for (const Option& option : kBlisOptions) {
      if (option.path.empty() && option.why.empty()) apart.push_back(option.name);
    }
    TakeOptions(given_, apart, draft_);
    Cluster();
    Arrivals();
    Lengths();
    if (const auto horizon = given_.Number("horizon"); horizon && *horizon > 0 && *horizon < 1e15) {
      draft_.Take("measure.horizon_s", NumberJson(*horizon / 1e6), "--horizon, in us");
    }
  }

 private:
  double Number(std::string_view name, double otherwise) const {
    return given_.Number(name).value_or(otherwise);
  }

  std::string OrDefault(std::string_view name) const {
    return given_.Find(name) == nullptr ? "BLIS's default" : Format("--{}", name);
  }

  // Whose quirks: the names of options tell the age.
  void Rules() {
    const bool old = given_.Find("max-num-running-reqs") != nullptr ||
                     given_.Find("max-num-scheduled-tokens") != nullptr ||
                     given_.Find("priority-policy") != nullptr;
    draft_.Take("engine.preset", "vllm", "blis run");
    if (Number("num-instances", 1) > 1) {
      draft_.Remark("BLIS's rules here have one replica: several follow vLLM's");
    } else {
      draft_.Take("engine.compat", old ? "blis-2026-02" : "blis",
                  old ? "options of February 2026" : "blis run");
      Backend(old);
    }
    Order();
  }

  void Backend(bool old) {
    const auto alpha = NumbersOf(given_.Text("alpha-coeffs")),
               beta = NumbersOf(given_.Text("beta-coeffs"));
    std::string model = given_.Text("latency-model");
    if (given_.Find("roofline") != nullptr) model = "roofline";
    const bool three = alpha && beta && alpha->size() == 3 && beta->size() == 3;
    if (three && (model.empty() || model == "blackbox")) {
      draft_.Take("latency", {{"backend", "blackbox"}, {"alpha", *alpha}, {"beta", *beta}},
                  "--alpha-coeffs, --beta-coeffs");
    } else if (model == "roofline") {
      draft_.Take("latency", {{"backend", "roofline"}}, "roofline");
    } else if (old) {
      draft_.Remark(
          "coefficients of the model and GPU are BLIS's defaults: servecast run --coefficients "
          "names one of its sets");
    } else {
      draft_.Take("latency", {{"backend", "trained_physics"}},
                  model.empty() ? "BLIS's default" : "--latency-model");
    }
  }

  void Order() {
    const auto take = [this](
                          std::string_view option, const char* path,
                          std::initializer_list<std::pair<std::string_view, const char*>> names) {
      const std::string text = given_.Text(option);
      if (text.empty()) return;
      for (const auto& [theirs, ours] : names) {
        if (text == theirs) return draft_.Take(path, ours, Format("--{} {}", option, text));
      }
      draft_.Ignore(Format("--{} {}", option, text), kNotModelled);
    };
    take("scheduler", "scheduler.order",
         {{"fcfs", "fcfs"},
          {"priority-fcfs", "priority_fcfs"},
          {"sjf", "sjf"},
          {"reverse-priority", "reverse_priority"}});
    take("priority-policy", "scheduler.priority",
         {{"constant", "constant"}, {"slo-based", "slo_based"}, {"inverted-slo", "inverted_slo"}});
    if (Number("num-instances", 1) <= 1) return;
    take("routing-policy", "cluster.router.policy",
         {{"round-robin", "round_robin"},
          {"least-loaded", "least_outstanding"},
          {"weighted", "weighted"},
          {"random", "random"}});
  }

  void Cluster() {
    const double instances = std::clamp(Number("num-instances", 1), 1.0, 1024.0);
    draft_.Take("cluster.pools.0.replicas", NumberJson(instances), OrDefault("num-instances"));
  }

  void Arrivals() {
    if (const auto users = given_.Number("concurrency"); users && *users >= 1) {
      draft_.Take("workload.arrivals",
                  {{"process", "closed_loop"},
                   {"concurrency", NumberJson(*users)},
                   {"think_time_s", NumberJson(Number("think-time-ms", 0) / 1000)}},
                  "--concurrency");
      return;
    }
    // The command's arrivals have equal gaps, whatever its documents say (inference-sim,
    // "distribution").
    draft_.Take("workload.arrivals",
                {{"process", "constant"}, {"rate_per_s", NumberJson(Number("rate", 1))}},
                OrDefault("rate"));
    draft_.Assume("workload.requests", 100, "BLIS's default");
  }

  Json Normal(const std::string& of, double mean, double stdev) const {
    mean = Number(of, mean);
    stdev = Number(of + "-stdev", stdev);
    if (stdev <= 0) return FixedLength(mean);
    return {{"distribution", "normal"},
            {"mean", NumberJson(mean)},
            {"stddev", NumberJson(stdev)},
            {"min", NumberJson(Number(of + "-min", 2))},
            {"max", NumberJson(Number(of + "-max", 7000))}};
  }

  void Lengths() {
    if (given_.Find("workload-spec") != nullptr ||
        given_.Find("workload-traces-filepath") != nullptr)
      return;
    const std::string name = given_.Text("workload");
    const auto* preset = std::find_if(std::begin(kPresets), std::end(kPresets),
                                      [&name](const Preset& p) { return p.name == name; });
    if (preset == std::end(kPresets)) preset = std::end(kPresets) - 1;
    TakeLengths(Normal("prompt-tokens", preset->prompt, preset->prompt_stdev),
                Normal("output-tokens", preset->output, preset->output_stdev), "BLIS's lengths",
                draft_);
    if (const double shared = Number("prefix-tokens", 0); shared >= 1) {
      draft_.Take("workload.prefix", {{"groups", 1}, {"tokens", NumberJson(shared)}},
                  "--prefix-tokens");
    }
  }

  GivenOptions given_;
  Draft& draft_;
};

}  // namespace

std::span<const Option> BlisOptions() { return kBlisOptions; }

void ReadBlisCommand(const ImportSource& source, Draft& draft) {
  for (const CommandWords& words : source.commands) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const std::string_view name = BaseName(words[i]);
      const bool program =
          name == "blis" || name == "simulation_worker" || (name == "main.go" && words[0] == "go");
      if (!program || words[i + 1] != "run") continue;
      ReadNamingIdle(ReadOptions(std::span<const std::string>(words).subspan(i + 2), kBlisOptions),
                     draft,
                     [](GivenOptions given, Draft& into) { Run(std::move(given), into).Read(); });
      break;
    }
  }
}

}  // namespace servecast
