// See option_places.h.
#include "export/option_places.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace servecast {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool IsQuote(char c) { return c == '"' || c == '\''; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }
bool IsOfName(char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '-'; }

char At(std::string_view text, std::size_t i) { return i < text.size() ? text[i] : '\0'; }

// "maxNumSeqs", "max_num_seqs" -> "max-num-seqs".
std::string DashedName(std::string_view written) {
  std::string name;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (IsCapital(written[i]) && i > 0 && !IsCapital(written[i - 1]) && written[i - 1] != '_') {
      name += '-';
    }
    name += written[i] == '_' ? '-' : written[i];
  }
  return LowerCase(name);
}

// The line that holds a place: from its first letter, and without its end.
struct Line {
  std::size_t begin, first, end;
};

Line LineAt(std::string_view text, std::size_t at) {
  Line line{at, 0, std::min(text.find('\n', at), text.size())};
  while (line.begin > 0 && text[line.begin - 1] != '\n') --line.begin;
  line.first = line.begin;
  while (line.first < line.end && IsBlank(text[line.first])) ++line.first;
  return line;
}

bool IsItem(std::string_view text, const Line& line) { return text.substr(line.first, 2) == "- "; }

// An item that is this option alone, not a command with it.
bool IsItem(std::string_view text, const OptionPlace& at) {
  const Line line = LineAt(text, at.begin);
  const std::size_t quote = at.begin > 0 && IsQuote(text[at.begin - 1]) ? 1 : 0;
  return IsItem(text, line) && line.first + 2 + quote == at.begin;
}

// An item of a list in brackets, by what stands before it.
bool IsInBrackets(std::string_view text, const OptionPlace& at) {
  std::size_t i = at.begin;
  if (i > 0 && IsQuote(text[i - 1])) --i;
  while (i > 0 && (IsBlank(text[i - 1]) || text[i - 1] == '\n')) --i;
  return i > 0 && (text[i - 1] == '[' || text[i - 1] == ',');
}

// What a shell's line goes on with: \, ^ of cmd, ` of PowerShell; 0: it ends.
char Continuation(std::string_view text, const Line& line) {
  std::size_t end = line.end;
  while (end > line.begin && IsBlank(text[end - 1])) --end;
  const char last = end > line.begin ? text[end - 1] : '\0';
  return last == '\\' || last == '^' || last == '`' ? last : '\0';
}

bool ContinuesBehind(std::string_view text, const Line& line) {
  return Continuation(text, line) != '\0';
}

// "# ...", of a line or behind a blank.
bool IsInComment(std::string_view text, std::size_t at) {
  const Line line = LineAt(text, at);
  char quote = '\0';
  for (std::size_t i = line.begin; i < at; ++i) {
    if (quote != '\0') {
      if (text[i] == quote) quote = '\0';
    } else if (IsQuote(text[i])) {
      quote = text[i];
    } else if (text[i] == '#' && (i == line.begin || IsBlank(text[i - 1]))) {
      return true;
    }
  }
  return false;
}

// Behind a value in braces or brackets that begins there.
std::size_t EndOfBraces(std::string_view text, std::size_t i) {
  std::size_t open = 0;
  char quote = '\0';
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (IsQuote(c)) {
      quote = c;
    } else if (c == '{' || c == '[') {
      ++open;
    } else if ((c == '}' || c == ']') && --open == 0) {
      return i + 1;
    }
  }
  return i;
}

// What is between an option and its value: blanks, quotes, commas, and ends of lines that go on.
std::size_t SkipToValue(std::string_view text, const OptionPlace& at) {
  const bool in_list = IsItem(text, at) || IsInBrackets(text, at);
  std::size_t i = at.end;
  for (; i < text.size(); ++i) {
    if (IsBlank(text[i]) || IsQuote(text[i]) || text[i] == ',') continue;
    const bool breaks = text[i] == '\\' || text[i] == '^' || text[i] == '`';
    if (breaks && (At(text, i + 1) == '\n' || text.substr(i + 1, 2) == "\r\n")) {
      i = text.find('\n', i);
      continue;
    }
    if (text[i] == '\n' && in_list) continue;
    if (in_list && text.substr(i, 2) == "- ") {
      ++i;
      continue;
    }
    break;
  }
  return i;
}

