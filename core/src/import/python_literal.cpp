// See python_literal.h.
#include "import/python_literal.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "import/draft.h"
#include "import/words.h"

namespace servecast {
namespace {

using PythonJson = nlohmann::json;

constexpr std::size_t kMostPython = 20'000, kMostPythonDepth = 16;

class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : text_(text.substr(0, kMostPython)) {}

  std::optional<PythonJson> Members() {
    const std::size_t begin = text_.find_first_of("{(");
    if (begin == std::string_view::npos) return std::nullopt;
    at_ = begin;
    PythonJson members = Value(0);
    if (!ended_ || !members.is_object()) return std::nullopt;
    return members;
  }

 private:
  // Comments are no values.
  char Now() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
        break;
      } else {
        ++at_;
      }
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char c) {
    if (Now() != c) return false;
    ++at_;
    return true;
  }

  PythonJson Value(std::size_t depth) {
    const char c = Now();
    ended_ = c != '\0';
    if (depth > kMostPythonDepth) return Raw();
    if (c == '{') return Entries('}', ':', depth);
    if (c == '(' && depth == 0) return Entries(')', '=', depth);
    if (text_.substr(at_, 5) == "dict(" || text_.substr(at_, 10) == "LLMConfig(") {
      at_ = text_.find('(', at_);
      return Entries(')', '=', depth);
    }
    if (c == '[') return List(depth);
    if (c == '\'' || c == '"') return Quoted();
    return Raw();
  }

  PythonJson Entries(char end, char between, std::size_t depth) {
    ++at_;
    PythonJson members = PythonJson::object();
    while (!Take(end)) {
      const char quote = Now();
      std::string name;
      if (quote == '\'' || quote == '"') {
        name = Quoted();
      } else {
        const std::size_t stop = std::min(text_.find_first_of("=:,)}", at_), text_.size());
        name = Stripped(text_.substr(at_, stop - at_));
        at_ = stop;
      }
      if (!Take(between)) return Fail();
      members[name] = Value(depth + 1);
      if (!Take(',') && Now() != end) return Fail();
    }
    return members;
  }

  PythonJson List(std::size_t depth) {
    ++at_;
    PythonJson list = PythonJson::array();
    while (!Take(']')) {
      list.push_back(Value(depth + 1));
      if (!Take(',') && Now() != ']') return Fail();
    }
    return list;
  }

  PythonJson Fail() {
    at_ = text_.size();
    ended_ = false;
    return nullptr;
  }

  std::string Quoted() {
    const char quote = text_[at_++];
    std::string out;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_];
    }
    at_ = std::min(at_ + 1, text_.size());
    return out;
  }

  // Up to the comma or bracket behind it, whatever brackets it has of its own.
  PythonJson Raw() {
    const std::size_t begin = at_;
    std::size_t depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const bool opens = c == '(' || c == '[' || c == '{' || c == '<';
      const bool closes = c == ')' || c == ']' || c == '}' || c == '>';
      if (depth == 0 && (c == ',' || closes)) break;
      if (opens) ++depth;
      if (closes) --depth;
    }
    const std::string text(Stripped(text_.substr(begin, at_ - begin)));
    if (text == "None") return nullptr;
    if (text == "True" || text == "False") return text == "True";
    const auto number = NumberIn(text);
    return number ? NumberJson(*number) : PythonJson(text);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool ended_ = false;
};

}  // namespace

std::optional<PythonJson> PythonMembers(std::string_view text) {
  return PythonReader(text).Members();
}

}  // namespace servecast
