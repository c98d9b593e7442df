// The text that a scenario came from, with what the scenario has now: options are edited where they
// stand, and an edit counts only if the text, read again, says what it should and nothing else.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/printable.h"
#include "base/text.h"
#include "export/option_places.h"
#include "export/targets.h"
#include "import/kinds.h"
#include "import/options.h"
#include "import/vllm_options.h"
#include "io/json_document.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostText = std::size_t{1} << 20;
constexpr std::size_t kMostPlaces = 40;                    // that are tried for one option
constexpr std::size_t kMostReadings = 1000;                // of the text with an edit
constexpr std::size_t kMostBytes = std::size_t{32} << 20;  // in all of them

// Members by their paths, "engine.max_num_seqs": "128", of what a server's text says.
using Members = std::map<std::string, std::string>;

void AddMembers(const Json& value, const std::string& path, Members& out) {
  if (!value.is_structured()) {
    out[path] = CompactJson(value);
    return;
  }
  for (const auto& [key, member] : value.items()) AddMembers(member, path + "." + key, out);
}

// A pool has the scenario's GPU, engine and scheduler, but for its own.
Members ServersOf(const Json& document) {
  Members members;
  AddMembers(document.value("model", Json::object()), "model", members);
  Json cluster = document.value("cluster", Json::object());
  if (!cluster.contains("pools")) cluster["pools"] = Json::array({Json::object()});
  for (Json& pool : cluster["pools"]) {
    for (const char* section : {"hardware", "engine", "scheduler"}) {
      const Json own = pool.value(section, Json::object());
      Json all = own.contains("preset") ? Json::object() : document.value(section, Json::object());
      all.update(own);
      pool[section] = std::move(all);
    }
  }
  const bool one = cluster["pools"].size() == 1;
  for (const char* section : {"hardware", "engine", "scheduler"}) {
    if (!one) break;
    AddMembers(cluster["pools"][0][section], section, members);
    cluster["pools"][0].erase(section);
  }
  AddMembers(cluster, "cluster", members);
  return members;
}

// Paths of members that differ.
std::set<std::string> Different(const Members& a, const Members& b) {
  std::set<std::string> paths;
  const auto add = [&paths](const Members& from, const Members& other) {
    for (const auto& [path, value] : from) {
      const auto found = other.find(path);
      if (found == other.end() || found->second != value) paths.insert(path);
    }
  };
  add(a, b), add(b, a);
  return paths;
}

// Options of a pool's servers by their engine's names.
using Options = std::map<std::string, WantedOption>;

void AddWords(const FlagWords& words, Options& out) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i].substr(2);
    const bool valued = i + 1 < words.size() && !words[i + 1].starts_with("--");
    const bool negated = !valued && name.starts_with("no-");
    if (negated) name.erase(0, 3);
    const std::string value = valued ? words[++i] : negated ? "false" : "true";
    if (name == "speculative-config") {
      // The drafter's checkpoint is in the text alone, so its other members stay.
      const Json drafts = LooseJson(value);
      name = "num-speculative-tokens";
      out[name] = {name, CompactJson(drafts.value("num_speculative_tokens", Json(0))), false};
      continue;
    }
    out[name] = {name, value, !valued};
  }
}

void AddYaml(std::string_view yaml, Options& out) {
  for (const std::string_view line : Split(yaml, "\n")) {
    const std::size_t first = line.find_first_not_of(' '), colon = line.find(": ");
    if (first == std::string_view::npos || colon == std::string_view::npos) continue;
    std::string name(line.substr(first, colon - first));
    std::replace(name.begin(), name.end(), '_', '-');
    const std::string value(line.substr(colon + 2));
    out[name] = {name, value, value == "true" || value == "false"};
  }
}

Options OptionsOf(ExportJob& job, std::size_t pool) {
  Options options;
  const SchedulerSpec& scheduler = job.Scheduler(pool);
  if (scheduler.Trtllm() != nullptr) {
    AddYaml(TrtllmYaml(job, pool), options);
  } else {
    // One with prefill and decode apart has vLLM's scheduler here.
    const bool sglang = job.PresetAt(pool, "engine").starts_with("sglang");
    AddWords(sglang ? SglangFlags(job, pool) : VllmFlags(job, pool), options);
  }
  const PoolSpec& spec = job.scenario().cluster.pools[pool];
  options["replicas"] = {"replicas", Format("{}", spec.replicas / spec.attention_data_parallel)};
  return options;
}

