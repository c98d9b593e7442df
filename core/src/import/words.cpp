// See words.h.
#include "import/words.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"

namespace servecast {
namespace {

constexpr std::size_t kMostVariable = 1000, kMostNested = 2, kMostLookAhead = 200;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool Declares(std::string_view word) {
  return word == "export" || word == "local" || word == "declare" || word == "readonly";
}

// "A * (B + 2)" of whole numbers; nullopt where a name is not known, or something else stands
// there.
class Sum {
 public:
  Sum(std::string_view text, const Variables& variables) : text_(text), variables_(variables) {}

  std::optional<std::int64_t> Value() {
    const std::optional<std::int64_t> value = Terms(0);
    return Next() == '\0' ? value : std::nullopt;
  }

 private:
  static constexpr std::int64_t kMost = 1'000'000'000'000;

  char Next() {
    while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::optional<std::int64_t> Terms(std::size_t depth) {
    std::optional<std::int64_t> sum = Product(depth);
    for (char sign = Next(); sum && (sign == '+' || sign == '-'); sign = Next()) {
      ++at_;
      const std::optional<std::int64_t> next = Product(depth);
      sum = next ? Bounded(sign == '+' ? *sum + *next : *sum - *next) : std::nullopt;
    }
    return sum;
  }

  std::optional<std::int64_t> Product(std::size_t depth) {
    std::optional<std::int64_t> product = Atom(depth);
    for (char sign = Next(); product && (sign == '*' || sign == '/' || sign == '%');
         sign = Next()) {
      ++at_;
      const std::optional<std::int64_t> next = Atom(depth);
      if (!next || (sign != '*' && *next == 0)) return std::nullopt;
      if (sign == '*' && static_cast<double>(*product) * static_cast<double>(*next) > 1e12)
        return std::nullopt;
      product = Bounded(sign == '*'   ? *product * *next
                        : sign == '/' ? *product / *next
                                      : *product % *next);
    }
    return product;
  }

  std::optional<std::int64_t> Atom(std::size_t depth) {
    if (Next() == '(' && depth < 8) {
      ++at_;
      const std::optional<std::int64_t> inner = Terms(depth + 1);
      if (Next() != ')') return std::nullopt;
      ++at_;
      return inner;
    }
    // "NAME", "$NAME", "${NAME}", "${NAME:-4}".
    const bool braced = text_.substr(at_, 2) == "${";
    at_ += braced ? 2 : Next() == '$' ? 1 : 0;
    const std::size_t begin = at_;
    while (at_ < text_.size() && IsName(text_[at_])) ++at_;
    std::string word(text_.substr(begin, at_ - begin));
    if (word.empty()) return std::nullopt;
    const auto known = variables_.find(word);
    if (known != variables_.end()) word = known->second;
    if (braced) {
      const std::size_t close = text_.find('}', at_);
      if (close == std::string_view::npos) return std::nullopt;
      const bool otherwise = known == variables_.end() && text_.substr(at_, 2) == ":-";
      if (otherwise) word = text_.substr(at_ + 2, close - at_ - 2);
      at_ = close + 1;
    }
    const auto number = ParseCount(word);
    return number ? Bounded(static_cast<std::int64_t>(*number)) : std::nullopt;
  }

  static std::optional<std::int64_t> Bounded(std::int64_t value) {
    return value <= kMost && value >= -kMost ? std::optional(value) : std::nullopt;
  }

  std::string_view text_;
  const Variables& variables_;
  std::size_t at_ = 0;
};

class Cutter {
 public:
  Cutter(std::string_view text, std::size_t nested, Variables variables = {})
      : text_(text), nested_(nested), variables_(std::move(variables)) {}

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
    // PowerShell's and cmd's lines go on behind a mark of their own.
    if (c == '\\' || ((c == '`' || c == '^') && EndsLine())) {
      Escaped();
    } else if (c == '\'') {
      Quoted();
    } else if (c == '"') {
      DoubleQuoted();
    } else if (c == '$' && (Array() || Parentheses() || Variable(true))) {
      return;
    } else if (c == '#' && !in_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (!array_.empty() && (c == ')' || c == '\n')) {
      EndWord();
      if (c == ')') EndArray();
      ++at_;
    } else if (c == '(' && BeginsArray()) {
      ++at_;
    } else if (c == '<' || c == '>' || (c == '&' && Next() == '>')) {
      Redirection();
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

  bool EndsLine() const {
    const std::size_t end = text_.find_first_not_of(" \t\r", at_ + 1);
    return end != std::string_view::npos && text_[end] == '\n';
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
      } else if (Now() != '$' || !(Array() || Parentheses() || Variable(false))) {
        word_ += Now();
        ++at_;
      }
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  // "NAME=(" and "NAME+=(" begin an array: words until ")".
  bool BeginsArray() {
    const bool more = word_.size() > 2 && word_.compare(word_.size() - 2, 2, "+=") == 0;
    if (!array_.empty() || word_.size() < 2 || word_.back() != '=') return false;
    const std::string name = word_.substr(0, word_.size() - (more ? 2 : 1));
    if (!std::all_of(name.begin(), name.end(), IsName)) return false;
    array_ = name;
    if (!more) arrays_[name].clear();
    before_array_ = std::exchange(words_, {});
    word_.clear();
    in_word_ = false;
    return true;
  }

  void EndArray() {
    CommandWords& array = arrays_[std::exchange(array_, {})];
    array.insert(array.end(), words_.begin(), words_.end());
    words_ = std::exchange(before_array_, {});
  }

  // "${NAME[@]}", "${NAME[*]}": its words, each for itself. False: no array of that name.
  bool Array() {
    const std::size_t end = text_.substr(0, at_ + kMostLookAhead).find('}', at_);
    if (text_.substr(at_, 2) != "${" || end == std::string_view::npos) return false;
    const std::string_view inner = text_.substr(at_ + 2, end - at_ - 2);
    if (inner.size() < 4) return false;
    const std::string_view which = inner.substr(inner.size() - 3);
    const auto array = arrays_.find(inner.substr(0, inner.size() - 3));
    if ((which != "[@]" && which != "[*]") || array == arrays_.end()) return false;
    at_ = end + 1;
    if (array->second.empty() && word_.empty()) in_word_ = false;
    for (std::size_t i = 0; i < array->second.size(); ++i) {
      if (i > 0) EndWord();
      for (const char c : array->second[i]) Add(c);
      in_word_ = true;
    }
    return true;
  }

  // "$((A * 2))" is its value; that and "$(command)" stay in one word where nothing says it.
  bool Parentheses() {
    if (Next() != '(') return false;
    std::size_t end = at_ + 1, depth = 0;
    const std::size_t last = std::min(text_.size(), at_ + kMostLookAhead);
    for (; end < last; ++end) {
      depth += text_[end] == '(' ? 1 : 0;
      if (text_[end] == ')' && --depth == 0) break;
    }
    if (end >= last) return false;
    const std::string_view whole = text_.substr(at_, end + 1 - at_);
    std::string value(whole);
    if (whole.size() > 5 && whole.substr(0, 3) == "$((" && whole[whole.size() - 2] == ')') {
      const auto sum = Sum(whole.substr(3, whole.size() - 5), variables_).Value();
      if (sum) value = Format("{}", *sum);
    }
    at_ = end + 1;
    for (const char c : value) Add(c);
    return true;
  }

  // "> file", "2>&1", "&>>log": none of its words. "<model>", for somebody to fill in, is a word;
  // "> vllm serve" is behind a prompt.
  void Redirection() {
    const std::size_t close =
        text_.substr(0, at_ + kMostLookAhead).find_first_of("> \t\r\n", at_ + 1);
    if (Now() == '<' && close != std::string_view::npos && text_[close] == '>' && close > at_ + 1) {
      for (; at_ <= close; ++at_) Add(Now());
      return;
    }
    const bool descriptor = !word_.empty() && std::all_of(word_.begin(), word_.end(), IsDigit);
    if (descriptor) {
      word_.clear();
      in_word_ = false;
    }
    EndWord();
    const bool prompt = words_.empty() && !descriptor && Now() == '>' && IsBlank(Next());
    while (at_ < text_.size() && (Now() == '<' || Now() == '>' || Now() == '&')) ++at_;
    while (at_ < text_.size() && IsBlank(Now())) ++at_;
    skips_ = !prompt;
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
    if (std::exchange(skips_, false)) return word_.clear();
    if (!array_.empty()) return words_.push_back(std::exchange(word_, {}));
    // NAME=value before a command, or alone; as one of its words it is for what it starts.
    constexpr std::string_view kDockers = "--env=";
    const bool dockers = word_.rfind(kDockers, 0) == 0;
    const std::string_view set = std::string_view(word_).substr(dockers ? kDockers.size() : 0);
    std::size_t equals = set.find('=');
    const bool more = equals != std::string_view::npos && equals > 1 && set[equals - 1] == '+';
    if (more) --equals;
    const bool assigns = equals != std::string_view::npos && equals > 0 &&
                         std::all_of(set.begin(), set.begin() + static_cast<long>(equals), IsName);
    const bool first = words_.empty() || (words_.size() == 1 && Declares(words_[0]));
    const std::string name(set.substr(0, equals));
    if (assigns) {
      std::string value(set.substr(equals + (more ? 2 : 1)));
      const auto before = variables_.find(name);
      if (more && before != variables_.end()) value.insert(0, before->second);
      assigned_[name] = value.substr(0, kMostVariable);
    }
    if (assigns && first) {
      variables_[name] = assigned_[name];
      if (words_.empty() && name == "CUDA_VISIBLE_DEVICES") devices_ = word_;
      word_.clear();
      return;
    }
    words_.push_back(std::exchange(word_, {}));
  }

  // The script that an option of one word starts: behind "-c", and of sbatch's --wrap; "": none.
  static std::string ScriptAt(const CommandWords& words, std::size_t i) {
    constexpr std::string_view kWrap = "--wrap=";
    if (words[i].rfind(kWrap, 0) == 0) return words[i].substr(kWrap.size());
    if (i + 1 == words.size() || words[i].empty() || words[i][0] != '-') return "";
    if (words[i] == "--wrap") return words[i + 1];
    const std::size_t at = i + (words[i + 1] == "--" && i + 2 < words.size() ? 2 : 1);
    return words[i].back() == 'c' ? words[at] : "";
  }

  void EndCommand() {
    EndWord();
    skips_ = false;
    CommandWords words = std::exchange(words_, {});
    const std::string devices = std::exchange(devices_, {});
    if (!words.empty() && (words[0] == "$" || words[0] == ">")) words.erase(words.begin());
    for (std::size_t i = 0; i < words.size() && nested_ < kMostNested; ++i) {
      const std::string script = ScriptAt(words, i);
      if (script.find(' ') == std::string::npos) continue;
      Cutter inner(script, nested_ + 1, variables_);
      for (CommandWords& each : inner.Cut()) commands_.push_back(std::move(each));
      for (auto& [name, value] : inner.assigned_) assigned_[name] = std::move(value);
    }
    if (words.size() > 1 && !devices.empty()) words.insert(words.begin(), devices);
    if (words.size() > 1) commands_.push_back(std::move(words));
  }

  std::string_view text_;
  std::size_t nested_, at_ = 0;
  bool in_word_ = false, skips_ = false;  // the next word is where something is written to
  std::string word_, array_;              // array_: the name of the one that is being read
  std::string devices_;                   // "CUDA_VISIBLE_DEVICES=0" before this command
  CommandWords words_, before_array_;
  Variables variables_, assigned_;
  std::map<std::string, CommandWords, std::less<>> arrays_;
  std::vector<CommandWords> commands_;
};

}  // namespace

bool IsName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::vector<CommandWords> CommandsIn(std::string_view text, const Variables& known) {
  return Cutter(text, 0, known).Cut();
}

std::map<std::string, CommandWords> LoopsIn(std::span<const CommandWords> commands) {
  std::map<std::string, CommandWords> loops;
  for (const CommandWords& words : commands) {
    const auto at = std::find(words.begin(), words.end(), "for");
    const std::size_t begin = static_cast<std::size_t>(at - words.begin());
    if (begin > 1 || begin + 4 > words.size() || words[begin + 2] != "in") continue;
    const CommandWords values(words.begin() + static_cast<std::ptrdiff_t>(begin) + 3, words.end());
    const bool known = std::none_of(values.begin(), values.end(), [](const std::string& value) {
      return value.find_first_of("$*{") != std::string::npos;
    });
    if (known) loops[words[begin + 1]] = values;
  }
  return loops;
}

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
  for (std::string_view line : Split(text, "\n")) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string_view Stripped(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace servecast
