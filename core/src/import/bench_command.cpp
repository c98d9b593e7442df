// vllm bench serve, and its older name benchmark_serving.py: the traffic that it sends. Names as
// vllm/benchmarks/serve.py and datasets.py have them.
#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "base/text.h"
#include "import/kinds.h"
#include "import/names.h"
#include "import/traffic.h"

namespace servecast {
namespace {

using Json = nlohmann::json;
using enum OptionValue;

constexpr std::string_view kDataset =
    "prompts of a data set are not here: servecast fit-trace takes lengths";

constexpr Option kBenchOptions[] = {
    {"model", kName, {}, ""},
    {"dataset-name", kText, {}, "", {}, {}, "random"},
    {"dataset-path", kText, {}, kDataset},
    {"random-input-len", kCount, {}, "", {}, {}, "1024 tokens"},
    {"random-output-len", kCount, {}, "", {}, {}, "128 tokens"},
    {"input-len", kCount, {}, "", {}, {}, "1024 tokens"},
    {"output-len", kCount, {}, "", {}, {}, "128 tokens"},
    {"random-range-ratio", kNumber, {}, "", {}, {}, "0"},
    {"random-prefix-len", kCount, {}, "", {}, {}, "none"},
    {"random-mm-base-items-per-request", kCount, {}, "", {}, {}, "one image"},
    {"random-mm-bucket-config", kText, {}, "", {}, {}, "images of 256 by 256 and 720 by 1280"},
    {"random-mm-num-mm-items-range-ratio", kNumber, {}, "each request has as many images here"},
    {"random-mm-limit-mm-per-prompt", kText, {}, "each request has as many images here"},
    {"prefix-repetition-prefix-len", kCount, {}, "", {}, {}, "256 tokens"},
    {"prefix-repetition-suffix-len", kCount, {}, "", {}, {}, "256 tokens"},
    {"prefix-repetition-num-prefixes", kCount, {}, "", {}, {}, "10"},
    {"prefix-repetition-output-len", kCount, {}, "", {}, {}, "128 tokens"},
    {"num-prompts", kCount, "workload.requests"},
    {"request-rate", kNumber, {}, "", {}, "inf|infinity", "all at once"},
    {"burstiness", kNumber, {}, "", {}, {}, "Poisson"},
    {"max-concurrency", kCount, {}, "", {}, {}, "no limit"},
    {"goodput", kWords, {}, "", {}, {}, "no target"},
    {"seed", kCount, "seed"},
    {"ramp-up-strategy", kText, {}, "", {}, "linear|exponential", "linear"},
    {"ramp-up-start-rps", kNumber, {}, "", {}, {}, "no ramp"},
    {"ramp-up-end-rps", kNumber, {}, "", {}, {}, "no ramp"},
    {"sharegpt-output-len", kCount, {}, "", {}, {}, "answers as in the data set"},
    {"num-warmups", kCount, {}, "warm-up is measure.warmup_s"},
    {"ignore-eos", kFlag, {}, "lengths here are those that are asked for"},
    {"backend", kText, {}, ""},
    {"endpoint-type", kText, {}, ""},
    {"base-url", kText, {}, kNoTime},
    {"endpoint", kText, {}, ""},
    {"host", kText, {}, kNoTime},
    {"port", kText, {}, kNoTime},
    {"tokenizer", kText, {}, kNoTime},
    {"served-model-name", kText, {}, kNoTime},
    {"percentile-metrics", kText, {}, kNoTime},
    {"metric-percentiles", kText, {}, kNoTime},
    {"save-result", kFlag, {}, kNoTime},
    {"save-detailed", kFlag, {}, kNoTime},
    {"result-dir", kText, {}, kNoTime},
    {"result-filename", kText, {}, kNoTime},
    {"disable-tqdm", kFlag, {}, kNoTime},
    {"trust-remote-code", kFlag, {}, kNoTime},
    {"metadata", kWords, {}, ""},
    {"temperature", kNumber, {}, ""},
    {"top-p", kNumber, {}, ""},
    {"top-k", kCount, {}, ""},
};

// "ttft:800" of "--goodput ttft:800 tpot:60": milliseconds.
void TakeGoodput(const std::vector<std::string>& pairs, Draft& draft) {
  Json target = {{"metric", "attainment"}, {"percentile", 99}};
  for (const std::string& pair : pairs) {
    const std::size_t colon = pair.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = pair.substr(0, colon);
    const auto limit = NumberIn(pair.substr(colon + 1));
    const char* member = name == "ttft"   ? "ttft_ms"
                         : name == "tpot" ? "tpot_ms"
                         : name == "e2el" ? "e2e_ms"
                                          : nullptr;
    if (member != nullptr && limit && *limit > 0) target[member] = NumberJson(*limit);
  }
  if (target.size() == 2) return;
  draft.Take("slo", Json::array({std::move(target)}), "--goodput");
  draft.Remark("--goodput says no share of the requests: here 99 % are to be within its limits");
}

// "gpu=l40s" and "vllm=0.23.0" of "--metadata vllm=0.23.0 gpu=l40s", which people write beside what
// they measured.
void TakeMetadata(const GivenOption& given, Draft& draft) {
  const Json* engine_said = draft.Find("engine.preset");
  const bool of_vllm = engine_said == nullptr || !engine_said->is_string() ||
                       engine_said->get<std::string>().find("vllm") == 0;
  for (const std::string& pair : given.all) {
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string name = LowerCase(pair.substr(0, equals)),
                      value = equals < pair.size() ? pair.substr(equals + 1) : "";
    const bool numbered = !value.empty() && (IsDigit(value[0]) || value[0] == 'v');
    const bool version = name == "version" || name == "vllm" || name == "vllm_version" ||
                         name == "vllm-version" || name == "engine_version";
    if (name == "gpu" && !HardwarePresetOf(value).empty()) {
      draft.TakeGpu(value, "--metadata");
    } else if (of_vllm && version && numbered && value.find('.') != std::string::npos) {
      const EngineName engine = EnginePresetOf("vllm", value);
      draft.Take("engine.preset", engine.preset, "--metadata " + pair);
      if (!engine.exact) {
        draft.Remark(
            Format("vLLM {}: the nearest preset is {}", ShownText(value, 20), engine.preset));
      }
    } else {
      draft.Ignore("--metadata " + pair, "is a note beside the result, and says nothing here");
    }
  }
}

// The likeliest size of "{(256, 256, 1): 0.5, (720, 1280, 1): 0.5}": height, width, frames. Of
// equal ones the last, which is the largest by default (datasets.py).
struct ImageBucket {
  double height = 720, width = 1280, frames = 1, share = 0;
};
ImageBucket LikeliestOf(const std::string& config, std::size_t& buckets) {
  ImageBucket found;
  for (std::size_t at = config.find('('); at != std::string::npos; at = config.find('(', at + 1)) {
    std::vector<double> numbers;
    std::string digits;
    for (std::size_t i = at + 1; i < config.size() && numbers.size() < 4; ++i) {
      const char c = config[i];
      if ((c >= '0' && c <= '9') || c == '.') {
        digits += c;
      } else if (!digits.empty()) {
        numbers.push_back(NumberIn(digits).value_or(0));
        digits.clear();
      }
    }
    if (numbers.size() < 4) continue;
    ++buckets;
    if (numbers[3] >= found.share) found = {numbers[0], numbers[1], numbers[2], numbers[3]};
  }
  return found;
}

// The dataset "random-mm": images beside random text.
void TakeImages(const GivenOptions& given, Draft& draft) {
  constexpr const char* kFrom = "--dataset-name random-mm";
  const double items = given.Number("random-mm-base-items-per-request").value_or(1);
  std::size_t buckets = 0;
  const std::string config = given.Text("random-mm-bucket-config");
  const ImageBucket size = LikeliestOf(config, buckets);
  if (size.frames > 1) {
    draft.Warn(Format("{}: videos are not modelled; the requests have text only here", kFrom));
    return;
  }
  if (items < 1 || items > 1000) return;
  draft.Take("workload.images",
             {{"per_request", NumberJson(items)},
              {"width", NumberJson(size.width)},
              {"height", NumberJson(size.height)}},
             kFrom);
  if (buckets != 1) {
    draft.Warn(Format("{}: images of several sizes are sent; here all have {} by {} pixels", kFrom,
                      NumberText(size.width), NumberText(size.height)));
  }
}

void TakeLengthsOf(const GivenOptions& given, Draft& draft) {
  const auto number = [&given](std::string_view name, double otherwise) {
    const auto value = given.Number(name);
    return value && *value >= 0 ? *value : otherwise;
  };
  const std::string set = given.Text("dataset-name");
  const auto prefix = [&draft](double groups, double tokens, const char* from) {
    if (groups >= 1 && tokens >= 1) {
      draft.Take("workload.prefix",
                 {{"groups", NumberJson(groups)}, {"tokens", NumberJson(tokens)}}, from);
    }
  };
  if (set == "prefix_repetition") {
    // Lengths where nothing is said are the data set's (datasets.py).
    const double suffix = number("prefix-repetition-suffix-len", 256),
                 output = number("prefix-repetition-output-len", 128);
    TakeLengths(FixedLength(suffix), FixedLength(output), "--dataset-name prefix_repetition",
                draft);
    prefix(number("prefix-repetition-num-prefixes", 10),
           number("prefix-repetition-prefix-len", 256), "--prefix-repetition-num-prefixes");
    return;
  }
  const bool path = given.Text("dataset-path").find("ShareGPT") != std::string::npos;
  if (set == "sharegpt" || (set.empty() && path)) {
    return TakeShareGpt(number("sharegpt-output-len", 0),
                        set.empty() ? "--dataset-path" : "--dataset-name sharegpt", draft);
  }
  if (set == "random-mm") TakeImages(given, draft);
  if (set != "random" && set != "random-mm" && !set.empty()) {
    draft.Ignore("--dataset-name " + set, kDataset);
    draft.Warn(Format("--dataset-name {}: {}", ShownText(set, kShown), kDataset));
    return;
  }
  if (set.empty() && given.Find("dataset-path") != nullptr) {
    return draft.Warn(Format("--dataset-path: {}", kDataset));
  }
  const double share = std::min(number("random-range-ratio", 0), 0.999);
  TakeLengths(LengthAround(number("random-input-len", number("input-len", 1024)), share),
              LengthAround(number("random-output-len", number("output-len", 128)), share),
              set.empty() ? "vllm bench serve's default" : "--dataset-name " + set, draft);
  prefix(1, number("random-prefix-len", 0), "--random-prefix-len");
}

void Read(GivenOptions given, Draft& draft) {
  given.LeaveUnread(0, true, draft);
  if (const std::string model = given.Text("model"); !model.empty())
    draft.TakeModelName(model, "--model");
  std::vector<std::string_view> apart;
  for (const Option& option : kBenchOptions) {
    if (option.path.empty() && option.why.empty()) apart.push_back(option.name);
  }
  TakeOptions(given, apart, draft);
  BenchTraffic traffic;
  const std::string rate = given.Text("request-rate");
  if (!rate.empty()) {
    if (const auto read = RateIn(rate)) {
      traffic.rate_per_s = *read;
    } else {
      draft.Ignore("--request-rate " + rate, "found no rate");
      draft.Warn("--request-rate " + ShownText(rate, kShown) + ": found no rate; all at once here");
    }
  }
  if (const auto shape = given.Number("burstiness"); shape && *shape > 0)
    traffic.burstiness = *shape;
  if (const auto users = given.Number("max-concurrency"); users && *users >= 1 && *users <= 1e7) {
    traffic.concurrency = static_cast<std::int64_t>(*users);
  }
  const auto from = given.Number("ramp-up-start-rps"), to = given.Number("ramp-up-end-rps");
  if (from && to) traffic.ramp = Ramp{*from, *to, given.Text("ramp-up-strategy") == "exponential"};
  TakeSampling({given.Number("temperature"), given.Number("top-p"), given.Number("top-k")},
               "vllm bench serve", draft);
  draft.Assume("workload.requests", 1000, "vllm bench serve's default");
  TakeArrivals(traffic, "vllm bench serve", draft);
  TakeLengthsOf(given, draft);
  TakePooled(given, {"backend", "endpoint-type", "endpoint"}, draft);
  if (const GivenOption* metadata = given.Find("metadata")) TakeMetadata(*metadata, draft);
  if (const GivenOption* goodput = given.Find("goodput")) TakeGoodput(goodput->all, draft);
}

}  // namespace

std::span<const Option> BenchOptions() { return kBenchOptions; }

void ReadBenchCommand(const ImportSource& source, Draft& draft) {
  for (const CommandWords& words : source.commands) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool bench = BaseName(words[i]) == "vllm" && i + 2 < words.size() &&
                         words[i + 1] == "bench" && words[i + 2] == "serve";
      const bool script = BaseName(words[i]) == "benchmark_serving.py";
      if (!bench && !script) continue;
      draft.Found("vllm bench serve");
      ReadNamingIdle(ReadOptions(std::span<const std::string>(words).subspan(i + (bench ? 3 : 1)),
                                 kBenchOptions),
                     draft, Read);
      break;
    }
  }
}

}  // namespace servecast
