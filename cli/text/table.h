// Columns of text, each as wide as its widest cell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/style.h"

namespace servecast {

struct Cell {
  Cell(std::string words) : text(std::move(words)) {}  // NOLINT: so that rows are lists of texts
  Cell(const char* words) : text(words) {}             // NOLINT
  Cell(std::string words, Tone its) : text(std::move(words)), tone(its) {}

  std::string text;
  Tone tone = Tone::kPlain;
};

class Table {
 public:
  // A letter a column: "l" to the left, "m" too, and cut inside, "r" to the right. The first row is
  // the head.
  explicit Table(std::string_view sides) : sides_(sides) {}

  void Row(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.size() < 2; }

  // Indented by two, two blanks between columns; a column that is empty in all rows but the head is
  // left out, and where all are wider than the style allows the widest to the left is cut.
  std::string Text(const Style& style) const;

 private:
  std::vector<std::size_t> Widths(const Style& style) const;

  std::string sides_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace servecast
