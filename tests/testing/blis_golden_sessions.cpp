// Reading the session files of BLIS's golden runs, and what all readers share.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>

#include "cost/model_cost.h"
#include "fmt/format.h"
#include "servecast/workload_spec.h"
#include "testing/blis_golden_parts.h"

namespace servecast::testing {

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

Scenario BaseScenario() {
  Scenario s;
  s.hardware.name = "H100";
  s.hardware.memory_gib = 100000;
  s.hardware.memory_bandwidth_gb_s = 3350;
  s.hardware.peak_bf16_tflops = 989.5;
  s.hardware.interconnect_gb_s = 450;
  s.hardware.compute_efficiency = 0.5;
  s.hardware.bandwidth_efficiency = 0.5;
  s.model.vocab_size = 32000;
  s.model.max_position_embeddings = 1'000'000'000;
  s.engine.compat = Compat::kBlis;
  s.workload->name = "rows";
  s.workload->arrivals.process = ArrivalProcess::kTrace;
  s.latency.peak_fp8_tflops = 1979;
  return s;
}

void SetModel(ModelSpec& m, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
              std::int64_t kv_heads, std::int64_t width) {
  m.num_hidden_layers = layers;
  m.hidden_size = hidden;
  m.num_attention_heads = heads;
  m.num_key_value_heads = kv_heads;
  m.head_dim = hidden / std::max<std::int64_t>(heads, 1);
  m.intermediate_size = width;
}

void SetHost(BlisCase& golden, std::int64_t blocks, double threshold, double bandwidth,
             double base_us) {
  Scenario& s = golden.scenario;
  const auto size = static_cast<double>(s.engine.block_size);
  golden.host = {
      blocks, threshold,
      static_cast<std::int64_t>(base_us) + static_cast<std::int64_t>(std::ceil(size / bandwidth))};
  const Result<ModelCost> cost = ComputeModelCost(s);
  if (blocks == 0 || !cost.ok()) return;                 // the engine will say what is wrong
  const double bytes = cost.value().kv_bytes_per_token;  // per GPU
  KvOffloadSpec& offload = s.engine.kv_offload;
  offload.threshold = threshold;
  offload.cpu_latency_us = base_us;
  offload.cpu_bandwidth_gb_s = bandwidth * bytes / 1e3;
  // Half a block more: a capacity is rounded down.
  offload.cpu_gib = (static_cast<double>(blocks) + 0.5) * size * bytes *
                    static_cast<double>(s.cluster.pools[0].tensor_parallel) / 0x1p30;
}

void AddContent(RequestTable& table, const std::vector<std::int32_t>& groups,
                const std::vector<std::int32_t>& shared) {
  const std::int32_t count =
      groups.empty() ? 0 : 1 + *std::max_element(groups.begin(), groups.end());
  table.segments.assign(static_cast<std::size_t>(count), ContentSegment{});
  for (std::size_t i = 0; i < groups.size(); ++i) {
    table.content.push_back(static_cast<std::int32_t>(table.segments.size()));
    table.segments.push_back(shared[i] > 0 ? ContentSegment{groups[i], shared[i]}
                                           : ContentSegment{});
  }
}

namespace {

constexpr std::int64_t kMostRequests = 1'000'000;

std::optional<double> NumberOf(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Words of a keyword line as numbers; the first thing that is wrong with the file is kept.
class SessionFile {
 public:
  SessionFile(std::string path, const std::string& text)
      : path_(std::move(path)), lines_(LinesOf(text)) {}

  std::vector<double> Numbers(const char* keyword, std::size_t least) {
    std::istringstream words(at_ < lines_.size() ? lines_[at_] : "");
    ++at_;
    std::string word;
    if (*keyword != '\0' && (!(words >> word) || word != keyword)) {
      Fail(fmt::format("not \"{}\"", keyword));
    }
    std::vector<double> numbers;
    while (words >> word) {
      const std::optional<double> number = NumberOf(word);
      if (!number) Fail(fmt::format("\"{}\" is no number", word));
      numbers.push_back(number.value_or(0));
    }
    if (numbers.size() < least) {
      Fail(fmt::format("{} numbers, not {}", numbers.size(), least));
      numbers.resize(least, 0);
    }
    return numbers;
  }
  std::vector<std::int64_t> Integers(const char* keyword, std::size_t count) {
    std::vector<std::int64_t> integers;
    for (const double number : Numbers(keyword, count)) {
      if (number != std::floor(number) || std::abs(number) > 9e15) Fail("not whole numbers");
      integers.push_back(static_cast<std::int64_t>(number));
    }
    if (integers.size() != count) Fail(fmt::format("{} numbers, not {}", integers.size(), count));
    integers.resize(count, 0);
    return integers;
  }
  void Fail(const std::string& message) {
    if (!error_) error_ = Issue{path_, fmt::format("line {}: {}", at_, message)};
  }
  bool done() const { return at_ >= lines_.size(); }
  const std::optional<Issue>& error() const { return error_; }

 private:
  std::string path_;
  std::vector<std::string> lines_;
  std::size_t at_ = 0;
  std::optional<Issue> error_;
};

void ReadSetup(SessionFile& file, BlisCase& golden) {
  Scenario& s = golden.scenario;
  const std::int64_t mode = file.Integers("mode", 1)[0];
  if (mode != 0 && mode != 1) file.Fail("mode is 0 or 1");
  s.latency.backend = mode == 1 ? "trained_physics" : "roofline";
  const std::vector<std::int64_t> model = file.Integers("model", 11);
  SetModel(s.model, model[0], model[1], model[2], model[3], model[4]);
  s.latency.intermediate_size_mlp = model[5];
  s.model.num_local_experts = model[6];
  s.model.num_experts_per_tok = model[7];
  s.latency.interleave_moe_layer_step = model[8];
  if (model[9] != 2) file.Fail("only activations of 2 bytes are known");
  s.latency.weight_bytes = model[10];
  const std::vector<std::int64_t> cfg = file.Integers("cfg", 5);
  s.cluster.pools[0].tensor_parallel = cfg[0];
  s.engine.max_num_seqs = cfg[1];
  s.engine.max_num_batched_tokens = cfg[2];
  s.engine.num_gpu_blocks_override = cfg[3];
  if (std::min({model[5], model[6], model[7], model[8], cfg[4]}) < 0 || model[7] > model[6]) {
    file.Fail("a number below what it means, or more experts of a token than there are");
  }
  golden.host.blocks = cfg[4];
  for (const std::int64_t value : {model[0], model[1], model[2], model[3], model[4], model[10],
                                   cfg[0], cfg[1], cfg[2], cfg[3]}) {
    if (value < 1 || value > static_cast<std::int64_t>(kMostOfAnything)) {
      file.Fail("a size below 1 or absurd");
    }
  }
}

void ReadCoefficients(SessionFile& file, Scenario& s) {
  const std::vector<double> coef = file.Numbers("coef", 3);
  const std::vector<double> alpha(coef.begin(), coef.begin() + 3);
  if (s.latency.backend == "roofline") {
    s.latency.alpha = alpha;
    return;
  }
  s.latency.physics_alpha = alpha;
  // An eleventh is for expert parallelism, which none of the forms has.
  if (coef.size() != 13 && coef.size() != 14) return file.Fail("not ten or eleven betas");
  s.latency.physics_beta.assign(coef.begin() + 3, coef.begin() + 13);
}

void ReadExpected(SessionFile& file, std::vector<BlisFigure>& expected) {
  const char* const names[] = {"completed_requests", "total_input_tokens", "total_output_tokens",
                               "ttft_sum_us",        "ttft_mean_ms",       "ttft_p90_ms",
                               "ttft_p99_ms",        "e2e_mean_ms",        "e2e_p90_ms",
                               "e2e_p99_ms",         "itl_mean_ms"};
  const std::vector<double> values = file.Numbers("expect", std::size(names));
  for (std::size_t i = 0; i < std::size(names); ++i) {
    expected.push_back({names[i], values[i], i < 4});
  }
}

}  // namespace

Result<BlisCase> ReadBlisSessions(const std::string& path, const std::string& text) {
  SessionFile file(path, text);
  BlisCase golden;
  golden.scenario = BaseScenario();
  ReadSetup(file, golden);
  const std::vector<std::int64_t> wl = file.Integers("wl", 3);
  ReadCoefficients(file, golden.scenario);
  ReadExpected(file, golden.expected);
  const std::int64_t sessions = file.Integers("sessions", 1)[0];
  RequestTable& table = golden.requests;
  std::vector<std::int32_t> groups, shared;
  std::int64_t least = std::min({wl[0], wl[1], wl[2] - 1});
  if (std::max({wl[0], wl[1], wl[2]}) > INT32_MAX / 2) file.Fail("too many tokens");
  for (std::int64_t i = 0; i < sessions && !file.error(); ++i) {
    const std::vector<std::int64_t> session = file.Integers("", 4);
    least = std::min({least, session[0], session[1], session[2], session[3]});
    if (session[1] > kMostRequests - table.size()) file.Fail("more than 1,000,000 requests");
    if (session[3] >= kMostRequests) file.Fail("a prefix group of 1,000,000 or more");
    if (session[0] > kMostUs || session[2] > kMostUs) file.Fail("a time beyond a year");
    for (std::int64_t round = 0; round < session[1] && least >= 0 && !file.error(); ++round) {
      table.arrival.push_back(round == 0 ? session[0] * kUs : -1);
      table.think.push_back(round == 0 ? -1 : session[2] * kUs);
      table.prompt_tokens.push_back(static_cast<std::int32_t>(wl[0] + wl[1]));
      table.output_tokens.push_back(static_cast<std::int32_t>(wl[2]));
      groups.push_back(static_cast<std::int32_t>(session[3]));
      shared.push_back(static_cast<std::int32_t>(wl[0]));
    }
  }
  if (least < 0 || wl[0] + wl[1] < 1) file.Fail("a number below what it means");
  if (!file.done()) file.Fail("lines after the last session");
  if (table.arrival.empty()) file.Fail("no requests");
  if (file.error()) return *file.error();
  AddContent(table, groups, shared);
  SetHost(golden, golden.host.blocks, 0.9, 0.2, 0);  // blis.md 2.3
  return golden;
}

}  // namespace servecast::testing
