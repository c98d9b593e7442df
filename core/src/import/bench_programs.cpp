// Benchmarks other than vLLM's own: sglang.bench_serving, guidellm benchmark, aiperf profile and
// genai-perf profile. Names and defaults as their command lines have them (SGLang 0.5, guidellm
// 0.5, aiperf 0.3).
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/kinds.h"
#include "import/traffic.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using LoadJson = nlohmann::json;
using enum OptionValue;

constexpr std::string_view kSetElsewhere =
    "prompts of a data set are not here: servecast fit-trace takes lengths";

constexpr Option kSglangBenchOptions[] = {
    {"model", kName, {}, ""},
    {"dataset-name", kText, {}, "", {}, {}, "sharegpt"},
    {"dataset-path", kText, {}, kSetElsewhere},
    {"num-prompts", kCount, {}, "", {}, {}, "1000"},
    {"request-rate", kNumber, {}, "", {}, "inf|infinity", "all at once"},
    {"max-concurrency", kCount, {}, "", {}, {}, "no limit"},
    {"random-input-len", kCount, {}, "", "--random-input", {}, "1024 tokens"},
    {"random-output-len", kCount, {}, "", "--random-output", {}, "1024 tokens"},
    {"random-range-ratio", kNumber, {}, "", {}, {}, "0"},
    {"sharegpt-output-len", kCount, {}, "", {}, {}, "answers as in the data set"},
    {"gsp-num-groups", kCount, {}, "", {}, {}, "64"},
    {"gsp-prompts-per-group", kCount, {}, "", {}, {}, "16"},
    {"gsp-system-prompt-len", kCount, {}, "", {}, {}, "2048 tokens"},
    {"gsp-question-len", kCount, {}, "", {}, {}, "128 tokens"},
    {"gsp-output-len", kCount, {}, "", {}, {}, "256 tokens"},
    {"image-count", kCount, {}, "", "--random-image-num-images", {}, "one image"},
    {"image-resolution", kText, {}, "", "--random-image-resolution", {}, "1080p"},
    {"random-image-count", kFlag, {}, "each request has as many images here"},
    {"image-format", kText, {}, kNoTime},
    {"image-content", kText, {}, kNoTime},
    {"seed", kCount, "seed"},
    {"backend", kText, {}, ""},
    {"host", kText, {}, kNoTime},
    {"port", kText, {}, kNoTime},
    {"base-url", kText, {}, kNoTime},
    {"tokenizer", kText, {}, kNoTime},
    {"output-file", kText, {}, kNoTime},
    {"output-details", kFlag, {}, kNoTime},
    {"disable-tqdm", kFlag, {}, kNoTime},
    {"disable-ignore-eos", kFlag, {}, "lengths here are those that are asked for"},
    {"warmup-requests", kCount, {}, "warm-up is measure.warmup_s"},
    {"flush-cache", kFlag, {}, "caches are empty to begin with"},
};

constexpr Option kGuidellmOptions[] = {
    {"model", kName, {}, ""},
    {"target", kText, {}, kNoTime},
    {"rate-type", kText, {}, "", {}, {}, "sweep"},
    {"profile", kText, {}, "", {}, {}, "sweep"},
    {"rate", kText, {}, "", {}, {}, "not said"},
    {"max-requests", kCount, "workload.requests"},
    {"max-seconds", kNumber, {}, "", {}, {}, "no limit"},
    {"data", kText, {}, "", {}, {}, "the lengths of the scenario to begin with"},
    {"random-seed", kCount, "seed"},
    {"warmup-percent", kNumber, {}, "warm-up is measure.warmup_s"},
    {"processor", kText, {}, kNoTime},
    {"output-path", kText, {}, kNoTime},
    {"backend", kText, {}, ""},
    {"backend-type", kText, {}, ""},
    {"request-type", kText, {}, ""},
};

