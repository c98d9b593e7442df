// servecast plan: how much load a scenario holds within its targets, and the replicas a load needs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "arguments.h"
#include "commands.h"
#include "plan/question.h"
#include "progress.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr const char* kPlanHelp =
    "servecast plan QUESTION FILE|PRESET [options] [--set path=value]... [--trace FILE]\n"
    "               [--coefficients ID|FILE]\n"
    "\n"
    "  max-rate  the highest load that keeps all targets (slo): arrivals of all classes in\n"
    "            proportion, the clients of a closed loop, or how fast a trace is played\n"
    "  min-gpus  the fewest replicas that keep them at the scenario's load; of a prefill and a\n"
    "            decode pool both counts. least_gpus: what the load keeps busy at the peaks\n"
    "            of the data sheet, which no system can beat\n"
    "  growth    --percent P: how many months a load that grows by P % a month is held (-1:\n"
    "            not even today's), and what is needed when; --months N to look ahead (24),\n"
    "            --from YYYY-MM for dates\n"
    "  day       --hours A,B,...: the replicas that each hour of a day needs, whose load is A, B,\n"
    "            ... times the scenario's; beside the busiest hour's all day. Hours are taken for\n"
    "            themselves: replicas come and go at once\n"
    "  autoscale the scaler that keeps the targets over a load that changes (its own profile, or\n"
    "            --hours A,B,... as of day) for the fewest GPU-hours: HPA, KEDA and WVA by "
    "metric,\n"
    "            target, window and floor, with the cold start of cluster.scaling; the cheapest "
    "on\n"
    "            --days N runs (5). Beside the fewest replicas throughout, and replicas by a\n"
    "            schedule that knows the load. Replicas may fail by cluster.failures.mtbf_s.\n"
    "            --windows P: in P % of windows of five minutes, too\n"
    "  drill     whether the targets hold when something goes wrong, a run for each of\n"
    "              one replica fewer, of every pool\n"
    "              one replica at 70 % of its GPUs' speed\n"
    "              one replica that fails and restarts within the run\n"
    "              a node's replicas that do\n"
    "              one replica twice as slow for a time\n"
    "              a rolling update\n"
    "              a spike (--spike TIMES for --seconds S; 2 for 60)\n"
    "            What the scenario cannot have, such as one replica fewer of one, is left out\n"
    "  tornado   what each input moves: the closest target with a fifth less and a fifth more of\n"
    "            the load, of lengths, of the GPU's peaks, of limits of the engine ...\n"
    "  cost      what the GPUs cost, beside an API that is paid by the token: --input $ and\n"
    "            --output $ per million; answer is the load at which both cost as much. Whether\n"
    "            it is held, max-rate says\n"
    "  speculation\n"
    "            until which load engine.speculative pays: the mean request is complete sooner\n"
    "            with drafts than without; pairs of runs of the same requests\n"
    "  search    the cheapest of many designs that keeps them: plan search --help\n"
    "\n"
    "--prices reserved-1y or on-demand (AWS's) takes the prices of GPUs from that list; presets\n"
    "have those of the first. A GPU that is not in it has none; a price of the scenario's own\n"
    "stays.\n"
    "\n"
    "Prints JSON, and a sentence on stderr. answer has value, and low and high of its 95 %\n"
    "interval: on its good side every target is met for certain, beyond the other end one is\n"
    "missed; binding is the target that ends it; curve the places that were tried. Each has as\n"
    "many runs as the interval needs, on the same seeds. checked: what servecast run --sampling\n"
    "says of the very scenarios that the answer is about, and whether it agrees. sure, of "
    "max-rate\n"
    "and min-gpus: where all targets are met with 90 % probability (at_90), and at even odds\n"
    "(at_50), the forecast's error included; other answers are of sampling alone. Exit 0 also "
    "when\n"
    "there is no answer: it is null then, and outcome says why.\n";

// What a question is given besides the scenario, as typed.
struct Typed {
  std::string percent, months, from, spike, seconds, input, output, hours, days, windows;
};

// All of a text as a number. Emscripten's from_chars reads integers alone.
template <class Value>
bool ReadWhole(const std::string& text, Value& value) {
  const char* end = text.data() + text.size();
  if constexpr (std::is_floating_point_v<Value>) {
    if (text[0] == '+' || text.find_first_not_of("0123456789+-.eE") != std::string::npos)
      return false;
    char* read = nullptr;
    value = std::strtod(text.c_str(), &read);
    return read == end && std::isfinite(value);
  } else {
    const auto read = std::from_chars(text.data(), end, value);
    return read.ec == std::errc() && read.ptr == end;
  }
}

// A number of an option; what is not given keeps its value. False: it is said on stderr.
template <class Value>
bool ReadNumber(const char* option, const std::string& text, Value& value) {
  if (text.empty()) return true;
  if (ReadWhole(text, value)) return true;
  Usage(fmt::format("{}: found {}, allowed a{} number", option, text,
                    std::is_floating_point_v<Value> ? "" : " whole"));
  return false;
}

// "2026-11" as months; nullopt: it is none.
std::optional<std::int64_t> MonthOf(const std::string& text) {
  std::int64_t year = 0, month = 0;
  if (text.size() != 7 || text[4] != '-') return std::nullopt;
  const char* begin = text.data();
  if (std::from_chars(begin, begin + 4, year).ptr != begin + 4) return std::nullopt;
  if (std::from_chars(begin + 5, begin + 7, month).ptr != begin + 7) return std::nullopt;
  if (year < 1 || month < 1 || month > 12) return std::nullopt;
  return 12 * year + month - 1;
}