// "$SEATS", "${TP}", "$((SEATS * 2))", "$(LENGTH)".
std::size_t EndOfVariable(std::string_view text, std::size_t i) {
  ++i;
  std::size_t open = 0;
  for (; i < text.size() && text[i] != '\n'; ++i) {
    const bool opens = text[i] == '(' || text[i] == '{', closes = text[i] == ')' || text[i] == '}';
    if (opens) ++open;
    if (open == 0 && !IsOfName(text[i])) break;
    if (closes && --open == 0) return i + 1;
  }
  return i;
}

void FindValueOfDashed(std::string_view text, OptionPlace& at) {
  at.joined = At(text, at.end) == '=';
  std::size_t i = at.joined ? at.end + 1 : SkipToValue(text, at);
  if (at.joined && IsQuote(At(text, i))) ++i;
  if (!at.joined && At(text, i) == '-' && !IsDigit(At(text, i + 1))) return;
  at.value_begin = at.value_end = i;
  if (At(text, i) == '$') {
    at.value_end = EndOfVariable(text, i);
    return;
  }
  const char before = i > 0 ? text[i - 1] : ' ';
  if (IsQuote(before) && before != At(text, at.begin - 1)) {
    at.value_end = std::min(text.find(before, i), text.size());
    return;
  }
  constexpr std::string_view kEnds = " \t\r\n\"',]}\\;|&#)^`";
  at.value_end = std::min(text.find_first_of(kEnds, i), text.size());
}

// "name: value"; false: it is no member.
bool FindValueOfMember(std::string_view text, OptionPlace& at) {
  std::size_t i = at.end;
  if (IsQuote(At(text, i))) ++i;
  while (IsBlank(At(text, i))) ++i;
  if (At(text, i) != ':') return false;
  ++i;
  while (IsBlank(At(text, i))) ++i;
  if (IsQuote(At(text, i))) {
    at.value_begin = i + 1;
    at.value_end = std::min(text.find(text[i], i + 1), text.size());
    return true;
  }
  at.value_begin = i;
  if (At(text, i) == '{' || At(text, i) == '[') {
    at.value_end = EndOfBraces(text, i);
    return true;
  }
  at.value_end = std::min(text.find_first_of("\n,}]#", i), text.size());
  while (at.value_end > i && IsBlank(text[at.value_end - 1])) --at.value_end;
  return true;
}

std::string Put(std::string_view text, std::size_t begin, std::size_t end, std::string_view with) {
  std::string out(text.substr(0, begin));
  out += with;
  out += text.substr(end);
  return out;
}

std::string Dashed(const WantedOption& wanted) {
  return (wanted.is_switch && wanted.value == "false" ? "--no-" : "--") + wanted.name;
}

// A value with blanks or quotes of its own needs some around it, which a text may have already.
bool NeedsQuotes(std::string_view value) {
  return value.find_first_of(" \t{}[]\"',:#") != std::string_view::npos;
}

std::string ForShell(const std::string& value) {
  return NeedsQuotes(value) ? "'" + value + "'" : value;
}