constexpr Option kAiperfOptions[] = {
    {"model", kName, {}, "", "-m"},
    {"concurrency", kCount, {}, "", {}, {}, "no limit"},
    {"request-rate", kNumber, {}, "", {}, "inf", "all at once"},
    {"request-count", kCount, {}, "", "--num-requests", {}, "1000"},
    {"arrival-pattern", kText, {}, "", "--request-rate-mode", "constant|poisson|gamma", "poisson"},
    {"arrival-smoothness", kNumber, {}, "", {}, {}, "1"},
    {"synthetic-input-tokens-mean", kCount, {}, "", "--isl", {}, "550 tokens"},
    {"synthetic-input-tokens-stddev", kNumber, {}, "", "--isl-stddev", {}, "0"},
    {"output-tokens-mean", kCount, {}, "", "--osl", {}, "the lengths of the scenario"},
    {"output-tokens-stddev", kNumber, {}, "", "--osl-stddev", {}, "0"},
    {"num-dataset-entries", kCount, {}, "requests are as the lengths say", "--num-prompts"},
    {"random-seed", kCount, "seed"},
    {"input-file", kText, {}, kSetElsewhere},
    {"public-dataset", kText, {}, kSetElsewhere},
    {"warmup-request-count", kCount, {}, "warm-up is measure.warmup_s"},
    {"endpoint-type", kText, {}, ""},
    {"endpoint", kText, {}, ""},
    {"streaming", kFlag, {}, kNoTime},
    {"url", kText, {}, kNoTime, "-u"},
    {"tokenizer", kText, {}, kNoTime},
    {"service-kind", kText, {}, kNoTime},
    {"backend", kText, {}, ""},
    {"extra-inputs", kWords, {}, "what is asked beside lengths is not modelled"},
};

// Options that are read apart are those without a member and without a reason.
std::vector<std::string_view> ReadApart(std::span<const Option> options) {
  std::vector<std::string_view> apart;
  for (const Option& option : options) {
    if (option.path.empty() && option.why.empty()) apart.push_back(option.name);
  }
  return apart;
}

class BenchLoad {
 public:
  BenchLoad(GivenOptions given, std::span<const Option> options, std::string from, Draft& draft)
      : given_(std::move(given)), from_(std::move(from)), draft_(draft) {
    given_.LeaveUnread(0, true, draft_);
    if (const std::string model = given_.Text("model"); !model.empty()) {
      draft_.TakeModelName(model, "--model");
    }
    TakeOptions(given_, ReadApart(options), draft_);
    TakePooled(given_, {"backend", "backend-type", "request-type", "endpoint-type", "endpoint"},
               draft_);
  }

  void Sglang() {
    const std::string set = given_.Text("dataset-name");
    double requests = Number("num-prompts", 1000);
    if (set == "random" || set == "random-ids") {
      SglangRandom();
    } else if (set == "image" || set == "random-image") {
      SglangRandom();
      SglangImages("--dataset-name " + set);
    } else if (set == "generated-shared-prefix") {
      const double groups = Number("gsp-num-groups", 64);
      requests = groups * Number("gsp-prompts-per-group", 16);
      draft_.Take("workload.prefix",
                  {{"groups", NumberJson(groups)},
                   {"tokens", NumberJson(Number("gsp-system-prompt-len", 2048))}},
                  "--dataset-name generated-shared-prefix");
      Lengths(FixedLength(Number("gsp-question-len", 128)),
              FixedLength(Number("gsp-output-len", 256)));
    } else if (set.empty() || set == "sharegpt") {
      TakeShareGpt(Number("sharegpt-output-len", 0),
                   set.empty() ? "bench_serving's default" : "--dataset-name sharegpt", draft_);
    } else {
      const std::string name = ShownText(set, kShown);
      draft_.Ignore("--dataset-name " + name, kSetElsewhere);
      draft_.Warn(Format("--dataset-name {}: {}", name, kSetElsewhere));
    }
    Requests(requests);
    BenchTraffic traffic = Traffic("max-concurrency");
    TakeSampling({}, from_, draft_);
    TakeArrivals(traffic, from_, draft_);
  }

  void Aiperf() {
    Requests(Number("request-count", 1000));
    BenchTraffic traffic = Traffic("concurrency");
    const std::string pattern = given_.Text("arrival-pattern");
    if (pattern == "constant") traffic.burstiness = 1e9;
    if (pattern == "gamma") traffic.burstiness = Number("arrival-smoothness", 1);
    TakeArrivals(traffic, from_, draft_);
    for (const char* name : {"input-file", "public-dataset"}) {
      if (const GivenOption* set = given_.Find(name); set != nullptr) {
        return draft_.Warn(Format("{}: {}", ShownText(set->Words(), kShown), kSetElsewhere));
      }
    }
    if (given_.Find("output-tokens-mean") == nullptr && !draft_.Pools()) {
      return draft_.Warn(
          "no option says how long outputs are: lengths are as in the scenario to "
          "begin with");
    }
    Lengths(NormalLength(Number("synthetic-input-tokens-mean", 550),
                         Number("synthetic-input-tokens-stddev", 0)),
            NormalLength(Number("output-tokens-mean", 128), Number("output-tokens-stddev", 0)));
  }

