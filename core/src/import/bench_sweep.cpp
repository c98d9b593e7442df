// vllm bench sweep serve and serve_sla (vllm/benchmarks/sweep): a server and a benchmark that are
// started again for each row of two lists of parameters. The first row is the scenario; the others
// are axes of servecast sweep.
//
//   --serve-params [{"max_num_seqs": 32}, {"max_num_seqs": 64}]
//   --bench-params [{"max_concurrency": 1}, {"max_concurrency": 4}]
//     max_num_seqs is 32, the first of 32, 64 ... servecast sweep --over engine.max_num_seqs=32,64
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using SweepJson = nlohmann::json;
using enum OptionValue;

constexpr Option kSweepOptions[] = {
    {"serve-cmd", kName, {}, ""},
    {"bench-cmd", kName, {}, ""},
    {"serve-params", kName, {}, ""},
    {"bench-params", kName, {}, ""},
    {"sla-params", kName, {}, ""},
    {"sla-variable", kText, {}, ""},
    {"link-vars", kText, {}, ""},
    {"after-bench-cmd", kName, {}, kNoTime},
    {"num-runs",
     kCount,
     {},
     "repeats of the same: here the interval of each figure says how much runs differ"},
    {"experiment-name", kText, {}, kNoTime},
    {"output-dir", kText, {}, kNoTime, "-o"},
    {"server-ready-timeout", kCount, {}, kNoTime},
    {"show-stdout", kFlag, {}, kNoTime},
    {"dry-run", kFlag, {}, kNoTime},
    {"resume", kText, {}, kNoTime},
};

constexpr std::size_t kMostShownRows = 24;

// A file of that name: given beside, or written by the text itself ("cat > NAME <<EOF").
std::string_view FileIn(std::string_view name, std::string_view text,
                        const std::vector<ImportText>& beside) {
  for (const ImportText& other : beside) {
    if (!other.name.empty() && BaseName(other.name) == BaseName(name)) return other.text;
  }
  const std::string_view base = BaseName(name);
  for (const std::string_view line : LinesIn(text)) {
    const std::size_t mark = line.find("<<");
    if (mark == std::string_view::npos || line.find(base) == std::string_view::npos) continue;
    std::string_view end = line.substr(mark + 2);
    end = end.substr(std::min(end.find_first_not_of("-'\" \\"), end.size()));
    end = end.substr(0, std::min(end.find_first_of("'\" >"), end.size()));
    const std::size_t from = static_cast<std::size_t>(line.data() - text.data()) + line.size();
    const std::size_t to = text.find("\n" + std::string(end), from);
    return to == std::string_view::npos ? "" : text.substr(from, to - from);
  }
  return "";
}

// Rows of parameters: a list of objects, or objects by name. Empty: not known.
std::vector<SweepJson> RowsOf(const GivenOptions& given, const char* option, std::string_view text,
                              const std::vector<ImportText>& beside, Draft& draft) {
  const std::string value = given.Text(option);
  if (value.empty()) return {};
  const bool here = value[0] == '[' || value[0] == '{';
  const std::string_view file = here ? value : FileIn(value, text, beside);
  const Result<SweepJson> json = ParseJson(file);
  std::vector<SweepJson> rows;
  if (json.ok()) {
    for (const SweepJson& row : json.value()) {
      if (row.is_object() && rows.size() < 10'000) rows.push_back(row);
    }
  }
  if (!rows.empty()) return rows;
  if (file.empty()) {
    draft.Warn(Format(
        "--{} {}: the file is not here, and what is swept is not known: import it beside the "
        "command",
        option, ShownText(value, 40)));
  } else {
    draft.Warn(Format("--{} {}: no list of objects, so what is swept is not known{}", option,
                      ShownText(value, 40), json.ok() ? "" : ": " + json.issues()[0].message));
  }
  return rows;
}

// A server's or benchmark's command with a row over it, as vllm/benchmarks/sweep/param_sweep.py.
void ApplyRow(const SweepJson& row, CommandWords& words) {
  for (const auto& [name, value] : row.items()) {
    if (name == "_benchmark_name") continue;
    const std::string option = PlainName("--" + name);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      const std::size_t equals = std::min(word.find('='), word.size());
      if (word.rfind("--", 0) != 0 || PlainName(word.substr(0, equals)) != option) continue;
      const bool apart =
          equals == word.size() && i + 1 < words.size() && words[i + 1].rfind("--", 0) != 0;
      const auto at = words.begin() + static_cast<std::ptrdiff_t>(i--);
      words.erase(at, at + (apart ? 2 : 1));
    }
    if (value.is_boolean()) {
      words.push_back((value.get<bool>() ? "--" : "--no-") + option);
    } else if (!value.is_null()) {
      words.push_back("--" + option);
      words.push_back(value.is_structured() ? value.dump() : TextOf(value));
    }
  }
}

