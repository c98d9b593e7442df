// See yaml.h.
#include "import/yaml.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/words.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

struct Line {
  std::size_t number = 0, indent = 0;
  std::string_view text;  // without indent; a comment that stands alone is left out
  std::string_view raw;
};

std::size_t IndentOf(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// Where a quoted text that begins at `at` ends, its quote included; the size where it does not.
std::size_t EndOfQuote(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      const bool doubled = quote == '\'' && i + 1 < text.size() && text[i + 1] == '\'';
      if (!doubled) return i + 1;
      ++i;
    }
  }
  return text.size();
}

// Without a comment behind it.
std::string_view WithoutComment(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || text[i - 1] == ' ' || text[i - 1] == '[' || text[i - 1] == ',';
    if ((text[i] == '"' || text[i] == '\'') && begins) {
      i = EndOfQuote(text, i) - 1;
    } else if (text[i] == '#' && (i == 0 || text[i - 1] == ' ')) {
      return Stripped(text.substr(0, i));
    }
  }
  return Stripped(text);
}

// Where the key of "key: value" ends; nullopt when the line has none.
std::optional<std::size_t> EndOfKey(std::string_view text) {
  if (text.empty() || text[0] == '[' || text[0] == '{' || text[0] == '|' || text[0] == '>') {
    return std::nullopt;
  }
  std::size_t at = 0;
  if (text[0] == '"' || text[0] == '\'') at = EndOfQuote(text, 0);
  for (; at < text.size(); ++at) {
    if (text[at] == ':' && (at + 1 == text.size() || text[at + 1] == ' ')) return at;
    if (text[at] == '#' && at > 0 && text[at - 1] == ' ') return std::nullopt;
  }
  return std::nullopt;
}

std::string Unquoted(std::string_view text) {
  text = Stripped(text);
  if (text.size() < 2 || (text[0] != '"' && text[0] != '\'')) return std::string(text);
  const char quote = text[0];
  const std::size_t end = EndOfQuote(text, 0);
  std::string out;
  for (std::size_t i = 1; i + 1 < end; ++i) {
    if (quote == '\'' && text[i] == '\'') ++i;
    if (quote == '"' && text[i] == '\\' && i + 2 < end) {
      ++i;
      out += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
    } else {
      out += text[i];
    }
  }
  return out;
}

// Brackets and braces that a line opens, less those that it closes.
std::int64_t Balance(std::string_view line) {
  std::int64_t open = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' || line[i] == '\'') i = EndOfQuote(line, i) - 1;
    if (line[i] == '[' || line[i] == '{') ++open;
    if (line[i] == ']' || line[i] == '}') --open;
  }
  return open;
}

// Whether a text that was quoted before the line ends in it.
bool Closes(std::string_view line, char quote) {
  const std::string begun = quote + std::string(line);
  const std::size_t end = EndOfQuote(begun, 0);
  return end < begun.size() ||
         (end > 1 && begun[end - 1] == quote && EndOfQuote(begun + " ", 0) == end);
}

// A value in brackets or braces, read from its characters.
class Flow {
 public:
  explicit Flow(std::string_view text) : text_(text) {}

  std::optional<Json> Read(std::size_t depth = 0) {
    Skip();
    if (depth > kMostJsonLevels || at_ == text_.size()) return std::nullopt;
    if (text_[at_] == '[') return List(depth);
    if (text_[at_] == '{') return Map(depth);
    return Json(Scalar(",]}"));
  }

 private:
  void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool Take(char c) {
    Skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string Scalar(std::string_view ends) {
    Skip();
    const std::size_t begin = at_;
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      at_ = EndOfQuote(text_, at_);
    } else {
      at_ = std::min(text_.find_first_of(ends, at_), text_.size());
    }
    return Unquoted(text_.substr(begin, at_ - begin));
  }
  std::optional<Json> List(std::size_t depth) {
    ++at_;
    Json list = Json::array();
    while (!Take(']')) {
      std::optional<Json> item = Read(depth + 1);
      if (!item) return std::nullopt;
      list.push_back(*std::move(item));
      if (!Take(',') && (Skip(), at_ == text_.size() || text_[at_] != ']')) return std::nullopt;
    }
    return list;
  }
  std::optional<Json> Map(std::size_t depth) {
    ++at_;
    Json map = Json::object();
    while (!Take('}')) {
      const std::string key = Scalar(":,}");
      if (Take(':')) {
        std::optional<Json> value = Read(depth + 1);
        if (!value) return std::nullopt;
        map[key] = *std::move(value);
      }
      if (!Take(',') && (Skip(), at_ == text_.size() || text_[at_] != '}')) return std::nullopt;
    }
    return map;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::vector<Line> lines) : lines_(std::move(lines)) {}

  Result<Json> Read() {
    Json document = Node(0, 0);
    if (!problem_ && at_ < lines_.size()) Complain("is indented as nothing above it is");
    if (problem_) return *problem_;
    return document;
  }

 private:
  bool More(std::size_t indent) const {
    return at_ < lines_.size() && lines_[at_].indent >= indent && !problem_;
  }

  void Complain(const char* what) {
    if (problem_) return;
    const Line& line = lines_[std::min(at_, lines_.size() - 1)];
    problem_ =
        Issue{Format("line {}", line.number), Format("\"{}\" {}", ShownText(line.text, 40), what)};
  }