  void Guidellm() {
    GuidellmData();
    std::string profile = given_.Text("profile");
    if (profile.empty()) profile = given_.Text("rate-type");
    const std::string rates = given_.Text("rate");
    const std::string first = rates.substr(0, rates.find(','));
    if (first.size() < rates.size()) {
      draft_.Warn(Format("--rate is {} here, the first of {}: which of these is meant?",
                         ShownText(first, 20), ShownText(rates, kShown)));
    }
    const double rate = NumberIn(first).value_or(0);
    BenchTraffic traffic;
    if (profile == "synchronous" || (profile == "concurrent" && rate >= 1)) {
      traffic.concurrency = profile == "synchronous" ? 1 : static_cast<std::int64_t>(rate);
    } else if ((profile == "constant" || profile == "poisson" || profile == "async") && rate > 0) {
      traffic.rate_per_s = rate;
      if (profile != "poisson") traffic.burstiness = 1e9;
    } else if (profile != "throughput") {
      return draft_.Warn(
          Format("--profile {}: it tries several loads, and says none; arrivals are "
                 "as in the scenario to begin with",
                 profile.empty() ? "sweep, the default" : ShownText(profile, 40)));
    }
    const double seconds = Number("max-seconds", 0);
    if (draft_.Find("workload.requests") == nullptr && seconds > 0 &&
        std::isfinite(traffic.rate_per_s)) {
      Requests(std::max(1.0, std::floor(seconds * traffic.rate_per_s)));
    }
    TakeArrivals(traffic, from_, draft_);
  }

 private:
  double Number(std::string_view name, double otherwise) const {
    const auto value = given_.Number(name);
    return value && *value >= 0 && *value <= 1e7 ? *value : otherwise;
  }

  void Lengths(LoadJson prompt, LoadJson output) {
    TakeLengths(std::move(prompt), std::move(output), from_, draft_);
  }

  void Requests(double requests) {
    draft_.Take("workload.requests", NumberJson(std::clamp(std::floor(requests), 1.0, 5e6)), from_);
  }

  BenchTraffic Traffic(std::string_view users) const {
    BenchTraffic traffic;
    if (const auto rate = RateIn(given_.Text("request-rate"))) traffic.rate_per_s = *rate;
    const double concurrency = Number(users, 0);
    if (concurrency >= 1) traffic.concurrency = static_cast<std::int64_t>(concurrency);
    return traffic;
  }

  // From ratio * length to the length, evenly (bench_serving.py, compute_random_lens).
  void SglangRandom() {
    const double ratio = std::min(Number("random-range-ratio", 0), 1.0);
    const auto of = [ratio](double most) -> LoadJson {
      const double least = std::max(1.0, std::floor(most * ratio));
      if (least >= most) return FixedLength(most);
      return {{"distribution", "uniform"}, {"min", NumberJson(least)}, {"max", NumberJson(most)}};
    };
    Lengths(of(Number("random-input-len", 1024)), of(Number("random-output-len", 1024)));
  }

  // "720p", or a height and a width, "512x768" (bench_serving.py, parse_image_resolution).
  void SglangImages(const std::string& from) {
    struct Resolution {
      std::string_view name;
      double width, height;
    };
    static constexpr Resolution kResolutions[] = {
        {"1080p", 1920, 1080}, {"4k", 3840, 2160}, {"720p", 1280, 720}, {"360p", 640, 360}};
    const std::string said = LowerCase(given_.Text("image-resolution").substr(0, 40));
    Resolution size = kResolutions[0];
    for (const Resolution& each : kResolutions) {
      if (each.name == said) size = each;
    }
    const std::size_t cross = said.find('x');
    if (cross != std::string::npos) {
      const auto height = NumberIn(said.substr(0, cross)), width = NumberIn(said.substr(cross + 1));
      if (height && width && *height >= 1 && *width >= 1) size = {said, *width, *height};
    }
    if (!said.empty() && size.name != said) {
      draft_.Warn(Format("--image-resolution {}: found no size; 1080p here", ShownText(said)));
    }
    const double count = Number("image-count", 1);
    if (count < 1) return draft_.Warn("--image-count 0: no request has an image");
    draft_.Take("workload.images",
                {{"per_request", NumberJson(count)},
                 {"width", NumberJson(size.width)},
                 {"height", NumberJson(size.height)}},
                from);
  }

