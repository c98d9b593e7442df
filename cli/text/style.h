// How text looks on this terminal: letters, colours, width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace servecast {

// A colour is never alone: a word or a mark says the same.
enum class Tone { kPlain, kStrong, kQuiet, kGood, kBad, kUnsure };

struct Style {
  bool utf8 = false;    // else ASCII alone
  bool colour = false;  // ANSI colours
  std::size_t width = 80;

  std::string In(Tone tone, std::string_view text) const;
  // A mark of one letter: met, missed, undecided; " " else.
  std::string Mark(Tone tone) const;
};

// --color: `when` is auto (a terminal, and neither NO_COLOR nor TERM=dumb), always or never. UTF-8
// by LC_ALL, LC_CTYPE or LANG, the first that is set.
Style StyleOf(std::string_view when, bool terminal);

// What is not ASCII as "?", where the style has no more.
std::string Finished(const Style& style, std::string text);

// Columns that a text takes: its code points, without the escapes of colours.
std::size_t WidthOf(std::string_view text);

// At most so many columns of it, with an ellipsis where it is cut.
std::string Cut(const Style& style, std::string_view text, std::size_t most);
// The same with its end, where that tells texts apart.
std::string CutInside(const Style& style, std::string_view text, std::size_t most);

// `first` before the first line, as many blanks before the others, words broken at the width; a
// line of the text begins a line. Ends with a line break.
std::string Wrapped(const Style& style, std::string_view first, std::string_view text);

// A part of a limit as a bar of `cells`, "|" where the limit is, and what is beyond it as an end.
std::string Bar(const Style& style, double share, std::size_t cells);
// The same without a limit, as long as the share of `cells`.
std::string Block(const Style& style, double share, std::size_t cells);

}  // namespace servecast
