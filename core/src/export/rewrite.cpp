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
    WantedOption& option = out[name];
    option = {name, valued ? words[++i] : negated ? "false" : "true", !valued};
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
      {"replicas", "replica-count", "num-replicas", "min-replicas"},
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
      return option.why.empty() &&
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

// Texts that have the option as it is wanted, the likeliest first.
std::vector<std::string> Edits(std::string_view text, const WantedOption& wanted) {
  const std::vector<OptionPlace> places = OptionPlaces(text);
  const std::set<std::string> names = NamesOf(wanted.name);
  std::vector<std::string> edits;
  std::vector<OptionPlace> found;
  for (const OptionPlace& place : places) {
    // Servers take the beginning of a name for it.
    const bool begins =
        place.dashed && place.name.size() > 5 && wanted.name.starts_with(place.name);
    if (begins || names.contains(place.name)) found.push_back(place);
  }
  if (found.size() > kMostPlaces) found.resize(kMostPlaces);
  for (const OptionPlace& place : found) {
    if (auto edit = Replaced(text, place, wanted)) edits.push_back(std::move(*edit));
  }
  if (found.size() > 1) {  // each of them: from the last, so that places stay
    std::string all(text);
    for (auto place = found.rbegin(); place != found.rend(); ++place) {
      if (auto edit = Replaced(all, *place, wanted)) all = std::move(*edit);
    }
    edits.push_back(std::move(all));
  }
  if (!wanted.value || wanted.name == "replicas") return edits;
  std::vector<OptionPlace> anchors = Commands(text);
  for (const OptionPlace& place : places) {
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
  if (path.starts_with("hardware.")) return "choose nodes with that GPU";
  if (path.starts_with("model.preset")) return "put the model's name in the text";
  if (path.starts_with("model."))
    return "needs a checkpoint in that form: put its name in the text";
  if (path.find(".preset") != std::string::npos) return "the version is that of the image";
  if (path.ends_with(".replicas")) return "this text starts one: run it as often, behind a router";
  return "this text has no place for it that would be read as this alone";
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
    if (!read || imported.servers == 0) {
      return {{"",
               "found no server that this text starts; next: servecast import says what is "
               "missing in it"}};
    }
    left_ = Left(*read);
    if (read->cluster.pools.size() == wanted_.cluster.pools.size()) Edit(*read);
    out.text = text_;
    out.left_out = guesses_;
    for (const std::string& path : left_) {
      const auto value = target_.find(path);
      out.left_out.push_back(
          {value == target_.end() ? path + " as by default" : path + " = " + value->second,
           WhyNot(path)});
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

  // Takes the first that brings the text nearer, and nothing else with it.
  bool TakeNearer(const std::vector<std::string>& edits) {
    for (const std::string& edit : edits) {
      if (++readings_ > std::min(kMostReadings, kMostBytes / edit.size())) return false;
      const std::optional<Scenario> read = Read(edit);
      if (!read) continue;
      std::set<std::string> left = Left(*read);
      if (left.size() >= left_.size() ||
          !std::includes(left_.begin(), left_.end(), left.begin(), left.end())) {
        continue;
      }
      text_ = edit;
      left_ = std::move(left);
      return true;
    }
    return false;
  }

  void Edit(const Scenario& read) {
    ExportJob before(read), after(wanted_);
    for (std::size_t pool = 0; pool < wanted_.cluster.pools.size(); ++pool) {
      const Options was = OptionsOf(before, pool), is = OptionsOf(after, pool);
      for (const auto& [name, option] : is) {
        const auto found = was.find(name);
        const bool same = found != was.end() && found->second.value == option.value;
        if (!same && !left_.empty()) TakeNearer(Edits(text_, option));
      }
      for (const auto& [name, option] : was) {
        if (!is.contains(name) && !left_.empty()) {
          TakeNearer(Edits(text_, {name, std::nullopt, option.is_switch}));
        }
      }
      AskForGpus(before.GpusOfServer(pool), after.GpusOfServer(pool));
    }
  }

  // What a container asks for follows its server's GPUs where there is one server; elsewhere whose
  // it is would be a guess.
  void AskForGpus(std::int64_t was, std::int64_t is) {
    if (was == is) return;
    const std::string before = Format("{}", was), after = Format("{}", is);
    std::vector<OptionPlace> places = OptionPlaces(text_);
    std::string edit = text_;
    for (auto place = places.rbegin(); place != places.rend(); ++place) {  // so that places stay
      const bool asks = place->name == "gpu" || place->name == "gpus" ||
                        place->name == "request-gpu" || place->name == "num-gpus";
      const std::size_t length = place->value_end - place->value_begin;
      if (asks && edit.compare(place->value_begin, length, before) == 0) {
        edit = Replaced(edit, *place, {place->name, after}).value_or(edit);
      }
    }
    const bool names_them = text_.find("_VISIBLE_DEVICES") != std::string::npos;
    const bool one = wanted_.cluster.pools.size() == 1;
    if (const auto read = Read(edit); one && read && Left(*read) == left_) text_ = edit;
    if (names_them || (!one && edit != text_)) {
      guesses_.push_back({Format("{} GPUs of a server in place of {}", after, before),
                          "which of them, and what asks for them, is not written"});
    }
  }

  std::string name_, text_;
  const Scenario& wanted_;
  Members target_;
  std::set<std::string> left_;  // paths that the text does not say as they shall be
  std::vector<ImportNote> guesses_;
  std::size_t readings_ = 0;
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
  if (Issues issues = Rewriting(text, wanted.value()).Run(out); !issues.empty()) return issues;
  return out;
}

}  // namespace servecast