  // "prompt_tokens=256,output_tokens=128", or the same as JSON.
  void GuidellmData() {
    const std::string data = given_.Text("data");
    LoadJson members = LoadJson::object();
    if (!data.empty() && data[0] == '{') {
      Result<LoadJson> read = ParseJson(data);
      if (read.ok()) members = std::move(read.value());
    } else {
      for (const std::string_view part : Split(data, ",")) {
        const std::string pair(part);
        const std::size_t equals = std::min(pair.find('='), pair.size());
        if (equals < pair.size()) members[pair.substr(0, equals)] = pair.substr(equals + 1);
      }
    }
    const auto number = [&members](const std::string& name) -> std::optional<double> {
      const auto at = members.find(name);
      if (at == members.end()) return std::nullopt;
      if (at->is_number()) return at->get<double>();
      return at->is_string() ? NumberIn(at->get<std::string>()) : std::nullopt;
    };
    const auto length = [&number](const std::string& name) -> LoadJson {
      const auto mean = number(name);
      if (!mean || *mean < 1) return nullptr;
      LoadJson drawn = NormalLength(*mean, number(name + "_stdev").value_or(0));
      if (drawn["distribution"] != "normal") return drawn;
      for (const char* bound : {"min", "max"}) {
        if (const auto value = number(name + "_" + bound)) drawn[bound] = NumberJson(*value);
      }
      return drawn;
    };
    LoadJson prompt = length("prompt_tokens"), output = length("output_tokens");
    if (output.is_null() && draft_.Pools()) output = FixedLength(1);
    if (prompt.is_null() || output.is_null()) {
      return draft_.Warn(Format("--data {}: {}", ShownText(data, kShown), kSetElsewhere));
    }
    Lengths(std::move(prompt), std::move(output));
  }

  GivenOptions given_;
  std::string from_;
  Draft& draft_;
};

enum class BenchProgram { kNone, kSglang, kGuidellm, kAiperf };

// By BenchProgram, from kSglang.
struct ProgramOfLoad {
  std::string_view name;
  std::span<const Option> options;
  void (BenchLoad::*read)();
};
constexpr ProgramOfLoad kPrograms[] = {
    {"sglang.bench_serving", kSglangBenchOptions, &BenchLoad::Sglang},
    {"guidellm benchmark", kGuidellmOptions, &BenchLoad::Guidellm},
    {"aiperf profile", kAiperfOptions, &BenchLoad::Aiperf}};

// Which program the words at `i` start, and where its options begin.
std::pair<BenchProgram, std::size_t> ProgramAt(const CommandWords& words, std::size_t i) {
  const std::string_view word = BaseName(words[i]);
  const bool next = i + 1 < words.size();
  if (word == "sglang.bench_serving" || (word == "bench_serving.py")) {
    return {BenchProgram::kSglang, i + 1};
  }
  if (word == "guidellm" && next && words[i + 1] == "benchmark") {
    return {BenchProgram::kGuidellm,
            i + 2 + (i + 2 < words.size() && words[i + 2] == "run" ? 1 : 0)};
  }
  if ((word == "aiperf" || word == "genai-perf") && next && words[i + 1] == "profile") {
    return {BenchProgram::kAiperf, i + 2};
  }
  return {BenchProgram::kNone, 0};
}

}  // namespace

std::span<const Option> SglangBenchOptions() { return kSglangBenchOptions; }
std::span<const Option> GuidellmOptions() { return kGuidellmOptions; }
std::span<const Option> AiperfOptions() { return kAiperfOptions; }

void ReadBenchPrograms(const ImportSource& source, Draft& draft) {
  for (const CommandWords& words : source.commands) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto [program, begin] = ProgramAt(words, i);
      if (program == BenchProgram::kNone) continue;
      const auto rest = std::span<const std::string>(words).subspan(std::min(begin, words.size()));
      const ProgramOfLoad& each = kPrograms[static_cast<std::size_t>(program) - 1];
      draft.Found(std::string(each.name));
      ReadNamingIdle(ReadOptions(rest, each.options), draft,
                     [&each](GivenOptions given, Draft& into) {
                       BenchLoad load(std::move(given), each.options, std::string(each.name), into);
                       (load.*each.read)();
                     });
      break;
    }
  }
}

}  // namespace servecast