// nullopt: what is wrong has been said.
std::optional<QuestionOptions> OptionsOf(const std::string& question, const Typed& typed) {
  QuestionOptions options;
  double windows = 0;  // %
  if (question == "growth" && typed.percent.empty()) {
    Usage("plan growth needs --percent");
    return std::nullopt;
  }
  if (!ReadNumber("--percent", typed.percent, options.percent) ||
      !ReadNumber("--months", typed.months, options.months) ||
      !ReadNumber("--days", typed.days, options.days) ||
      !ReadNumber("--windows", typed.windows, windows) ||
      !ReadNumber("--spike", typed.spike, options.drill.spike) ||
      !ReadNumber("--seconds", typed.seconds, options.drill.spike_s) ||
      !ReadNumber("--input", typed.input, options.api.input) ||
      !ReadNumber("--output", typed.output, options.api.output)) {
    return std::nullopt;
  }
  if (question == "day" && typed.hours.empty()) {
    Usage("plan day needs --hours");
    return std::nullopt;
  }
  for (std::size_t begin = 0; !typed.hours.empty() && begin <= typed.hours.size();) {
    const std::size_t end = std::min(typed.hours.find(',', begin), typed.hours.size());
    const std::string hour = typed.hours.substr(begin, end - begin);
    double& load = options.hours.emplace_back();
    if (!ReadNumber("--hours", hour.empty() ? "nothing" : hour, load)) return std::nullopt;
    begin = end + 1;
  }
  options.windows = windows / 100;
  options.from = MonthOf(typed.from);
  if (!typed.from.empty() && !options.from) {
    Usage("--from: found " + typed.from + ", allowed a month such as 2026-11");
    return std::nullopt;
  }
  return options;
}

struct QuestionWords {
  std::string_view name;
  std::vector<std::string_view> options;
};

const std::vector<QuestionWords>& Questions() {
  static const std::vector<QuestionWords> questions = {
      {"max-rate", {}},
      {"min-gpus", {}},
      {"growth", {"--percent", "--months", "--from"}},
      {"day", {"--hours"}},
      {"autoscale", {"--hours", "--days", "--windows"}},
      {"drill", {"--spike", "--seconds"}},
      {"tornado", {}},
      {"cost", {"--input", "--output"}},
      {"speculation", {}}};
  return questions;
}

}  // namespace

std::vector<std::string> PlanQuestions() {
  std::vector<std::string> names;
  for (const QuestionWords& question : Questions()) names.emplace_back(question.name);
  names.emplace_back("search");
  return names;
}

int PlanCommand(const Words& asked_words) {
  Words words = asked_words;
  const std::vector<QuestionWords>& questions = Questions();
  const std::string name = words.empty() ? "" : words[0];
  if (name == "search") return SearchCommand({words.begin() + 1, words.end()});
  if (name == "--help" || name == "-h") {
    return PrintHelp(kPlanHelp);
  }
  const auto question = std::find_if(questions.begin(), questions.end(),
                                     [&name](const auto& entry) { return entry.name == name; });
  if (question == questions.end()) {
    return Usage(
        "plan: found " + (name.empty() ? "no question" : name) +
        ", allowed max-rate, min-gpus, growth, day, autoscale, drill, tornado, cost, speculation "
        "or search");
  }
  words.erase(words.begin());
  Arguments args;
  Typed typed;
  Options options{.help = kPlanHelp, .answers = true};
  options.values = {{"--prices", &args.prices}};
  for (const std::string_view option : question->options) {
    options.values.emplace_back(option, option == "--percent"   ? &typed.percent
                                        : option == "--months"  ? &typed.months
                                        : option == "--from"    ? &typed.from
                                        : option == "--spike"   ? &typed.spike
                                        : option == "--hours"   ? &typed.hours
                                        : option == "--days"    ? &typed.days
                                        : option == "--windows" ? &typed.windows
                                        : option == "--input"   ? &typed.input
                                        : option == "--output"  ? &typed.output
                                                                : &typed.seconds);
  }
  if (const auto done = ReadArguments(words, options, args)) return *done;
  const std::optional<QuestionOptions> given = OptionsOf(name, typed);
  if (!given) return kBadInput;
  Result<Asked> asked = Load(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  if (auto beyond =
          BeyondRoom(MemoryOfRun(asked.value().scenario, asked.value().trace), MemoryRoom())) {
    return PrintIssues(Labelled(LabelOf(args), {*std::move(beyond)}));
  }
  Result<Question> answer = Question::Create(name, std::move(asked.value().scenario),
                                             std::move(asked.value().trace), *given);
  if (!answer.ok()) return PrintIssues(answer.issues());
  RunThrough(answer.value());
  if (!answer.value().Problems().empty()) return PrintIssues(answer.value().Problems());
  const std::string sentence = answer.value().Sentence();
  const int printed = PrintAnswer(
      args.form,
      {.json = answer.value().Json(/*for_people=*/true),
       .text =
           [&](View plan, const Style& style) {
             return PlanText(plan, style, name, sentence, args.typed);
           },
       .rows =
           [](View plan) {
             if (plan["policies"].IsArray()) return plan["policies"].Elements();
             return (plan["curve"].IsArray() ? plan : plan["pools"].At(0))["curve"].Elements();
           }});
  if (printed == 0 && !args.form.ForPeople()) fmt::print(stderr, "{}\n", sentence);
  return printed;
}

}  // namespace servecast