// Takes whole lines out where nothing else is on them, and of a list in one line an item with a
// comma. nullopt: that would leave half of something.
std::optional<std::string> Removed(std::string_view text, const OptionPlace& at) {
  const Line first = LineAt(text, at.begin), last = LineAt(text, at.Until() - 1);
  const auto only = [text](std::size_t begin, std::size_t end) {
    return text.substr(begin, end - begin).find_first_not_of(" \t\r-\"'\\^`,") ==
           std::string_view::npos;
  };
  const bool whole = only(first.begin, at.begin) && only(at.Until(), last.end);
  if (!whole) {
    std::size_t begin = at.begin, end = at.Until();
    const bool opens = begin > 0 && IsQuote(text[begin - 1]);
    const bool closes = IsQuote(At(text, end));
    const bool of_value = at.HasValue() && IsQuote(text[at.value_begin - 1]);
    if (closes != (opens || of_value)) return std::nullopt;
    if (opens) --begin;
    if (closes) ++end;
    while (begin > 0 && IsBlank(text[begin - 1])) --begin;
    if (!IsInBrackets(text, at) && at.dashed) {
      if (opens) return std::nullopt;  // a command in quotes
      return Put(text, begin, end, "");
    }
    if (begin > 0 && text[begin - 1] == ',') return Put(text, begin - 1, end, "");
    if (At(text, end) != ',') return std::nullopt;
    ++end;
    while (IsBlank(At(text, end))) ++end;
    return Put(text, begin, end, "");
  }
  const bool goes_on = ContinuesBehind(text, last);
  std::size_t begin = first.begin;
  // The line before was the last of the command then.
  if (!goes_on && at.dashed && begin > 0 && !IsItem(text, first)) {
    const Line before = LineAt(text, begin - 1);
    if (ContinuesBehind(text, before)) {
      std::size_t end = text.find_last_of("\\^`", before.end);
      while (end > before.begin && IsBlank(text[end - 1])) --end;
      return Put(text, end, last.end, "");
    }
  }
  return Put(text, begin, std::min(last.end + 1, text.size()), "");
}

std::string InsertedItem(std::string_view text, const OptionPlace& at, const WantedOption& wanted) {
  const Line first = LineAt(text, at.begin), last = LineAt(text, at.Until() - 1);
  const std::string indent(text.substr(first.begin, first.first - first.begin));
  const bool quoted = IsQuote(text[at.begin - 1]);
  const std::string quote = quoted ? std::string(1, text[at.begin - 1]) : "";
  const std::string name = quote + Dashed(wanted);
  std::string added = "\n" + indent + "- ";
  if (wanted.is_switch) {
    added += name + quote;
  } else if (at.joined || !at.HasValue()) {
    added += name + "=" + *wanted.value + quote;
  } else {
    const bool number = wanted.value->find_first_not_of("0123456789.") == std::string::npos;
    const std::string mark = quoted || number ? "\"" : NeedsQuotes(*wanted.value) ? "'" : "";
    added += name + quote + "\n" + indent + "- " + mark + *wanted.value + mark;
  }
  return Put(text, last.end, last.end, added);
}

std::string InsertedInBrackets(std::string_view text, const OptionPlace& at,
                               const WantedOption& wanted) {
  const char before = text[at.begin - 1];
  const std::string quote = IsQuote(before) ? std::string(1, before) : "";
  const std::size_t end = at.Until() + (IsQuote(At(text, at.Until())) ? 1 : 0);
  std::string added = ", " + quote + Dashed(wanted) + quote;
  const std::string of_value = quote.empty() ? "'" : quote;
  if (!wanted.is_switch) added += ", " + of_value + *wanted.value + of_value;
  return Put(text, end, end, added);
}

std::string InsertedMember(std::string_view text, const OptionPlace& at,
                           const WantedOption& wanted) {
  const std::string_view written = text.substr(at.begin, at.end - at.begin);
  const bool dashes = written.find('-') != std::string_view::npos;
  const bool camel = std::any_of(written.begin(), written.end(), IsCapital);
  std::string name;
  for (const char c : wanted.name) {
    if (c != '-' || dashes) {
      const bool capital = camel && !name.empty() && name.back() == '-';
      if (capital) name.back() = static_cast<char>(c - 'a' + 'A');
      if (!capital) name += c;
    } else {
      name += camel ? '-' : '_';
    }
  }
  const std::string value = NeedsQuotes(*wanted.value) ? "'" + *wanted.value + "'" : *wanted.value;
  const Line line = LineAt(text, at.begin);
  const bool quoted = at.begin > 0 && IsQuote(text[at.begin - 1]);
  const std::size_t end = at.value_end + (IsQuote(At(text, at.value_end)) ? 1 : 0);
  if (quoted || At(text, end) == ',' || At(text, end) == '}') {  // JSON, or YAML as JSON
    const std::string mark = quoted ? "\"" : "";
    return Put(text, end, end, Format(", {}{}{}: {}", mark, name, mark, value));
  }
  const std::string indent(text.substr(line.begin, at.begin - line.begin));
  std::string blank = indent;
  std::replace(blank.begin(), blank.end(), '-', ' ');
  return Put(text, line.end, line.end, "\n" + blank + name + ": " + value);
}

}  // namespace

