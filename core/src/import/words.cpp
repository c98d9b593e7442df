// See words.h.
#include "import/words.h"

#include <algorithm>
#include <utility>

namespace servecast {
namespace {

constexpr std::size_t kMostVariable = 1000, kMostNested = 2;

bool IsName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class Cutter {
 public:
  Cutter(std::string_view text, std::size_t nested) : text_(text), nested_(nested) {}

  std::vector<CommandWords> Cut() {
    while (at_ < text_.size()) Step();
    EndCommand();
    return std::move(commands_);
  }
  Variables TakeAssigned() { return std::move(assigned_); }

 private:
  char Now() const { return text_[at_]; }
  char Next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\n'; }

  void Step() {
    const char c = Now();
    if (c == '\\') {
      Escaped();
    } else if (c == '\'') {
      Quoted();
    } else if (c == '"') {
      DoubleQuoted();
    } else if (c == '$' && Variable(true)) {
      return;
    } else if (c == '#' && !in_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (IsBlank(c)) {
      EndWord();
      ++at_;
    } else if (c == '\n' || c == ';' || c == '|' || (c == '&' && !in_word_) || c == '\0') {
      EndCommand();
      ++at_;
    } else {
      Add(c);
      ++at_;
    }
  }

  void Add(char c) {
    in_word_ = true;
    word_ += c;
  }

  // A line goes on behind a backslash, also where blanks follow it.
  void Escaped() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && IsBlank(text_[end])) ++end;
    if (end < text_.size() && text_[end] == '\n') {
      EndWord();
      at_ = end + 1;
      return;
    }
    if (at_ + 1 < text_.size()) Add(text_[at_ + 1]);
    at_ += 2;
  }

  void Quoted() {
    in_word_ = true;
    const std::size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
    word_ += text_.substr(at_ + 1, end - at_ - 1);
    at_ = std::min(end + 1, text_.size());
  }

  void DoubleQuoted() {
    in_word_ = true;
    for (++at_; at_ < text_.size() && Now() != '"';) {
      if (Now() == '\\' && (Next() == '"' || Next() == '\\' || Next() == '$' || Next() == '\n')) {
        if (Next() != '\n') word_ += Next();
        at_ += 2;
      } else if (Now() != '$' || !Variable(false)) {
        word_ += Now();
        ++at_;
      }
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  // "$NAME", "${NAME}", "${NAME:-otherwise}": false, and nothing is read, where the text does not
  // say what it is.
  bool Variable(bool cut) {
    std::size_t begin = at_ + 1;
    const bool braced = begin < text_.size() && text_[begin] == '{';
    if (braced) ++begin;
    std::size_t end = begin;
    while (end < text_.size() && IsName(text_[end])) ++end;
    const std::string name(text_.substr(begin, end - begin));
    std::string otherwise;
    if (braced) {
      const std::size_t close = text_.substr(0, end + kMostVariable).find('}', end);
      if (close == std::string_view::npos) return false;
      const std::string_view rest = text_.substr(end, close - end);
      if (rest.substr(0, 2) == ":-") otherwise = rest.substr(2);
      end = close + 1;
    }
    const auto known = variables_.find(name);
    if (known == variables_.end() && otherwise.empty()) return false;
    const std::string& value = known == variables_.end() ? otherwise : known->second;
    at_ = end;
    for (const char c : value) {
      if (cut && IsBlank(c)) {
        EndWord();
      } else {
        Add(c);
      }
    }
    return true;
  }

  void EndWord() {
    if (!in_word_) return;
    in_word_ = false;
    // NAME=value before a command, or alone; as one of its words it is for what it starts.
    constexpr std::string_view kDockers = "--env=";
    const bool dockers = word_.rfind(kDockers, 0) == 0;
    const std::string_view set = std::string_view(word_).substr(dockers ? kDockers.size() : 0);
    const std::size_t equals = set.find('=');
    const bool assigns = equals != std::string_view::npos && equals > 0 &&
                         std::all_of(set.begin(), set.begin() + static_cast<long>(equals), IsName);
    const bool first = words_.empty() || (words_.size() == 1 && words_[0] == "export");
    const std::string name(set.substr(0, equals));
    if (assigns) assigned_[name] = set.substr(equals + 1, kMostVariable);
    if (assigns && first) {
      variables_[name] = assigned_[name];
      word_.clear();
      return;
    }
    words_.push_back(std::exchange(word_, {}));
  }

  void EndCommand() {
    EndWord();
    CommandWords words = std::exchange(words_, {});
    if (!words.empty() && (words[0] == "$" || words[0] == ">")) words.erase(words.begin());
    for (std::size_t i = 0; i + 1 < words.size() && nested_ < kMostNested; ++i) {
      const bool script = !words[i].empty() && words[i][0] == '-' && words[i].back() == 'c' &&
                          words[i + 1].find(' ') != std::string::npos;
      if (!script) continue;
      Cutter inner(words[i + 1], nested_ + 1);
      inner.variables_ = variables_;
      for (CommandWords& each : inner.Cut()) commands_.push_back(std::move(each));
      for (auto& [name, value] : inner.assigned_) assigned_[name] = std::move(value);
    }
    if (words.size() > 1) commands_.push_back(std::move(words));
  }

  std::string_view text_;
  std::size_t nested_, at_ = 0;
  bool in_word_ = false;
  std::string word_;
  CommandWords words_;
  Variables variables_, assigned_;
  std::vector<CommandWords> commands_;
};

}  // namespace

std::vector<CommandWords> CommandsIn(std::string_view text) { return Cutter(text, 0).Cut(); }

Variables AssignedIn(std::string_view text) {
  Cutter cutter(text, 0);
  cutter.Cut();
  return cutter.TakeAssigned();
}

std::string_view BaseName(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::vector<std::string_view> LinesIn(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

std::string_view Stripped(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace servecast
