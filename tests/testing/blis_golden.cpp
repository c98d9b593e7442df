// Reading the golden runs of BLIS. Comparing is in blis_golden_compare.cpp.
#include "testing/blis_golden.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

#include "cost/model_cost.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace servecast::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr TimeNs kUs = 1000;
constexpr double kMostOfAnything = 0x1p40;
constexpr std::int64_t kMostUs = 366LL * 24 * 3600 * 1'000'000;
constexpr std::int64_t kMostRequests = 1'000'000;

std::optional<double> NumberOf(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::string> ReadText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in.good() || !text.good()) return std::nullopt;
  return text.str();
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

// What BLIS's goldens have in common: an H100 by BLIS's table, a model as BLIS reads it, memory
// that never says no, as the number of blocks is given.
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
  s.workload.name = "rows";
  s.workload.arrivals.process = ArrivalProcess::kTrace;
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

// The host of `blocks` blocks, as BLIS's command line has it: a bandwidth of tokens per us, a base
// latency in us per block. The scenario's fields are in bytes of the model.
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

// Requests whose prompts begin with `shared` tokens of their group; the rest of each is its own.
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

// --- Session files -------------------------------------------------------------------------------

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
  if (cfg[4] < 0) file.Fail("a number below what it means");
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

// --- Request lists and their tests ---------------------------------------------------------------

struct FoundFile {
  std::string name, text;
};

const FoundFile* FindRequests(const std::vector<FoundFile>& files, std::size_t test,
                              const std::string& model) {
  const std::string name =
      fmt::format("gd_{}_{}.csv", test, model.substr(model.find_last_of('/') + 1));
  const auto at = std::find_if(files.begin(), files.end(),
                               [&](const FoundFile& file) { return file.name == name; });
  return at == files.end() ? nullptr : &*at;
}

// A number of a test by one of its names; the first that is missing is kept.
class TestReader {
 public:
  TestReader(std::string path, const Json& test) : path_(std::move(path)), test_(test) {}

  double Number(const std::vector<const char*>& names) {
    for (const char* name : names) {
      const auto at = test_.find(name);
      if (at != test_.end() && at->is_number()) return at->get<double>();
    }
    return Fail(fmt::format("has no number \"{}\"", names[0]));
  }
  std::int64_t Integer(const std::vector<const char*>& names, std::int64_t least = 1) {
    const double value = Number(names);
    if (!(value >= static_cast<double>(least) && value <= kMostOfAnything) ||
        value != std::floor(value)) {
      return static_cast<std::int64_t>(
          Fail(fmt::format("\"{}\" is {}, not a whole number from {} up", names[0], value, least)));
    }
    return static_cast<std::int64_t>(value);
  }
  // A setting that a test may leave out.
  double NumberOr(const char* name, double least, double otherwise) {
    if (test_.find(name) == test_.end()) return otherwise;
    const double value = Number({name});
    if (value >= least && value <= kMostOfAnything) return value;
    return Fail(fmt::format("\"{}\" is {}, not a number from {} up", name, value, least));
  }
  std::string Text(const char* name) {
    const auto at = test_.find(name);
    if (at != test_.end() && at->is_string()) return at->get<std::string>();
    Fail(fmt::format("has no text \"{}\"", name));
    return "";
  }
  std::vector<double> Three(const char* name) {
    std::vector<double> values;
    const auto at = test_.find(name);
    for (std::size_t i = 0; at != test_.end() && at->is_array() && i < at->size(); ++i) {
      if ((*at)[i].is_number()) values.push_back((*at)[i].get<double>());
    }
    if (values.size() != 3) Fail(fmt::format("has no three numbers \"{}\"", name));
    values.resize(3, 0);
    return values;
  }
  double Fail(const std::string& message) {
    if (!error_) error_ = Issue{path_, message};
    return 1;
  }
  const std::optional<Issue>& error() const { return error_; }

 private:
  std::string path_;
  const Json& test_;
  std::optional<Issue> error_;
};

// Time that the machine took says nothing; everything else does.
std::optional<Issue> ReadFigures(const std::string& path, const Json& metrics,
                                 std::vector<BlisFigure>& expected) {
  if (!metrics.is_object() || metrics.empty()) return Issue{path, "has no metrics"};
  for (const auto& [name, value] : metrics.items()) {
    if (name == "simulation_duration_s") continue;
    if (!value.is_number()) return Issue{path, fmt::format("\"{}\" is no number", name)};
    expected.push_back({name, value.get<double>(), value.is_number_integer()});
  }
  return std::nullopt;
}