std::vector<OptionPlace> OptionPlaces(std::string_view text) {
  std::vector<OptionPlace> places;
  for (std::size_t i = 0; i < text.size();) {
    if (!IsOfName(text[i])) {
      ++i;
      continue;
    }
    const char before = i > 0 ? text[i - 1] : ' ';
    OptionPlace place;
    place.begin = i;
    while (i < text.size() && IsOfName(text[i])) ++i;
    place.end = i;
    if (before == '$' || before == '.' || IsInComment(text, place.begin)) continue;
    std::string_view written = text.substr(place.begin, place.end - place.begin);
    const std::size_t dashes = std::min(written.find_first_not_of('-'), written.size());
    written.remove_prefix(dashes);
    if (written.empty() || !IsLetter(written[0]) || dashes > 2) continue;
    place.dashed = dashes > 0;
    place.name = DashedName(written);
    if (place.dashed && place.name.starts_with("no-")) {
      place.negated = true;
      place.name.erase(0, 3);
    }
    if (place.dashed && before == '/') continue;
    if (place.dashed) {
      FindValueOfDashed(text, place);
    } else if (!FindValueOfMember(text, place)) {
      continue;
    }
    places.push_back(std::move(place));
  }
  return places;
}

std::optional<std::string> Replaced(std::string_view text, const OptionPlace& at,
                                    const WantedOption& wanted) {
  if (!wanted.value) return Removed(text, at);
  if (!wanted.is_switch) {
    if (!at.HasValue()) return std::nullopt;
    return Put(text, at.value_begin, at.value_end, *wanted.value);
  }
  const std::string_view value = text.substr(at.value_begin, at.value_end - at.value_begin);
  const bool says = value == "true" || value == "false" || value == "True" || value == "False";
  if (says && !at.negated) {
    std::string truth = *wanted.value;
    if (IsCapital(value[0])) truth[0] = static_cast<char>(truth[0] - 'a' + 'A');
    return Put(text, at.value_begin, at.value_end, truth);
  }
  if (!at.dashed) return std::nullopt;
  return Put(text, at.begin, at.end, Dashed(wanted));
}

std::string InsertedBehind(std::string_view text, const OptionPlace& at,
                           const WantedOption& wanted) {
  const Line line = LineAt(text, at.begin);
  if (!at.dashed) return InsertedMember(text, at, wanted);
  if (IsInBrackets(text, at)) return InsertedInBrackets(text, at, wanted);
  if (IsItem(text, at)) return InsertedItem(text, at, wanted);
  const std::string added =
      wanted.is_switch ? Dashed(wanted) : Dashed(wanted) + " " + ForShell(*wanted.value);
  const Line last = LineAt(text, at.Until() - 1);
  const bool own_line = line.first == at.begin && line.begin == last.begin;
  const std::string indent(text.substr(line.begin, line.first - line.begin));
  if (const char mark = Continuation(text, last); own_line && mark != '\0') {
    return Put(text, last.end, last.end, "\n" + indent + added + " " + mark);
  }
  if (own_line && at.Until() == last.end && line.begin > 0) {  // the last of a command's lines
    const char mark = Continuation(text, LineAt(text, line.begin - 1));
    const std::string before = mark == '\0' ? "\n" : std::string(" ") + mark + "\n";
    return Put(text, last.end, last.end, before + indent + added);
  }
  return Put(text, at.Until(), at.Until(), " " + added);
}

}  // namespace servecast
