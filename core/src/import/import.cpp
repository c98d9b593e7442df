// See servecast/import.h.
#include "servecast/import.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "formats/benchmarks.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/yaml.h"
#include "io/json_document.h"
#include "io/trace_columns.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostText = std::size_t{16} << 20;

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Manifests name these, and little else that is text does.
bool MayBeManifest(std::string_view text) {
  for (const std::string_view name :
       {"kind:", "modelArtifacts:", "image:", "servingEngineSpec:", "model_loading_config:",
        "llm_configs:", "stages:", "_config:"}) {
    if (Has(text, name)) return true;
  }
  return MayBeTrtllmYaml(text) || MayBeVllmConfig(text);
}

void AddUtf8(std::uint32_t code, std::string& out) {
  const auto add = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | (code >> 6));
  } else if (code < 0x10000) {
    add(0xE0 | (code >> 12)), add(0x80 | ((code >> 6) & 0x3F));
  } else {
    add(0xF0 | (code >> 18)), add(0x80 | ((code >> 12) & 0x3F)), add(0x80 | ((code >> 6) & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

// As PowerShell's ">" writes a file: UTF-16, its first two bytes say in which order. nullopt: no
// such text.
std::optional<std::string> FromUtf16(std::string_view text) {
  const std::string_view mark = text.substr(0, 2);
  if (mark != "\xFF\xFE" && mark != "\xFE\xFF") return std::nullopt;
  const std::size_t low = mark[0] == '\xFF' ? 0 : 1;
  const auto unit = [text, low](std::size_t at) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + low]) |
                                      (static_cast<unsigned char>(text[at + 1 - low]) << 8));
  };
  std::string out;
  for (std::size_t at = 2; at + 1 < text.size(); at += 2) {
    std::uint32_t code = unit(at);
    if (code >= 0xD800 && code < 0xDC00 && at + 3 < text.size()) {
      code = 0x10000 + ((code - 0xD800) << 10) + ((unit(at + 2) - 0xDC00) & 0x3FF);
      at += 2;
    }
    AddUtf8(code >= 0xD800 && code < 0xE000 ? 0xFFFD : code, out);
  }
  return out;
}

std::string Called(const ImportText& text, std::size_t count) {
  return count > 1 && text.name == "-" ? "stdin" : count > 1 ? text.name : "";
}

// Whether the first line is that of a trace, whose reader is another.
bool BeginsAsTrace(std::string_view text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), std::size_t{2000}));
  return Has(line, "input_length") || TraceColumns().Choose(Split(Stripped(line), ",;\t"));
}

// What a text is that is not read, and what to do with it; "": nothing known.
std::string SeenIn(std::string_view text) {
  const std::size_t kind = text.find("\nkind:");
  const bool first = text.substr(0, 5) == "kind:";
  if (!first && kind == std::string_view::npos) return "";
  std::string_view rest = text.substr(first ? 5 : kind + 6);
  rest = Stripped(rest.substr(0, std::min(rest.find('\n'), std::size_t{80})));
  return Format(
      "found a {} in which no server is understood: paste the command of its container, "
      "or its options",
      ShownText(rest, 40));
}

// Why nothing was found in it.
Issue NothingIn(const ImportText& text, const Issues& problems) {
  if (BeginsAsTrace(text.text)) {
    return {text.name,
            "found a trace of requests: servecast run SCENARIO --trace FILE runs it, servecast "
            "fit-trace FILE makes a workload of it"};
  }
  if (!problems.empty())
    return {text.name,
            problems[0].path + (problems[0].path.empty() ? "" : ": ") + problems[0].message};
  if (Stripped(text.text).empty()) return {text.name, "found nothing but white space"};
  if (text.text.find("\"schema\"") != std::string_view::npos && ParseScenario(text.text).ok()) {
    return {text.name,
            "found a scenario: --scenario takes it, as what no text says; the page opens it"};
  }
  if (const std::string kind = SeenIn(text.text); !kind.empty()) return {text.name, kind};
  return {
      text.name,
      "found nothing that can be imported; allowed are a config.json of Hugging Face, a command, a "
      "config or a log of vLLM, SGLang or TensorRT-LLM, YAML of Kubernetes, Compose or a chart "
      "that "
      "holds one, a command or a result of a benchmark, Prometheus text of vLLM, commands of BLIS "
      "and Vidur, and nvidia-smi"};
}