struct Swept {
  std::string name;
  CommandWords values;  // in their order, each once
};

std::vector<Swept> SweptIn(const std::vector<SweepJson>& rows) {
  std::vector<Swept> swept;
  std::map<std::string, std::size_t> place;
  std::set<std::pair<std::size_t, std::string>> seen;
  for (const SweepJson& row : rows) {
    for (const auto& [name, value] : row.items()) {
      if (name == "_benchmark_name") continue;
      const auto [at, is_new] = place.try_emplace(name, swept.size());
      if (is_new) swept.push_back({name, {}});
      std::string text = value.is_structured() ? value.dump() : TextOf(value);
      if (seen.emplace(at->second, text).second) {
        swept[at->second].values.push_back(std::move(text));
      }
    }
  }
  return swept;
}

// Targets of a row of --sla-params: {"p99_ttft_ms": "<=200"}.
void TakeSla(const SweepJson& row, Draft& draft) {
  SweepJson targets = SweepJson::array();
  for (const auto& [name, value] : row.items()) {
    const std::string limit = TextOf(value);
    const std::size_t digit = limit.find_first_of("0123456789");
    const auto ms = NumberIn(digit == std::string::npos ? "" : limit.substr(digit));
    const double percentile = name.rfind("median_", 0) == 0 ? 50
                              : name[0] == 'p'
                                  ? NumberIn(name.substr(1, name.find('_') - 1)).value_or(0)
                                  : 0;
    const char* metric = name.find("ttft") != std::string::npos   ? "ttft"
                         : name.find("tpot") != std::string::npos ? "tpot"
                         : name.find("itl") != std::string::npos  ? "itl"
                         : name.find("e2el") != std::string::npos ? "e2e"
                                                                  : nullptr;
    const bool fits = ms && *ms > 0 && percentile > 0 && percentile <= 100;
    if (limit.rfind('<', 0) != 0 || !fits || metric == nullptr) {
      draft.Warn(
          Format("--sla-params {} {}: not a target here; targets are percentiles of ttft, tpot, "
                 "itl and e2e, at most so many ms",
                 ShownText(name, 40), ShownText(limit, 20)));
      continue;
    }
    targets.push_back({{"metric", metric},
                       {"percentile", NumberJson(percentile)},
                       {"limit_ms", NumberJson(*ms)}});
  }
  if (!targets.empty()) draft.Take("slo", std::move(targets), "--sla-params");
}

void SayAxes(const std::vector<SweepJson>& rows, const char* option, bool open, Draft& draft) {
  std::size_t product = 1;
  const std::vector<Swept> swept = SweptIn(rows);
  for (const Swept& each : swept) {
    if (each.values.size() < 2) continue;
    product *= each.values.size();
    draft.Warn(FirstOf(each.name, each.values, "vllm bench sweep", SweptPath(each.name, open)));
  }
  if (rows.size() > 1 && product != rows.size()) {
    draft.Warn(Format("--{} has {} rows of {} combinations: servecast sweep runs all of these",
                      option, rows.size(), product));
  }
}

// The commands of the sweep's first row; none where it does not say a server or a benchmark.
std::vector<CommandWords> Unrolled(const GivenOptions& given, bool sla, std::string_view text,
                                   const std::vector<ImportText>& beside, Draft& draft) {
  std::vector<CommandWords> commands;
  const auto cut = [&](const char* name) {
    const std::vector<CommandWords> read = CommandsIn(given.Text(name));
    // Of "bash -lc '...'" both are read: the shell's own line is none of a server.
    const auto runs = [](const CommandWords& words) {
      return std::any_of(words.begin(), words.end(), [](const std::string& word) {
        return word == "serve" || word == "bench" || word.find("server") != std::string::npos;
      });
    };
    const auto at = std::find_if(read.rbegin(), read.rend(), runs);
    return at != read.rend() ? *at : read.empty() ? CommandWords{} : read.back();
  };
  CommandWords serve = cut("serve-cmd"), bench = cut("bench-cmd");
  const auto servers = RowsOf(given, "serve-params", text, beside, draft),
             loads = RowsOf(given, "bench-params", text, beside, draft);
  if (!servers.empty() && !serve.empty()) ApplyRow(servers[0], serve);
  if (!loads.empty() && !bench.empty()) ApplyRow(loads[0], bench);
  const bool open = SendsAtARate(bench);
  SayAxes(servers, "serve-params", open, draft);
  SayAxes(loads, "bench-params", open, draft);
  if (const std::string links = given.Text("link-vars"); !links.empty()) {
    draft.Warn(
        Format("--link-vars {}: only rows where both are equal run; servecast sweep has no "
               "such rule, so leave the other rows out of its output",
               ShownText(links, 80)));
  }
  if (sla) {
    const auto targets = RowsOf(given, "sla-params", text, beside, draft);
    if (!targets.empty()) TakeSla(targets[0], draft);
    if (targets.size() > 1) {
      draft.Warn(Format("--sla-params has {} rows: the first counts here", targets.size()));
    }
    draft.Remark(
        "serve_sla looks for the most load that keeps the targets: servecast plan "
        "max-rate does");
  }
  for (CommandWords* words : {&serve, &bench}) {
    if (words->size() > 1) commands.push_back(std::move(*words));
  }
  return commands;
}

}  // namespace

