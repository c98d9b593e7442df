// servecast catalog and coefficients: what there is to choose from.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "arguments.h"
#include "base/text.h"
#include "commands.h"
#include "io/coefficients.h"
#include "io/report_dictionary.h"
#include "servecast/scenario.h"
#include "suggest.h"
#include "text/style.h"
#include "text/table.h"
#include "text/view.h"

namespace servecast {
namespace {

constexpr const char* kCatalogHelp =
    "servecast catalog [models|gpus|engines|workloads|scenarios] [-o text|json]\n"
    "servecast catalog field WORD [-o text|json]\n"
    "servecast catalog report [-o text|json]\n"
    "\n"
    "Lists presets, policies, every field of a scenario with unit, range, default and help, and "
    "the\n"
    "columns of the files that run writes; or the presets of one kind, or the field of a path,\n"
    "or those with a word in path, choices or help, in at most 80 columns. report: every figure\n"
    "of a report's JSON.\n"
    "\n"
    "  -o text|json  text is the default, in a pipe, too; --json is -o json\n"
    "\n"
    "Exit 0: done. 2: bad input, every issue on stderr. 70: a bug of servecast.\n";

constexpr const char* kCoefficientsHelp =
    "servecast coefficients [WORD]\n"
    "\n"
    "Lists the coefficient sets of the latency model blackbox that BLIS published, those whose id\n"
    "contains WORD: id, and the time per prefill token as a multiple of the time at the GPU's\n"
    "peak. No GPU can be faster than that: sets below 1 are marked.\n"
    "\n"
    "Exit 0: done. 2: bad input, every issue on stderr. 70: a bug of servecast.\n";

}  // namespace

namespace {

// The presets of a kind, a row each; "" where there is no such kind.
std::string KindText(std::string_view word, bool json, const Style& style,
                     std::string_view with = "") {
  const ParsedAnswer catalogue{CommandCatalogJson()};
  const View presets = catalogue.root()["presets"][word == "gpus" ? "hardware" : word];
  if (!presets.IsArray()) return "";
  if (json) return presets.IndentedJson() + "\n";
  Table table("ll");
  table.Row({"preset", "name"});
  for (const View preset : presets.Elements()) {
    const std::string all = LowerCase(preset["id"].Words() + " " + preset["name"].Words());
    if (all.find(LowerCase(std::string(with))) == std::string::npos) continue;
    table.Row({preset["id"].Words(), preset["name"].Words()});
  }
  return table.Text(style);
}

// "number, 0.5 to 1, default 0.9".
std::string RangeOfField(View field) {
  std::string text = field["type"].Words();
  std::string choices;
  for (const View choice : field["choices"].Elements()) {
    choices += (choices.empty() ? "" : " ") + choice.Plain();
  }
  if (!choices.empty()) text += ": " + choices;
  if (const std::size_t others = field["others"].Elements().size(); others > 0) {
    text += fmt::format(" and {} others (servecast catalog)", others);
  }
  if (field["minimum"].Is()) {
    text += ", " + field["minimum"].Plain() +
            (field["maximum"].Is() ? " to " + field["maximum"].Plain() : " or more");
  }
  const std::string unit = field["unit"].Words();
  if (!unit.empty() && unit != "1") text += " " + unit;
  if (field["required"].Truth()) return text + ", required";
  const std::string otherwise = field["default"].Plain();
  return otherwise.empty() ? text : text + ", default " + otherwise;
}

// "with cluster.scaling.policy keda or wva": what a field that not every document has comes with.
std::string WithWords(View when) {
  std::string values;
  for (const View value : when["values"].Elements()) {
    values += (values.empty() ? " " : " or ") + value.Plain();
  }
  return values.empty() ? "" : "with " + SetPath(when["path"].Words()) + values;
}

std::string FieldsText(const std::string& word, bool json, const Style& style) {
  const ParsedAnswer catalogue{CommandCatalogJson()};
  const std::vector<View> fields = catalogue.root()["fields"].Elements();
  const bool whole = std::any_of(fields.begin(), fields.end(), [&](View field) {
    return SetPath(field["path"].Words()) == word;
  });
  std::string text;
  for (const View field : fields) {
    const std::string path = SetPath(field["path"].Words()), help = field["help"].Words();
    const std::string with = WithWords(field["when"]);
    std::string all = path + " " + help + " " + with;
    for (const View choice : field["choices"].Elements()) all += " " + choice.Plain();
    if (whole ? path != word : LowerCase(all).find(LowerCase(word)) == std::string::npos) continue;
    if (json) {
      text += (text.empty() ? "" : ",\n") + field.Json();
      continue;
    }
    text += style.In(Tone::kStrong, path) + "\n";
    text += Wrapped(style, "    ", RangeOfField(field));
    text += Wrapped(style, "    ", help);
    if (!with.empty()) text += Wrapped(style, "    ", with);
  }
  return json && !text.empty() ? "[\n" + text + "\n]\n" : text;
}

// Every figure of a report by its path, with unit and help.
void AppendMembers(const std::vector<ReportMember>& members, const std::string& path,
                   const Style& style, std::string& text) {
  for (const ReportMember& member : members) {
    text += style.In(Tone::kStrong, path + member.name);
    const std::string type = member.list ? member.type + "[]" : member.type;
    for (const std::string& more : {type, member.unit}) {
      if (!more.empty()) text += "  " + more;
    }
    text += "\n" + (member.help.empty() ? "" : Wrapped(style, "    ", member.help));
    AppendMembers(member.members, path + member.name + (member.list ? "[]." : "."), style, text);
  }
}

std::string ReportText(const Style& style) {
  std::string text;
  for (const ReportType& type : ReportTypes()) {
    text += (text.empty() ? "" : "\n") + type.name + "\n";
    AppendMembers(type.members, "  ", style, text);
  }
  return text;
}

int PrintPart(const Words& asked, bool json) {
  const Style style = StyleOf("auto", isatty(STDOUT_FILENO) != 0);
  const bool field = asked[0] == "field";
  if (field ? asked.size() != 2 : asked.size() != 1) {
    return Usage(field ? "catalog field needs one word" : "catalog: found more than one word");
  }
  const bool report = asked[0] == "report";
  const std::string text = field    ? FieldsText(asked[1], json, style)
                           : report ? (json ? ReportDictionaryJson() + "\n" : ReportText(style))
                                    : KindText(asked[0], json, style);
  if (text.empty()) {
    return Usage(field ? "no field has " + asked[1] + " in its path, choices or help"
                       : "catalog: found " + asked[0] +
                             ", allowed models, gpus, engines, workloads, scenarios, report or "
                             "field WORD");
  }
  fmt::print("{}", json ? text : Finished(style, text));
  return 0;
}

}  // namespace

int PrintPresets(std::string_view kind, std::string_view word) {
  Style style;
  style.utf8 = true;
  fmt::print("{}", KindText(kind, /*json=*/false, style, word));
  return 0;
}

int CatalogCommand(const Words& arguments) {
  bool json = false;
  Words asked;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& arg = arguments[i];
    if (arg == "--help" || arg == "-h") {
      return PrintHelp(kCatalogHelp);
    }
    const std::size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    if (arg == "--json") {
      json = true;
    } else if (name == "-o" || name == "--output") {
      const bool inside = equals != std::string::npos;
      if (!inside && i + 1 == arguments.size()) return Usage(arg + " needs a value", "catalog");
      const std::string form = inside ? arg.substr(equals + 1) : arguments[++i];
      if (form != "text" && form != "json") {
        return Usage("-o: found " + form + ", allowed text or json", "catalog");
      }
      json = form == "json";
    } else if (arg.rfind('-', 0) == 0) {
      return Usage("unknown option " + arg, "catalog");
    } else {
      asked.push_back(arg);
    }
  }
  if (!asked.empty()) return PrintPart(asked, json);
  fmt::print("{}\n", json ? CommandCatalogJson() : CatalogText());
  return 0;
}

int CoefficientsCommand(const Words& arguments) {
  if (arguments.size() > 1) return Usage("more than one word: " + arguments[1]);
  const std::string word = arguments.empty() ? "" : arguments[0];
  if (word == "--help" || word == "-h") {
    return PrintHelp(kCoefficientsHelp);
  }
  const Result<std::vector<CoefficientSet>> sets = PublishedCoefficientSets();
  if (!sets.ok()) return PrintIssues(sets.issues());
  bool found = false;
  for (const CoefficientSet& set : sets.value()) {
    if (set.id.find(word) == std::string::npos) continue;
    found = true;
    const double multiple = set.prefill_time_over_peak;
    fmt::print("{:<70} {:>7}{}\n", set.id, multiple > 0 ? fmt::format("{:.3g}", multiple) : "",
               set.FasterThanLight() ? "  faster than light" : "");
  }
  if (!found) return PrintIssues({{word, "is in the name of no set"}});
  return 0;
}

}  // namespace servecast