// Whether another text is a sweep that takes its rows from a file of this name.
bool IsOfSweep(const ImportText& text, const std::vector<ImportText>& texts) {
  return !text.name.empty() &&
         std::any_of(texts.begin(), texts.end(), [&text](const ImportText& other) {
           return Has(other.text, "bench sweep") && Has(other.text, BaseName(text.name));
         });
}

// "value" of `"value"; # note` and of `value`; nullopt: more than one word, which is no assignment
// alone.
std::optional<std::string_view> OnlyWord(std::string_view text) {
  const bool quoted = !text.empty() && (text[0] == '"' || text[0] == '\'');
  const std::size_t end = quoted ? text.find(text[0], 1) : text.find_first_of(" \t;#\"'");
  if (quoted && end == std::string_view::npos) return std::nullopt;
  const std::string_view word = quoted ? text.substr(1, end - 1) : text.substr(0, end);
  std::string_view rest =
      end == std::string_view::npos ? std::string_view() : text.substr(end + (quoted ? 1 : 0));
  rest = Stripped(rest);
  if (!rest.empty() && rest[0] == ';') rest = Stripped(rest.substr(1));
  return rest.empty() || rest[0] == '#' ? std::optional(word) : std::nullopt;
}

// What a line of a script of Windows sets, by its lower-case name: "env:hf_home" and "seats" of
// PowerShell's "$env:HF_HOME = ..." and "$Seats = ...", "%model%" of cmd's "set MODEL=...".
// nullopt: nothing, or it does more than that.
std::optional<std::pair<std::string, std::string>> WindowsAssignment(std::string_view line) {
  std::string_view bare = Stripped(line);
  const bool powershell = bare.size() > 1 && bare[0] == '$' && bare[1] != ' ';
  if (!powershell && LowerCase(bare.substr(0, 4)) != "set ") return std::nullopt;
  bare = powershell ? bare.substr(1) : Stripped(bare.substr(4));
  const bool quoted = !powershell && bare.size() > 1 && bare[0] == '"' && bare.back() == '"';
  if (quoted) bare = bare.substr(1, bare.size() - 2);
  const std::size_t equals = bare.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string name = LowerCase(Stripped(bare.substr(0, equals)));
  std::string_view value = Stripped(bare.substr(equals + 1)).substr(0, 1000);
  if (powershell) {
    const std::optional<std::string_view> word = OnlyWord(value);
    if (!word) return std::nullopt;
    value = *word;
  } else if (!quoted && value.find_first_of("&|") != std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t scope = powershell && name.compare(0, 4, "env:") == 0 ? 4 : 0;
  const auto begin = name.begin() + static_cast<std::ptrdiff_t>(scope);
  const bool plain = name.size() > scope && std::all_of(begin, name.end(), IsName);
  if (!plain || value.find_first_of("$(%@") != std::string_view::npos) return std::nullopt;
  return std::pair(powershell ? name : "%" + name + "%", std::string(value));
}

// The variable that a text goes on with: "%NAME%", "$NAME", "${NAME}", "$env:NAME"; its name as
// above and its length. 0: none.
std::pair<std::string, std::size_t> WindowsVariable(std::string_view text) {
  const auto name_at = [text](std::size_t from) {
    std::size_t end = from;
    while (end < text.size() && IsName(text[end])) ++end;
    return end;
  };
  if (text[0] == '%') {
    const std::size_t end = name_at(1);
    const bool closed = end > 1 && end < text.size() && text[end] == '%';
    return {closed ? LowerCase(text.substr(0, end + 1)) : "", closed ? end + 1 : 0};
  }
  if (text[0] != '$') return {"", 0};
  const std::size_t brace = text.size() > 1 && text[1] == '{' ? 1 : 0, begin = 1 + brace;
  const bool scoped = LowerCase(text.substr(begin, 4)) == "env:";
  const std::size_t end = name_at(begin + (scoped ? 4 : 0));
  const bool closed = brace == 0 || (end < text.size() && text[end] == '}');
  if (!closed || end == begin) return {"", 0};
  return {LowerCase(text.substr(begin, end - begin)), end + brace};
}

// The text with them put in, names in any case as Windows has them; "": it sets none.
std::string WithWindowsVariables(std::string_view text) {
  constexpr std::size_t kMostScript = 200'000, kMostNames = 100;
  if (text.size() > kMostScript) return "";
  std::map<std::string, std::string> values;
  for (const std::string_view line : LinesIn(text)) {
    const auto set = WindowsAssignment(line);
    if (set && values.size() < kMostNames) values[set->first] = set->second;
  }
  if (values.empty()) return "";
  std::string out;
  for (const std::string_view line : LinesIn(text)) {
    const std::size_t end = WindowsAssignment(line) ? 0 : line.size();
    for (std::size_t at = 0; at < end;) {
      const auto [name, length] = WindowsVariable(line.substr(at));
      const auto value = length > 0 ? values.find(name) : values.end();
      out += value == values.end() ? std::string(1, line[at]) : value->second;
      at += value == values.end() ? 1 : length;
    }
    out += '\n';
  }
  return out;
}

// Variables that branches of a script set to different values: the last counts, as nothing is run.
void AskOfBranches(std::string_view text, Draft& draft) {
  constexpr std::size_t kMostScript = 200'000, kMostNames = 100;
  if (text.size() > kMostScript || !(Has(text, "else") || Has(text, "elif") || Has(text, "case ")))
    return;
  std::map<std::string, CommandWords> values;
  for (const std::string_view line : LinesIn(text)) {
    std::string_view bare = Stripped(line);
    if (bare.substr(0, 7) == "export ") bare = Stripped(bare.substr(7));
    const std::size_t equals = bare.find('=');
    const std::string_view name = bare.substr(0, std::min(equals, bare.size()));
    const bool assigns =
        equals != std::string_view::npos && equals > 0 &&
        name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == std::string_view::npos;
    if (!assigns || values.size() == kMostNames) continue;
    std::string_view value = bare.substr(equals + 1);
    value = Stripped(value.substr(0, std::min(value.find_first_of(";#"), value.size())));
    CommandWords& all = values[std::string(name)];
    if (all.empty() || all.back() != value) all.emplace_back(value.substr(0, 40));
  }
  for (const auto& [name, all] : values) {
    const bool used = Has(text, "$" + name) || Has(text, "${" + name);
    if (all.size() < 2 || !used) continue;
    std::string list;
    for (std::size_t k = 0; k < std::min<std::size_t>(all.size(), 6); ++k) {
      list += (k > 0 ? ", " : "") + ShownText(all[k], 40);
    }
    draft.Warn(Format("{} is {} here, the last of what branches set ({}): which is meant?",
                      ShownText(name, 40), ShownText(all.back(), 40), list));
  }
}

// Of results that a benchmark has appended to a file, a line each, the last counts.
bool TakeLastLine(std::string_view text, Json& json, Draft& draft) {
  const std::vector<std::string_view> lines = LinesIn(text);
  if (lines.size() < 2 || lines.size() > 10'000 || lines.back().size() > 1'000'000) return false;
  Result<Json> last = ParsePythonJson(lines.back());
  if (!last.ok() || !last.value().is_object()) return false;
  if (!IsServingBench(last.value()) && !IsAiperf(last.value())) return false;
  json = std::move(last.value());
  draft.Warn(Format("{} results, a line each: the last counts here", lines.size()));
  return true;
}

// The text in its forms. Issues: why it is neither JSON nor YAML though it looks like it.
Issues ReadForms(std::string_view text, const std::vector<ImportText>& beside, Json& json,
                 ImportSource& source, Draft& draft) {
  const std::string_view start = Stripped(text.substr(0, 4096));
  if (!start.empty() && (start[0] == '{' || start[0] == '[')) {
    Result<Json> read = ParsePythonJson(text);
    if (read.ok()) {
      json = std::move(read.value());
      source.json = &json;
      if (json.is_object() && json.contains("kind")) source.manifests.push_back(json);
      return {};
    }
    if (TakeLastLine(text, json, draft)) {
      source.json = &json;
      return {};
    }
    // "[Service]" begins a unit of systemd.
    const bool section = start.size() > 1 && start[0] == '[' && start[1] >= 'A' && start[1] <= 'Z';
    if (start.substr(0, 2) != "{{" && !section) return read.issues();
  }
  if (MayBeUnitFile(text)) return {};
  const std::string windows = WithWindowsVariables(text);
  const std::string_view script = windows.empty() ? text : std::string_view(windows);
  source.commands = CommandsIn(script);
  UnrollLoops(script, source.commands, draft);
  UnrollSweeps(text, beside, source.commands, draft);
  if (!MayBeManifest(text)) return {};
  Result<std::vector<Json>> documents = ParseYaml(text);
  if (!documents.ok()) return documents.issues();
  source.manifests = std::move(documents.value());
  // Commands in a manifest are read as it means them.
  for (const Json& document : source.manifests) {
    if (document.is_object()) source.commands.clear();
  }
  return {};
}

// What a text says, into the draft; nothing in it: why, by the text's name.
void ReadText(const ImportText& text, const std::vector<ImportText>& texts, Draft& draft,
              Issues& nothing) {
  const std::size_t before = draft.kinds();
  Json json;
  ImportSource source;
  source.text = text.text;
  const std::optional<std::string> plain = FromUtf16(text.text);
  if (plain) source.text = *plain;
  if (source.text.substr(0, 3) == "\xEF\xBB\xBF") source.text.remove_prefix(3);
  if (source.text.find('\0') != std::string_view::npos) {
    draft.Warn("found a byte of 0 in the text: what stands behind it is read as another command");
  }
  const Issues problems = ReadForms(source.text, texts, json, source, draft);
  for (const ImportReader read : ImportReaders()) read(source, draft);
  if (draft.kinds() > before && !source.commands.empty()) AskOfBranches(source.text, draft);
  if (draft.kinds() == before && !IsOfSweep(text, texts)) {
    Issues refused = draft.TakeRefusals();
    if (refused.empty()) refused.push_back(NothingIn(text, problems));
    for (Issue& issue : refused) {
      if (issue.path.empty()) issue.path = text.name;
      nothing.push_back(std::move(issue));
    }
  }
}

}  // namespace

Imported Import(const std::vector<ImportText>& texts, std::string_view base) {
  Draft draft;
  Issues nothing;
  for (const ImportText& text : texts) {
    if (text.text.size() > kMostText) {
      nothing.push_back(
          {text.name, Format("found {} bytes of text, allowed {}", text.text.size(), kMostText)});
      continue;
    }
    const std::string name = Called(text, texts.size());
    const Draft before = draft;
    Issues none;
    draft.BeginText(name);
    ReadText(text, texts, draft, none);
    if (draft.TurnsRolesOf(before)) {
      draft = before;
      none.clear();
      draft.BeginText(name, true);
      ReadText(text, texts, draft, none);
    }
    nothing.insert(nothing.end(), none.begin(), none.end());
  }
  if (!draft.found()) {
    Imported none;
    if (nothing.empty()) nothing.push_back({"", "found no text"});
    none.issues = std::move(nothing);
    return none;
  }
  for (const Issue& issue : nothing) {
    draft.Remark(issue.path + (issue.path.empty() ? "" : ": ") + issue.message);
  }
  return std::move(draft).Finish(base);
}

Imported Import(std::string_view text) {
  return Import({{"", text}}, *ScenarioPreset("llama-3.1-8b-h100-chat"));
}

const char* FileKind(std::string_view text, std::string_view name) {
  const Json json = LooseJson(text);
  if (json.is_object()) {
    if (TextIn(json, "kind") == "servecast-calibration") return "calibration";
    if (json.contains("schema")) return "scenario";
    const bool sets = json.contains("sets") && json["sets"].is_array();
    if (sets || json.contains("physics_coefficients")) return "coefficients";
    return json.contains("input_lens") ? "trace" : "import";
  }
  for (const std::string_view ending : {".yaml", ".yml", ".sh"}) {
    if (LowerCase(name).ends_with(ending)) return "import";
  }
  Draft draft;
  Issues none;
  if (!BeginsAsTrace(text)) ReadText({"", text}, {}, draft, none);
  return draft.found() ? "import" : "trace";
}

}  // namespace servecast