// The blackbox form was recorded in two eras under the same keys: the file's name tells them apart,
// or, without a word of it there, the program that the command line of the test names.
bool IsSeedEra(const std::string& file, const Json& test) {
  if (file.find("seed_era") != std::string::npos) return true;
  if (file.find("blackbox") != std::string::npos || !test.contains("blis-cmd")) return false;
  const Json& command = test["blis-cmd"];
  return command.is_string() && command.get<std::string>().rfind("./simulation_worker", 0) == 0;
}

Result<BlisCase> ReadTest(const std::vector<FoundFile>& files, const std::string& file,
                          std::size_t number, const Json& test) {
  const std::string path = fmt::format("{} test {}", file, number);
  if (!test.is_object()) return Issue{path, "is no object"};
  TestReader read(path, test);
  BlisCase golden;
  golden.name = fmt::format("{}#{}", file, number);
  Scenario& s = golden.scenario = BaseScenario();
  // The toy model and the calibration of BLIS's own test of this file, for every model that it
  // names (blis.md 1.7).
  SetModel(s.model, 32, 4096, 32, 8, 16384);
  s.hardware.peak_bf16_tflops = 989;
  s.latency.mfu_prefill = 0.55;
  s.latency.mfu_decode = 0.30;
  s.latency.backend = read.Text("approach");
  if (s.latency.backend != "blackbox" && s.latency.backend != "roofline") {
    read.Fail("approach is neither blackbox nor roofline");
  }
  if (IsSeedEra(file, test)) s.engine.compat = Compat::kBlisFebruary2026;
  s.cluster.pools[0].tensor_parallel = read.Integer({"tp"});
  s.engine.max_num_seqs = read.Integer({"max-num-seqs", "max-num-running-reqs"});
  s.engine.max_num_batched_tokens =
      read.Integer({"max-num-batched-tokens", "max-num-scheduled-tokens"});
  s.engine.max_model_len = read.Integer({"max-model-len"}, 0);
  s.engine.num_gpu_blocks_override = read.Integer({"total-kv-blocks"});
  s.engine.block_size = read.Integer({"block-size-in-tokens"});
  s.engine.long_prefill_token_threshold = read.Integer({"long-prefill-token-threshold"}, 0);
  s.latency.alpha = read.Three("alpha-coeffs");
  s.latency.beta = read.Three("beta-coeffs");
  // BLIS's options for the host's memory, with its defaults.
  const auto host_blocks = static_cast<std::int64_t>(read.NumberOr("kv-cpu-blocks", 0, 0));
  SetHost(golden, host_blocks, read.NumberOr("kv-offload-threshold", 0, 0.9),
          read.NumberOr("kv-transfer-bandwidth", 1e-6, 100),
          read.NumberOr("kv-transfer-base-latency", 0, 0));
  const FoundFile* requests = FindRequests(files, number, read.Text("model"));
  if (requests == nullptr) read.Fail("has no gd_*.csv of its number and model");
  if (read.error()) return *read.error();
  Result<RequestTable> table = ReadBlisRequests(requests->name, requests->text);
  if (!table.ok()) return Issues(table.issues());
  golden.requests = std::move(table.value());
  if (!test.contains("metrics")) return Issue{path, "has no metrics"};
  if (auto issue = ReadFigures(path, test["metrics"], golden.expected)) return *issue;
  return golden;
}

void ReadTests(const std::vector<FoundFile>& files, const FoundFile& file, BlisCases& out) {
  const Json json = Json::parse(file.text, nullptr, false);
  if (!json.is_object() || !json.contains("tests") || !json["tests"].is_array()) {
    return out.issues.push_back({file.name, "is no JSON object with a list of tests"});
  }
  std::size_t number = 0;
  for (const Json& test : json["tests"]) {
    Result<BlisCase> golden = ReadTest(files, file.name, number++, test);
    if (golden.ok()) {
      out.cases.push_back(std::move(golden.value()));
    } else {
      out.issues.push_back(golden.issues().front());
    }
  }
}

