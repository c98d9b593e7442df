// Reading the golden runs of BLIS: folders, tests, request lists. Session files are in
// blis_golden_sessions.cpp, comparing is in blis_golden_compare.cpp.
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

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "testing/blis_golden_parts.h"

namespace servecast::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::optional<std::string> ReadText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in.good() || !text.good()) return std::nullopt;
  return text.str();
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
  const std::int64_t host_blocks =
      test.contains("kv-cpu-blocks") ? read.Integer({"kv-cpu-blocks"}, 0) : 0;
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
  if (json["tests"].empty()) {
    return out.issues.push_back({file.name, "has no tests"});
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

// Files that cannot be read are issues; the others are read all the same.
std::vector<FoundFile> ReadFolder(const std::string& folder, Issues& issues) {
  std::error_code error;
  std::vector<FoundFile> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    if (extension != ".json" && extension != ".csv" && extension != ".txt") continue;
    std::error_code unknown;
    std::optional<std::string> text;
    if (entry.is_regular_file(unknown)) text = ReadText(entry.path());
    if (text) {
      files.push_back({name, *text});
    } else {
      issues.push_back({name, "cannot be read, or is empty"});
    }
  }
  if (error) issues.push_back({folder, "cannot be read"});
  std::sort(files.begin(), files.end(),
            [](const FoundFile& a, const FoundFile& b) { return a.name < b.name; });
  std::sort(issues.begin(), issues.end(),
            [](const Issue& a, const Issue& b) { return a.path < b.path; });
  return files;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

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
    if (cells != 4 || at != end || row[0] > kMostUs || row[2] < 1 || row[3] < 1 ||
        row[1] > row[2] || row[2] > INT32_MAX || row[3] > INT32_MAX) {
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
  BlisCases out;
  const std::vector<FoundFile> files = ReadFolder(folder, out.issues);
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
    } else if (EndsWith(file.name, ".expected.json")) {
      const std::string csv = file.name.substr(0, file.name.size() - 14) + ".csv";
      const bool known = csv.rfind("noop_", 0) == 0 &&
                         std::any_of(files.begin(), files.end(),
                                     [&](const FoundFile& f) { return f.name == csv; });
      if (!known) out.issues.push_back({file.name, "has no noop_*.csv beside it"});
    } else if (EndsWith(file.name, ".json")) {
      ReadTests(files, file, out);
    } else if (EndsWith(file.name, ".csv") && file.name.rfind("gd_", 0) != 0) {
      out.issues.push_back({file.name, "is of no form that is known"});
    }
  }
  return out;
}

}  // namespace servecast::testing