bool SendsAtARate(const CommandWords& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = std::min(words[i].find('='), words[i].size());
    if (words[i].rfind("--", 0) != 0 || PlainName(words[i].substr(0, equals)) != "request-rate")
      continue;
    const std::string rate = equals < words[i].size() ? words[i].substr(equals + 1)
                             : i + 1 < words.size()   ? words[i + 1]
                                                      : "";
    return LowerCase(rate.substr(0, 3)) != "inf";
  }
  return false;
}

std::string SweptPath(std::string_view name, bool open) {
  const std::string option = PlainName("--" + std::string(name));
  static const std::map<std::string_view, std::string_view> kApart = {
      {"request-rate", "workload.arrivals.rate_per_s"},
      {"random-input-len", "workload.prompt_tokens.value"},
      {"random-output-len", "workload.output_tokens.value"},
      {"input-len", "workload.prompt_tokens.value"},
      {"output-len", "workload.output_tokens.value"}};
  if (option == "max-concurrency") {
    return open ? "workload.arrivals.max_concurrency" : "workload.arrivals.concurrency";
  }
  if (const auto at = kApart.find(option); at != kApart.end()) return std::string(at->second);
  for (const std::span<const Option> table : {VllmOptions(), BenchOptions()}) {
    for (const Option& each : table) {
      if (each.name != option || each.path.empty()) continue;
      const bool pool = each.path.rfind("pool.", 0) == 0;
      return pool ? "cluster.pools.0." + std::string(each.path.substr(5)) : std::string(each.path);
    }
  }
  return "";
}

std::string FirstOf(std::string_view name, const CommandWords& values, std::string_view in,
                    const std::string& path) {
  std::string list, over;
  for (std::size_t i = 0; i < std::min(values.size(), kMostShownRows / 2); ++i) {
    list += (i > 0 ? ", " : "") + ShownText(values[i], 20);
  }
  for (const std::string& value : values) over += (over.empty() ? "" : ",") + value;
  std::string text =
      Format("{} is {} here, the first of {}{} in {}: ", ShownText(name, 40),
             ShownText(values[0], 20), list, values.size() > kMostShownRows / 2 ? ", ..." : "", in);
  const auto plain = [](const std::string& value) { return NumberIn(value).has_value(); };
  const bool numbers = std::all_of(values.begin(), values.end(), plain);
  if (path.empty() || !numbers || over.size() > 200) return text + "which of these is meant?";
  const char* asks = in == "a loop" ? "which of these is meant? " : "";
  return text +
         Format("{}servecast sweep FILE --over {}={} runs these", asks, path, ShownText(over, 200));
}

void UnrollSweeps(std::string_view text, const std::vector<ImportText>& beside,
                  std::vector<CommandWords>& commands, Draft& draft) {
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const CommandWords& words = commands[i];
    const auto at = std::find(words.begin(), words.end(), "sweep");
    const std::size_t begin = static_cast<std::size_t>(at - words.begin());
    if (begin < 2 || begin + 2 > words.size() || words[begin - 1] != "bench") continue;
    const bool sla = words[begin + 1] == "serve_sla";
    if (!sla && words[begin + 1] != "serve") continue;
    const GivenOptions given =
        ReadOptions(std::span<const std::string>(words).subspan(begin + 2), kSweepOptions);
    draft.Found("vllm bench sweep");
    std::vector<std::string_view> apart;
    for (const Option& option : kSweepOptions) {
      if (option.why.empty()) apart.push_back(option.name);
    }
    TakeOptions(given, apart, draft);
    const std::vector<CommandWords> first = Unrolled(given, sla, text, beside, draft);
    commands.erase(commands.begin() + static_cast<std::ptrdiff_t>(i));
    commands.insert(commands.begin() + static_cast<std::ptrdiff_t>(i), first.begin(), first.end());
    i += first.size();
    --i;
  }
}

}  // namespace servecast
