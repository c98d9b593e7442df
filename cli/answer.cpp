// See answer.h.
#include "answer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "arguments.h"
#include "base/printable.h"
#include "base/text.h"
#include "io/json_writer.h"

namespace servecast {
namespace {

// A value by its path "slo.0.value_ms". Keys may have dots of their own: the shortest that is there
// is taken first.
View FieldOf(View from, std::string_view path) {
  if (path.empty()) return from;
  if (from.IsArray()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::optional<std::int64_t> index = ParseCount(path.substr(0, dot));
    if (!index) return View();
    const View element = from.At(static_cast<std::size_t>(*index));
    return dot == path.size() ? element : FieldOf(element, path.substr(dot + 1));
  }
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos;
       dot = path.find('.', dot + 1)) {
    const View member = from[path.substr(0, dot)];
    const View found = FieldOf(member, path.substr(dot + 1));
    if (found.There()) return found;
  }
  return from[path];
}

// Paths of all values that are no objects or arrays with members, in their order.
void AddPaths(View from, const std::string& path, const std::function<void(std::string)>& add) {
  const auto below = [&path](const std::string& name) {
    return path.empty() ? name : path + "." + name;
  };
  const std::vector<View> elements = from.Elements();
  const std::vector<std::string> keys = from.Keys();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    AddPaths(elements[i], below(std::to_string(i)), add);
  }
  for (const std::string& key : keys) AddPaths(from[key], below(key), add);
  if (elements.empty() && keys.empty()) add(path);
}

std::vector<std::string> AllPaths(const std::vector<View>& rows) {
  std::vector<std::string> paths;
  std::set<std::string> known;
  for (const View row : rows) {
    AddPaths(row, "", [&](std::string path) {
      if (known.insert(path).second) paths.push_back(std::move(path));
    });
  }
  return paths;
}

std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string CsvOf(const std::vector<View>& rows, const std::vector<std::string>& paths) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string out;
    for (const std::string& cell : cells) {
      out += (&cell == cells.data() ? "" : ",") + CsvCell(cell);
    }
    return out + "\n";
  };
  std::string out = line(paths);
  for (const View row : rows) {
    std::vector<std::string> cells;
    for (const std::string& path : paths) cells.push_back(FieldOf(row, path).Plain());
    out += line(cells);
  }
  return out;
}

// An unknown field is not what somebody meant: that of a row may be null in others, but is there in
// one of them.
std::optional<Issue> MissingField(const std::vector<View>& rows,
                                  const std::vector<std::string>& fields) {
  for (const std::string& field : fields) {
    const bool there = std::any_of(rows.begin(), rows.end(), [&field](const View& row) {
      return FieldOf(row, field).There();
    });
    if (there || rows.empty()) continue;
    const std::string near = NearestWord(field, AllPaths(rows));
    return Issue{"--fields", "the answer has no " + field +
                                 (near.empty() ? "" : "; did you mean " + near + "?")};
  }
  return std::nullopt;
}

std::string FieldsOf(View row, const AnswerForm& form) {
  if (form.form == Form::kJson || form.form == Form::kJsonl) {
    JsonWriter out(form.form == Form::kJson);
    out.BeginObject();
    for (const std::string& field : form.fields) {
      out.Key(field);
      out.Raw(FieldOf(row, field).Json());
    }
    out.EndObject();
    return out.Take() + "\n";
  }
  std::string out;
  for (const std::string& field : form.fields) {
    out += (out.empty() && field == form.fields[0] ? "" : "\t") + FieldOf(row, field).Plain();
  }
  return out + "\n";
}

// What all answers have in common, given their rows.
int PrintRows(const AnswerForm& form, const std::vector<View>& rows) {
  if (const auto missing = MissingField(rows, form.fields)) return PrintIssues({*missing});
  if (form.form == Form::kCsv) {
    fmt::print("{}", CsvOf(rows, form.fields.empty() ? AllPaths(rows) : form.fields));
    return 0;
  }
  for (const View row : rows) fmt::print("{}", FieldsOf(row, form));
  return 0;
}