// BLIS's command line with its defaults: trained physics, one H100, room for everything.
Result<BlisCase> ReadDefaultRun(const FoundFile& csv, const std::string& model,
                                const FoundFile* expected) {
  if (expected == nullptr) return Issue{csv.name, "has no .expected.json beside it"};
  const Result<Scenario> preset = ParseScenario(fmt::format(
      R"({{"schema": 1, "model": {{"preset": "{}"}}, "hardware": {{"preset": "h100-sxm"}},
           "workload": {{"preset": "chat"}}}})",
      model));
  if (!preset.ok()) return Issue{csv.name, "names no model preset: " + preset.issues()[0].message};
  BlisCase golden;
  golden.scenario = BaseScenario();
  golden.scenario.model = preset.value().model;
  golden.scenario.latency.backend = "trained_physics";
  golden.scenario.engine.num_gpu_blocks_override = 1'000'000;
  Result<RequestTable> table = ReadBlisRequests(csv.name, csv.text);
  if (!table.ok()) return Issues(table.issues());
  golden.requests = std::move(table.value());
  const Json json = Json::parse(expected->text, nullptr, false);
  if (auto issue = ReadFigures(expected->name, json, golden.expected)) return *issue;
  return golden;
}

Result<std::vector<FoundFile>> ReadFolder(const std::string& folder) {
  std::error_code error;
  std::vector<FoundFile> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    if (extension != ".json" && extension != ".csv" && extension != ".txt") continue;
    const std::optional<std::string> text = ReadText(entry.path());
    if (!text) return Issue{entry.path().string(), "cannot be read"};
    files.push_back({name, *text});
  }
  if (error) return Issue{folder, "cannot be read"};
  std::sort(files.begin(), files.end(),
            [](const FoundFile& a, const FoundFile& b) { return a.name < b.name; });
  return files;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
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
  std::int64_t least = std::min(wl[0], wl[2] - 1);
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

Result<RequestTable> ReadBlisRequests(const std::string& path, const std::string& text) {
  const std::vector<std::string> lines = LinesOf(text);
  if (lines.empty() || lines[0] != "arrival_us,shared_prefix_tokens,input_tokens,output_tokens") {
    return Issue{path, "line 1 is not arrival_us,shared_prefix_tokens,input_tokens,output_tokens"};
  }
  RequestTable table;
  std::vector<std::int32_t> shared;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    std::int64_t row[4] = {-1, -1, -1, -1};
    const char* at = lines[i].data();
    const char* end = at + lines[i].size();
    std::size_t cells = 0;
    for (std::int64_t& cell : row) {
      const auto [after, error] = std::from_chars(at, end, cell);
      if (error != std::errc() || cell < 0) break;
      at = after;
      ++cells;
      if (cells < 4 && (at == end || *at++ != ',')) break;
    }
    if (cells != 4 || at != end || row[2] < 1 || row[3] < 1 || row[1] > row[2] ||
        row[2] > INT32_MAX || row[3] > INT32_MAX) {
      return Issue{path, fmt::format("line {}: no request: {}", i + 1, lines[i])};
    }
    table.arrival.push_back(row[0] * kUs);
    table.prompt_tokens.push_back(static_cast<std::int32_t>(row[2]));
    table.output_tokens.push_back(static_cast<std::int32_t>(row[3]));
    shared.push_back(static_cast<std::int32_t>(row[1]));
  }
  if (table.arrival.empty()) return Issue{path, "no requests"};
  AddContent(table, std::vector<std::int32_t>(shared.size(), 0), shared);
  return table;
}

BlisCases LoadBlisCases(const std::string& folder) {
  const Result<std::vector<FoundFile>> found = ReadFolder(folder);
  if (!found.ok()) return {{}, found.issues()};
  const std::vector<FoundFile>& files = found.value();
  BlisCases out;
  const auto add = [&](const std::string& name, Result<BlisCase> golden) {
    if (!golden.ok()) return out.issues.push_back(golden.issues().front());
    golden.value().name = name;
    out.cases.push_back(std::move(golden.value()));
  };
  for (const FoundFile& file : files) {
    const std::string stem = file.name.substr(0, file.name.find_last_of('.'));
    if (EndsWith(file.name, ".txt")) {
      add(stem, ReadBlisSessions(file.name, file.text));
    } else if (file.name.rfind("noop_", 0) == 0 && EndsWith(file.name, ".csv")) {
      const auto at = std::find_if(files.begin(), files.end(), [&](const FoundFile& f) {
        return f.name == stem + ".expected.json";
      });
      add(stem, ReadDefaultRun(file, stem.substr(5), at == files.end() ? nullptr : &*at));
    } else if (EndsWith(file.name, ".json") && !EndsWith(file.name, ".expected.json")) {
      ReadTests(files, file, out);
    } else if (EndsWith(file.name, ".csv") && file.name.rfind("gd_", 0) != 0) {
      out.issues.push_back({file.name, "is of no form that is known"});
    }
  }
  return out;
}

}  // namespace servecast::testing