  static bool IsItem(std::string_view text) { return text == "-" || text.substr(0, 2) == "- "; }

  // Lines from here on that are indented by so much or more.
  Json Node(std::size_t indent, std::size_t depth) {
    if (depth > kMostJsonLevels) Complain("is nested too deep");
    if (!More(indent)) return nullptr;
    const Line& line = lines_[at_];
    if (IsItem(line.text)) return List(line.indent, depth);
    if (EndOfKey(line.text)) return Map(line.indent, depth);
    const std::string_view text = WithoutComment(line.text);
    ++at_;
    return Value(text, indent == 0 ? 0 : indent - 1, depth);
  }

  Json List(std::size_t indent, std::size_t depth) {
    Json list = Json::array();
    while (More(indent) && lines_[at_].indent == indent && IsItem(lines_[at_].text)) {
      Line& line = lines_[at_];
      const std::size_t skip = std::min(line.text.find_first_not_of(' ', 1), line.text.size());
      if (skip == line.text.size()) {
        ++at_;
        list.push_back(Node(indent + 1, depth + 1));
        continue;
      }
      // What stands behind the dash is as on a line of its own.
      line.indent += skip;
      line.text.remove_prefix(skip);
      if (IsItem(line.text) || EndOfKey(line.text)) {
        list.push_back(Node(line.indent, depth + 1));
      } else {
        const std::string_view text = WithoutComment(line.text);
        ++at_;
        list.push_back(Value(text, indent, depth + 1));
      }
    }
    return list;
  }

  Json Map(std::size_t indent, std::size_t depth) {
    Json map = Json::object();
    while (More(indent) && lines_[at_].indent == indent) {
      const Line line = lines_[at_];
      const auto end = EndOfKey(line.text);
      if (!end) {
        Complain("is no key with a value");
        break;
      }
      const std::string key = Unquoted(line.text.substr(0, *end));
      const std::string_view rest = WithoutComment(line.text.substr(*end + 1));
      ++at_;
      if (!rest.empty()) {
        map[key] = Value(rest, indent, depth + 1);
      } else if (More(indent) && lines_[at_].indent == indent && IsItem(lines_[at_].text)) {
        map[key] = List(indent, depth + 1);  // items may stand below their key's first letter
      } else {
        map[key] = Node(indent + 1, depth + 1);
      }
    }
    return map;
  }

  // What stands behind a key or a dash, with the lines that are indented by more than `indent`.
  Json Value(std::string_view text, std::size_t indent, std::size_t depth) {
    if (text.empty()) return nullptr;
    if (text[0] == '|' || text[0] == '>') return Block(text, indent);
    const bool flow = (text[0] == '[' || text[0] == '{') && text.substr(0, 2) != "{{";
    std::string whole(text);
    const bool quoted = text[0] == '"' || text[0] == '\'';
    std::int64_t open = flow ? Balance(text) : 0;
    bool closed = quoted && Closes(text.substr(1), text[0]);
    // Brackets may close at any indent.
    while (More(open > 0 ? 0 : indent + 1) && !closed && !(flow && open <= 0)) {
      const std::string_view line = quoted ? lines_[at_].text : WithoutComment(lines_[at_].text);
      whole += ' ';
      whole += line;
      open += flow ? Balance(line) : 0;
      closed = quoted && Closes(line, text[0]);
      ++at_;
    }
    if (!flow) return quoted ? Unquoted(whole) : whole;
    std::optional<Json> value = Flow(whole).Read(depth);
    if (value) return *std::move(value);
    --at_;
    Complain("belongs to brackets that do not end");
    return nullptr;
  }

  // Behind "|", ">", "|-".
  Json Block(std::string_view mark, std::size_t indent) {
    std::string out;
    std::optional<std::size_t> begin;
    for (; More(indent + 1); ++at_) {
      const std::string_view raw = lines_[at_].raw;
      if (!begin) begin = IndentOf(raw);
      out += raw.substr(std::min(std::min(*begin, IndentOf(raw)), raw.size()));
      out += mark[0] == '|' ? '\n' : ' ';
    }
    const bool kept = mark.size() < 2 || mark[1] != '-';
    while (!kept && !out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
    return out;
  }

  std::vector<Line> lines_;
  std::size_t at_ = 0;
  std::optional<Issue> problem_;
};

}  // namespace

Result<std::vector<Json>> ParseYaml(std::string_view text) {
  std::vector<Json> documents;
  std::vector<Line> lines;
  std::optional<Issues> problem;
  const auto end = [&] {
    if (lines.empty() || problem) return;
    Result<Json> document = Reader(std::exchange(lines, {})).Read();
    if (document.ok()) {
      documents.push_back(std::move(document.value()));
    } else {
      problem = document.issues();
    }
  };
  std::size_t number = 0;
  for (std::string_view raw : Split(text, "\n")) {
    ++number;
    if (!raw.empty() && raw.back() == '\r') raw.remove_suffix(1);
    const std::size_t indent = IndentOf(raw);
    const std::string_view line = Stripped(raw);
    const bool template_line =
        line.substr(0, 2) == "{{" && line.size() > 3 && line.substr(line.size() - 2) == "}}";
    if (raw.substr(0, 3) == "---" || raw == "...") {
      end();
    } else if (!line.empty() && !template_line && (line[0] != '#')) {
      lines.push_back({number, indent, line, raw});
    }
  }
  end();
  if (problem) return *problem;
  return documents;
}

}  // namespace servecast