Collected* collected = nullptr;

std::optional<Form> FormNamed(std::string_view name) {
  static const std::map<std::string_view, Form> forms = {{"", Form::kAuto},
                                                         {"text", Form::kText},
                                                         {"json", Form::kJson},
                                                         {"jsonl", Form::kJsonl},
                                                         {"csv", Form::kCsv}};
  const auto found = forms.find(name);
  return found == forms.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<AnswerForm> FormOf(const AnswerWords& words) {
  AnswerForm out;
  const std::optional<Form> form = FormNamed(words.form);
  if (!form) {
    Usage("-o: found " + words.form + ", allowed text, json, jsonl or csv");
    return std::nullopt;
  }
  if (words.colour != "auto" && words.colour != "always" && words.colour != "never") {
    Usage("--color: found " + words.colour + ", allowed auto, always or never");
    return std::nullopt;
  }
  out.form = *form;
  for (std::size_t begin = 0; !words.fields.empty() && begin <= words.fields.size();) {
    const std::size_t end = std::min(words.fields.find(',', begin), words.fields.size());
    out.fields.push_back(words.fields.substr(begin, end - begin));
    if (out.fields.back().empty()) {
      Usage("--fields: found " + words.fields + ", allowed paths between commas: verdict.state");
      return std::nullopt;
    }
    begin = end + 1;
  }
  out.terminal = isatty(STDOUT_FILENO) != 0;
  out.style = StyleOf(words.colour, out.terminal);
  return out;
}

void CollectAnswers(Collected* into) {
  collected = into;
  CollectIssues(into == nullptr ? nullptr : &into->issues);
}

int PrintAnswer(const AnswerForm& form, const Answer& answer) {
  if (collected != nullptr) {
    Style style;
    style.utf8 = true;
    const ParsedAnswer parsed(answer.json);
    collected->text += answer.text(parsed.root(), style);
    collected->json = answer.json;
    return 0;
  }
  if (form.AsEver()) {
    fmt::print("{}", answer.as_ever ? *answer.as_ever : answer.json + "\n");
    return 0;
  }
  const bool whole = form.fields.empty();
  if (whole && form.form == Form::kJson) {
    fmt::print("{}\n", answer.json);
    return 0;
  }
  if (whole && form.form == Form::kJsonl) {
    fmt::print("{}\n", WithoutSpace(answer.json));
    return 0;
  }
  const ParsedAnswer parsed(answer.json);
  if (form.ForPeople()) {
    fmt::print("{}", Finished(form.style, answer.text(parsed.root(), form.style)));
    return 0;
  }
  return PrintRows(form, answer.rows && form.form == Form::kCsv ? answer.rows(parsed.root())
                                                                : std::vector<View>{parsed.root()});
}

int PrintLines(const AnswerForm& form, const std::vector<std::string>& lines,
               const std::function<std::string(const std::vector<View>&, const Style&)>& text) {
  if (form.fields.empty() && form.form == Form::kJson) {
    std::string out = "[\n";
    for (const std::string& line : lines) {
      out += line.substr(0, line.find('\n')) + (&line == &lines.back() ? "\n" : ",\n");
    }
    fmt::print("{}]\n", out);
    return 0;
  }
  if (form.AsEver() || (form.fields.empty() && form.form == Form::kJsonl)) {
    for (const std::string& line : lines) fmt::print("{}", line);
    return 0;
  }
  std::vector<ParsedAnswer> parsed;
  std::vector<View> rows;
  parsed.reserve(lines.size());
  for (const std::string& line : lines) rows.push_back(parsed.emplace_back(line).root());
  if (form.ForPeople()) {
    fmt::print("{}", Finished(form.style, text(rows, form.style)));
    return 0;
  }
  return PrintRows(form, rows);
}

}  // namespace servecast
