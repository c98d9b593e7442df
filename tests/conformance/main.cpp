// servecast-conformance: runs the engine on recorded runs of the systems that it reproduces and
// names the first row that differs. Everything here is words; comparing is in testing/.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "conformance/case_filter.h"
#include "fmt/format.h"
#include "testing/autoscaler_golden.h"
#include "testing/blis_golden.h"
#include "testing/engine_run.h"
#include "testing/epp_golden.h"
#include "testing/sglang_golden.h"
#include "testing/trtllm_golden.h"
#include "testing/vidur_golden.h"
#include "testing/vllm_golden.h"
#include "testing/vllm_hybrid_plan.h"
#include "testing/vllm_hybrid_reference.h"

namespace servecast::testing {
namespace {

constexpr int kOk = 0, kDifferent = 1, kBadUsage = 2;

constexpr char kUsage[] =
    R"(usage: servecast-conformance vllm DIR [--only SETTING...]
       servecast-conformance sglang DIR
       servecast-conformance trtllm DIR
       servecast-conformance blis DIR
       servecast-conformance vidur DIR
       servecast-conformance autoscaler DIR
       servecast-conformance epp DIR

vllm: runs the engine on every case of DIR/manifest.json (form vllm-golden-1, and DIR/*/manifest.json),
step by step, and prints a line a case. Members, tokens, preemptions, finishes, free blocks and
queue lengths must be equal, times within 1 us.
DIR of the form vllm-hybrid-golden-1: the engine plans every configuration and runs every schedule; a
naive reference runs the schedules again, and the cases with encoders, KV from elsewhere and
offloaded blocks, which no scenario reaches.

  --only SETTING...   cases with these settings only (separated by spaces or commas):
                        policy=fcfs       a setting and its value, named as in the manifest
                        chunked_prefill   a setting that is on; part of its name is enough
                        no_async          a setting that is off
                        scarce_a          the case of that name (name=scarce_a)
                        priority          the cases of that policy
                      Different settings must all hold; one of several values of a setting.

sglang: runs SGLang's scheduler on every case of the folders that DIR/manifest.json names (form
sglang-golden-1). Members, hits, retractions, preemptions, finishes, free and evictable tokens, the ratio
and flag of admission must be equal, times within 1 us.

trtllm: runs TensorRT-LLM's scheduler on every case of DIR/manifest.json (form trtllm-golden-1). Members,
chunks, hits, pauses, finishes, free blocks and lengths of its list and queue must be equal, times within
1 us. Cases with attention data parallelism or drafts, which no scenario has with it, are run by the reference
simulator.

blis: runs the engine by BLIS's rules (engine.compat) on every case of the files in DIR
(goldendataset*.json with gd_*.csv, session files *.txt, noop_*.csv) and prints a line a case.
Integers must be equal, other figures within 1e-9 of their value.

vidur: runs Vidur's schedulers, routers and pipeline stages on every case of DIR/manifest.json, with the
closed form of its step times, and prints a line a case; compares memory_planner.csv and zipf_map.csv.
Members, tokens, blocks and restarts must be equal, times within 1 us.

autoscaler: gives the scalers each recorded tick of DIR (hpa, keda, wva and dynamo: *.cases.json with
*.csv.gz) and prints a line a case. Every decision and its reasons must be equal; averages that the
real one sums in random order within 1e-12.

epp: replays the decisions of llm-d's endpoint picker in every file that DIR/manifest.json names (form
epp-golden-1) and prints a line a file. Survivors, scores, totals, sets, prefix matches, counters,
saturation, outcomes and times must be equal bit for bit; probabilities within 1e-12.

Exit: 0 all equal; 1 a difference, no case or an unreadable file; 2 bad usage.
)";

struct Arguments {
  std::string system;  // whose runs
  std::string folder;
  std::vector<std::string> only;
};

// False: not a valid command line.
bool ParseArguments(const std::vector<std::string>& words, Arguments& arguments) {
  constexpr std::array<std::string_view, 7> kSystems = {"vllm",  "sglang",     "trtllm", "blis",
                                                        "vidur", "autoscaler", "epp"};
  if (words.empty() || std::find(kSystems.begin(), kSystems.end(), words[0]) == kSystems.end()) {
    return false;
  }
  arguments.system = words[0];
  bool only = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--only" && arguments.system == "vllm") {
      only = true;
      if (i + 1 == words.size()) return false;
    } else if (words[i].rfind("--", 0) == 0) {
      return false;
    } else if (arguments.folder.empty()) {
      if (only) return false;  // DIR comes first: after --only everything is a setting
      arguments.folder = words[i];
    } else if (only) {
      std::size_t from = 0;
      for (std::size_t to = 0; to != std::string::npos; from = to + 1) {
        to = words[i].find(',', from);
        const std::string term = words[i].substr(from, to == std::string::npos ? to : to - from);
        if (!term.empty()) arguments.only.push_back(term);
      }
    } else {
      return false;
    }
  }
  return !arguments.folder.empty();
}

void PrintIssues(const Issues& issues) {
  for (const Issue& issue : issues) {
    std::fprintf(stderr, "%s: %s\n", issue.path.c_str(), issue.message.c_str());
  }
}

// "" when the engine did what vLLM did.
std::string Difference(const GoldenCase& golden, std::size_t* steps) {
  const Result<EngineRun> run =
      RunEngine(EngineCaseOf(golden), std::make_unique<GoldenLatency>(), {});
  if (!run.ok()) return "the engine refuses it: " + run.issues().front().message;
  *steps = run.value().steps.size();
  std::optional<std::string> difference = FirstDifference(golden, run.value().steps);
  if (!difference) {
    difference = FirstDifference(golden, ResultsOf(run.value().report, golden.requests));
  }
  return difference.value_or("");
}

int RunHybrid(const Arguments& arguments);

int RunVllm(const Arguments& arguments) {
  if (IsHybridSet(arguments.folder)) return RunHybrid(arguments);
  const Result<std::vector<GoldenCase>> loaded = LoadGoldenCases(arguments.folder);
  if (!loaded.ok()) {
    PrintIssues(loaded.issues());
    return kDifferent;
  }
  const Result<CaseFilter> filter = CaseFilter::Parse(arguments.only, loaded.value());
  if (!filter.ok()) {
    PrintIssues(filter.issues());
    return kBadUsage;
  }
  int cases = 0, equal = 0;
  for (const GoldenCase& golden : loaded.value()) {
    if (!filter.value().Accepts(golden)) continue;
    ++cases;
    std::size_t steps = 0;
    const std::string difference = Difference(golden, &steps);
    if (difference.empty()) {
      ++equal;
      std::printf("ok %s steps=%zu\n", golden.name.c_str(), steps);
    } else {
      std::printf("DIFF %s: %s\n", golden.name.c_str(), difference.c_str());
    }
  }
  std::printf("%d cases, %d equal\n", cases, equal);
  return equal > 0 && equal == cases ? kOk : kDifferent;
}

// The sections of a set of hybrid cases.
int RunHybrid(const Arguments& arguments) {
  int cases = 0, equal = 0;
  const auto say = [&](const std::string& name, const std::string& difference) {
    ++cases;
    equal += difference.empty() ? 1 : 0;
    std::printf("%s %s%s%s\n", difference.empty() ? "ok" : "DIFF", name.c_str(),
                difference.empty() ? "" : ": ", difference.c_str());
  };
  const auto plans = ComparePlans(arguments.folder);
  if (!plans) {
    std::fprintf(stderr, "%s/kv_cache_config/cases.json: cannot be read\n",
                 arguments.folder.c_str());
    return kDifferent;
  }
  for (const PlanComparison& plan : *plans) say("kv_cache_config " + plan.name, plan.difference);
  const Result<std::vector<GoldenCase>> schedules = LoadHybridSchedules(arguments.folder);
  if (!schedules.ok()) {
    PrintIssues(schedules.issues());
    return kDifferent;
  }
  for (const GoldenCase& golden : schedules.value()) {
    std::size_t steps = 0;
    say("schedules " + golden.name, Difference(golden, &steps));
  }
  for (const auto& [load, by] : {std::pair(&LoadEncoderCases, "engine"),
                                 std::pair(&LoadGroupedEncoderCases, "engine by groups")}) {
    const Result<std::vector<GoldenCase>> encoder = load(arguments.folder);
    if (!encoder.ok()) {
      PrintIssues(encoder.issues());
      return kDifferent;
    }
    for (const GoldenCase& golden : encoder.value()) {
      std::size_t steps = 0;
      say(fmt::format("encoder, {}: {}", by, golden.name), Difference(golden, &steps));
    }
  }
  // What no scenario reaches is the reference's alone.
  for (const char* section : {"schedules", "encoder", "remote"}) {
    const bool both = section == std::string("schedules");
    for (const ReplayComparison& each :
         ReplayHybrid(arguments.folder, section).value_or(std::vector<ReplayComparison>())) {
      say(fmt::format("{}{} {}", both ? "reference: " : "", section, each.name), each.difference);
    }
  }
  for (const ReplayComparison& each :
       ReplayOffload(arguments.folder).value_or(std::vector<ReplayComparison>())) {
    say("offload " + each.name, each.difference);
  }
  std::printf("%d cases, %d equal\n", cases, equal);
  return equal > 0 && equal == cases ? kOk : kDifferent;
}

int RunSglang(const Arguments& arguments) {
  const Result<std::vector<SglangCase>> loaded = LoadSglangCases(arguments.folder);
  if (!loaded.ok()) {
    PrintIssues(loaded.issues());
    return kDifferent;
  }
  std::size_t equal = 0;
  for (const SglangCase& golden : loaded.value()) {
    const Result<EngineRun> run =
        RunEngine(EngineCaseOf(golden), std::make_unique<SglangGoldenLatency>(), {});
    std::optional<std::string> difference;
    if (!run.ok()) {
      difference = "the engine refuses it: " + run.issues().front().message;
    } else {
      difference = FirstDifference(golden, StepsOf(golden, run.value().steps));
      if (!difference) {
        difference = FirstDifference(golden, ResultsOf(run.value().report, golden.requests));
      }
    }
    equal += difference ? 0 : 1;
    std::printf("%s %s%s\n", difference ? "DIFF" : "ok", golden.name.c_str(),
                difference ? (": " + *difference).c_str()
                           : fmt::format(" steps={}", golden.steps.size()).c_str());
  }
  std::printf("%zu cases, %zu equal\n", loaded.value().size(), equal);
  return equal > 0 && equal == loaded.value().size() ? kOk : kDifferent;
}

int RunTrtllm(const Arguments& arguments) {
  const Result<std::vector<TrtllmCase>> loaded = LoadTrtllmCases(arguments.folder);
  if (!loaded.ok()) {
    PrintIssues(loaded.issues());
    return kDifferent;
  }
  std::size_t equal = 0;
  for (const TrtllmCase& golden : loaded.value()) {
    const std::optional<std::string> difference = FirstDifference(golden);
    equal += difference ? 0 : 1;
    std::printf("%s %s%s\n", difference ? "DIFF" : "ok", golden.name.c_str(),
                difference ? (": " + *difference).c_str()
                           : fmt::format(" rows={}{}", golden.steps.size(),
                                         golden.OfEngine() ? "" : " (reference)")
                                 .c_str());
  }
  std::printf("%zu cases, %zu equal\n", loaded.value().size(), equal);
  return equal > 0 && equal == loaded.value().size() ? kOk : kDifferent;
}

int RunBlis(const Arguments& arguments) {
  const BlisCases loaded = LoadBlisCases(arguments.folder);
  int equal = 0;
  for (const BlisCase& golden : loaded.cases) {
    const std::optional<std::string> difference = FirstDifference(golden);
    if (difference) {
      std::printf("DIFF %s: %s\n", golden.name.c_str(), difference->c_str());
    } else {
      ++equal;
      std::printf("ok %s figures=%zu\n", golden.name.c_str(), golden.expected.size());
    }
  }
  PrintIssues(loaded.issues);
  const int cases = static_cast<int>(loaded.cases.size());
  std::printf("%d cases, %d equal\n", cases, equal);
  return equal > 0 && equal == cases && loaded.issues.empty() ? kOk : kDifferent;
}

int RunVidur(const Arguments& arguments) {
  const VidurCases loaded = LoadVidurCases(arguments.folder);
  int cases = 0, equal = 0;
  const auto say = [&](const std::string& name, const std::string& difference,
                       const std::string& count) {
    ++cases;
    equal += difference.empty() ? 1 : 0;
    std::printf("%s %s%s\n", difference.empty() ? "ok" : "DIFF", name.c_str(),
                difference.empty() ? (" " + count).c_str() : (": " + difference).c_str());
  };
  for (const VidurCase& golden : loaded.cases) {
    say(golden.name, FirstDifference(golden).value_or(""),
        fmt::format("batches={}", golden.batches.size()));
  }
  const std::pair<const char*, std::string (*)(const std::string&, std::size_t*)> tables[] = {
      {"memory_planner.csv", PlannerDifference}, {"zipf_map.csv", ZipfDifference}};
  for (const auto& [file, difference] : tables) {
    const std::string path = arguments.folder + "/" + file;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    std::size_t rows = 0;
    const std::string found = difference(path, &rows);
    say(file, found, fmt::format("rows={}", rows));
  }
  PrintIssues(loaded.issues);
  std::printf("%d cases, %d equal\n", cases, equal);
  return equal > 0 && equal == cases && loaded.issues.empty() ? kOk : kDifferent;
}

int RunAutoscaler(const Arguments& arguments) {
  const ScalerCases loaded = CompareAutoscalers(arguments.folder);
  std::size_t equal = 0;
  for (const ScalerCase& one : loaded.cases) {
    equal += one.difference ? 0 : 1;
    std::printf("%s %s rows=%zu%s\n", one.difference ? "DIFF" : "ok", one.name.c_str(), one.rows,
                one.difference ? (": " + *one.difference).c_str() : "");
  }
  PrintIssues(loaded.issues);
  std::printf("%zu cases, %zu equal\n", loaded.cases.size(), equal);
  return equal > 0 && equal == loaded.cases.size() && loaded.issues.empty() ? kOk : kDifferent;
}

int RunEpp(const Arguments& arguments) {
  const Result<std::vector<std::string>> files = EppFiles(arguments.folder);
  if (!files.ok()) {
    PrintIssues(files.issues());
    return kDifferent;
  }
  std::size_t equal = 0;
  for (const std::string& name : files.value()) {
    const Result<EppFile> file = ReplayEppFile(arguments.folder, name);
    if (!file.ok()) {
      PrintIssues(file.issues());
      continue;
    }
    const std::string& difference = file.value().difference;
    equal += difference.empty() ? 1 : 0;
    std::printf("%s %s%s\n", difference.empty() ? "ok" : "DIFF", name.c_str(),
                difference.empty() ? fmt::format(" decisions={}", file.value().rows).c_str()
                                   : (": " + difference).c_str());
  }
  std::printf("%zu files, %zu equal\n", files.value().size(), equal);
  return equal > 0 && equal == files.value().size() ? kOk : kDifferent;
}

int Run(const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), "--help") != words.end()) {
    std::fputs(kUsage, stdout);
    return kOk;
  }
  Arguments arguments;
  if (!ParseArguments(words, arguments)) {
    std::fputs(kUsage, stderr);
    return kBadUsage;
  }
  if (arguments.system == "autoscaler") return RunAutoscaler(arguments);
  if (arguments.system == "vidur") return RunVidur(arguments);
  if (arguments.system == "epp") return RunEpp(arguments);
  if (arguments.system == "sglang") return RunSglang(arguments);
  if (arguments.system == "trtllm") return RunTrtllm(arguments);
  return arguments.system == "vllm" ? RunVllm(arguments) : RunBlis(arguments);
}

}  // namespace
}  // namespace servecast::testing

int main(int argc, char** argv) {
  return servecast::testing::Run(std::vector<std::string>(argv + 1, argv + argc));
}