// What else an option is called: by the tables of both engines, by charts, and short.
std::set<std::string> NamesOf(const std::string& name) {
  static const std::vector<std::set<std::string>> kSame = {
      {"tensor-parallel-size", "tp-size", "tp", "tensor", "tensor-parallelism"},
      {"pipeline-parallel-size", "pp-size", "pp"},
      {"data-parallel-size", "dp-size", "dp"},
      {"moe-expert-parallel-size", "ep-size"},
      {"replicas", "replica-count", "num-replicas"},
  };
  std::set<std::string> names = {name};
  for (const std::set<std::string>& same : kSame) {
    if (same.contains(name)) names.insert(same.begin(), same.end());
  }
  for (const Option& option : VllmOptions()) {
    if (option.name == name && !option.alias.empty()) {
      names.emplace(option.alias.substr(1));
    }
  }
  return names;
}

// One that counts: others will stand beside it.
bool IsServerOption(const OptionPlace& place) {
  const auto knows = [&place](std::span<const Option> table) {
    return std::any_of(table.begin(), table.end(), [&place](const Option& option) {
      return option.why.empty() && option.value != OptionValue::kWords &&
             (option.name == place.name ||
              (!option.alias.empty() && option.alias.substr(1) == place.name));
    });
  };
  return knows(VllmOptions()) || knows(SglangOptions());
}

// Words behind which a command's options begin.
std::vector<OptionPlace> Commands(std::string_view text) {
  std::vector<OptionPlace> places;
  constexpr std::string_view kInBrackets = "\"serve\", \"";
  for (std::size_t at = text.find(kInBrackets); at != std::string_view::npos;
       at = text.find(kInBrackets, at + 1)) {
    OptionPlace place;
    place.dashed = true;
    place.begin = at + kInBrackets.size();
    place.end = std::min(text.find('"', place.begin), text.size());
    places.push_back(place);
  }
  for (const std::string_view command : {"vllm serve ", "sglang.launch_server", "api_server "}) {
    for (std::size_t at = text.find(command); at != std::string_view::npos;
         at = text.find(command, at + 1)) {
      OptionPlace place;
      place.dashed = true;
      place.begin = at;
      std::size_t end = at + command.size();
      if (command.ends_with(' ') && end < text.size() && text[end] != '-') {
        end = std::min(text.find_first_of(" \t\n\"'\\;&", end), text.size());
      } else if (command.ends_with(' ')) {
        --end;
      }
      place.end = end;
      places.push_back(place);
    }
  }
  return places;
}

// Where the option stands in the text.
std::vector<OptionPlace> Found(std::string_view text, const WantedOption& wanted) {
  const std::set<std::string> names = NamesOf(wanted.name);
  std::vector<OptionPlace> found;
  for (OptionPlace& place : OptionPlaces(text)) {
    // Servers take the beginning of a name for it.
    const bool begins =
        place.dashed && place.name.size() > 5 && wanted.name.starts_with(place.name);
    if (begins || names.contains(place.name)) found.push_back(std::move(place));
  }
  if (found.size() > kMostPlaces) found.resize(kMostPlaces);
  return found;
}

// The text with the option as it is wanted at these places, which are in order.
std::string ReplacedAt(std::string_view text, const std::vector<OptionPlace>& places,
                       const WantedOption& wanted) {
  std::string all(text);
  for (auto place = places.rbegin(); place != places.rend(); ++place) {  // so that places stay
    if (auto edit = Replaced(all, *place, wanted)) all = std::move(*edit);
  }
  return all;
}

// Texts that have the option behind others, the likeliest first.
std::vector<std::string> Insertions(std::string_view text, const WantedOption& wanted) {
  std::vector<std::string> edits;
  if (!wanted.value || wanted.name == "replicas" || wanted.name == "num-speculative-tokens") {
    return edits;
  }
  std::vector<OptionPlace> anchors = Commands(text);
  for (const OptionPlace& place : OptionPlaces(text)) {
    if (IsServerOption(place)) anchors.push_back(place);
  }
  const std::size_t least = anchors.size() - std::min(anchors.size(), kMostPlaces);
  for (std::size_t i = anchors.size(); i-- > least;) {
    edits.push_back(InsertedBehind(text, anchors[i], wanted));
  }
  return edits;
}

// Why a member is not in the text.
std::string WhyNot(const std::string& path) {
  if (path.find("hardware.") != std::string::npos) return "choose nodes with that GPU";
  if (path.starts_with("model.preset")) return "put the model's name in the text";
  if (path.starts_with("model.")) {
    return "needs a checkpoint in that form: put its name in the text";
  }
  if (path.find(".preset") != std::string::npos) return "the engine is that of the text's image";
  if (path.ends_with(".replicas")) return "how many there are is no option of this text";
  if (path.find("speculative") != std::string::npos) return "needs a drafter, which the text names";
  return "this text has no place for it that would be read as this alone";
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

class Rewriting {
 public:
  Rewriting(const ImportText& text, const Scenario& wanted)
      : name_(text.name),
        text_(text.text),
        wanted_(wanted),
        target_(ServersOf(LooseJson(wanted.canonical_text))) {}

  Issues Run(Rewritten& out) {
    const Imported imported = Imports(text_);
    std::optional<Scenario> read = Read(text_);
    const bool logged = !imported.kinds.empty() && Contains(imported.kinds[0], "log");
    if (!read || imported.servers == 0 || logged) {
      return {{"",
               "found no server that this text starts; next: servecast import says what is "
               "missing in it"}};
    }
    for (const char* word : {"node-rank", "nnodes", "--headless", "leaderWorkerTemplate",
                             "data-parallel-start-rank"}) {
      if (!Contains(text_, word)) continue;
      return {
          {"", Format("found {}, of a server on several nodes, allowed one on one node: all its "
                      "commands would have to change alike",
                      word)}};
    }
    left_ = Left(*read);
    const std::size_t starts = read->cluster.pools.size(), pools = wanted_.cluster.pools.size();
    out.text = text_;
    if (starts != pools) {
      out.left_out.push_back(
          {Format("{} pools", pools), Format("the text starts {}: add the others to it", starts)});
      return {};
    }
    Edit(*read);
    out.text = text_;
    out.left_out = guesses_;
    for (const std::string& path : left_) {
      const auto value = target_.find(path);
      out.left_out.push_back(
          {value == target_.end() ? path + " as by default" : path + " = " + value->second,
           is_spent_ ? "the text is too long to try more" : WhyNot(path)});
    }
    return {};
  }

 private:
  Imported Imports(std::string_view text) const {
    return Import({{name_, text}}, *ScenarioPreset("llama-3.1-8b-h100-chat"));
  }
  std::optional<Scenario> Read(std::string_view text) const {
    const Imported imported = Imports(text);
    if (imported.document.empty()) return std::nullopt;
    Result<Scenario> scenario = ParseScenario(imported.document);
    if (!scenario.ok()) return std::nullopt;
    return std::move(scenario.value());
  }

  std::set<std::string> Left(const Scenario& read) const {
    return Different(ServersOf(LooseJson(read.canonical_text)), target_);
  }

  // What is left of a text; nullopt: it is not read, or not nearer, or there is no time for it.
  std::optional<std::set<std::string>> Nearer(const std::string& edit) {
    if (edit == text_) return std::nullopt;
    is_spent_ = is_spent_ || ++readings_ > std::min(kMostReadings, kMostBytes / edit.size());
    const std::optional<Scenario> read = is_spent_ ? std::nullopt : Read(edit);
    if (!read) return std::nullopt;
    std::set<std::string> left = Left(*read);
    const bool nearer = left.size() < left_.size() &&
                        std::includes(left_.begin(), left_.end(), left.begin(), left.end());
    return nearer ? std::optional(std::move(left)) : std::nullopt;
  }

  bool Take(const std::string& edit) {
    std::optional<std::set<std::string>> left = Nearer(edit);
    if (!left) return false;
    text_ = edit;
    left_ = std::move(*left);
    return true;
  }

  // The option where it stands: at one place, or else at as few as all of them together need.
  void Replace(const WantedOption& wanted) {
    std::vector<OptionPlace> found = Found(text_, wanted);
    for (const OptionPlace& place : found) {
      if (left_.empty() || Take(ReplacedAt(text_, {place}, wanted))) return;
    }
    const std::optional<std::set<std::string>> all = Nearer(ReplacedAt(text_, found, wanted));
    if (!all) return;
    for (std::size_t i = 0; i < found.size();) {
      std::vector<OptionPlace> fewer = found;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (Nearer(ReplacedAt(text_, fewer, wanted)) == all) {
        found = std::move(fewer);
      } else {
        ++i;
      }
    }
    Take(ReplacedAt(text_, found, wanted));
  }

  void Edit(const Scenario& read) {
    ExportJob before(read), after(wanted_);
    std::vector<WantedOption> changed;
    for (std::size_t pool = 0; pool < wanted_.cluster.pools.size(); ++pool) {
      const Options was = OptionsOf(before, pool), is = OptionsOf(after, pool);
      for (const auto& [name, option] : is) {
        const auto found = was.find(name);
        if (found == was.end() || found->second.value != option.value) changed.push_back(option);
      }
      for (const auto& [name, option] : was) {
        if (!is.contains(name)) changed.push_back({name, std::nullopt, option.is_switch});
      }
    }
    for (const WantedOption& option : changed) Replace(option);
    for (const WantedOption& option : changed) {
      for (const std::string& edit : Insertions(text_, option)) {
        if (left_.empty() || Take(edit)) break;
      }
    }
    for (std::size_t pool = 0; pool < wanted_.cluster.pools.size(); ++pool) {
      AskForGpus(before.GpusOfServer(pool), after.GpusOfServer(pool));
    }
  }

  // What a container asks for follows its server's GPUs where the text asks once; elsewhere whose
  // it is would be a guess.
  void AskForGpus(std::int64_t was, std::int64_t is) {
    const bool says = std::none_of(left_.begin(), left_.end(), [](const std::string& path) {
      return path.find("parallel") != std::string::npos;
    });
    if (was == is || !says) return;
    const std::string before = Format("{}", was), after = Format("{}", is);
    std::vector<OptionPlace> asks;
    for (OptionPlace& place : OptionPlaces(text_)) {
      const bool of_container =
          place.name == "gpu" && place.begin > 0 && text_[place.begin - 1] == '/';
      const bool of_chart = place.name == "request-gpu" || place.name == "num-gpus";
      const std::size_t length = place.value_end - place.value_begin;
      if ((of_container || of_chart) && text_.compare(place.value_begin, length, before) == 0) {
        asks.push_back(std::move(place));
      }
    }
    // As a limit and as a request.
    constexpr std::size_t kNear = 200;
    const bool once =
        asks.size() == 1 || (asks.size() == 2 && asks[1].begin - asks[0].begin < kNear);
    if (once) {
      const std::string edit = ReplacedAt(text_, asks, {asks[0].name, after});
      if (const auto read = Read(edit); read && Left(*read) == left_) {
        text_ = edit;
        return;
      }
    }
    const std::string words = LowerCase(text_);
    for (const char* word : {"_visible_devices", "device=", "count:", "gpu:", "gpus", "gres"}) {
      if (!Contains(words, word)) continue;
      guesses_.push_back({Format("{} GPUs of a server in place of {}", after, before),
                          "what asks for them in the text stays as it is"});
      return;
    }
  }

  std::string name_, text_;
  const Scenario& wanted_;
  Members target_;
  std::set<std::string> left_;  // paths that the text does not say as they shall be
  std::vector<ImportNote> guesses_;
  std::size_t readings_ = 0;
  bool is_spent_ = false;
};

}  // namespace

Result<Rewritten> Rewrite(const ImportText& text, std::string_view document) {
  if (text.text.size() > kMostText) {
    return Issue{"",
                 Format("found a text of {} bytes, allowed up to {}", text.text.size(), kMostText)};
  }
  const Result<Scenario> wanted = ParseScenario(document);
  if (!wanted.ok()) return Issues(wanted.issues());
  Rewritten out;
  // Where every line ends as Windows has it: edited without, and put back.
  std::string lines;
  for (std::size_t i = 0; i < text.text.size(); ++i) {
    if (text.text.substr(i, 2) != "\r\n") lines += text.text[i];
  }
  const auto ends = std::count(text.text.begin(), text.text.end(), '\n');
  const bool windows =
      ends > 0 && lines.size() + static_cast<std::size_t>(ends) == text.text.size();
  if (!windows) lines = text.text;
  if (Issues issues = Rewriting({text.name, lines}, wanted.value()).Run(out); !issues.empty()) {
    return issues;
  }
  if (!windows) return out;
  std::string ended;
  for (const char c : out.text) ended += c == '\n' ? std::string("\r\n") : std::string(1, c);
  out.text = std::move(ended);
  return out;
}

}  // namespace servecast
