// A table from names of full blocks, which are a content segment and the block's number in it, to
// numbers. It has a row for each segment with names: blocks of a request are asked for one after
// the other, so that nearly all accesses are to memory that was just used.
#pragma once

#include <cstdint>
#include <vector>

namespace servecast {

class BlisNames {
 public:
  static constexpr std::int32_t kNone = -1;

  struct Name {
    std::int32_t segment = 0, block = 0;
  };

  // Segments are below `segments`.
  explicit BlisNames(std::size_t segments) : row_of_(segments, kNone) {}

  // kNone: the name is not there.
  std::int32_t Find(Name name) const {
    const std::int32_t row = row_of_[static_cast<std::size_t>(name.segment)];
    if (row == kNone) return kNone;
    const std::vector<std::int32_t>& numbers = rows_[static_cast<std::size_t>(row)].numbers;
    const auto block = static_cast<std::size_t>(name.block);
    return block < numbers.size() ? numbers[block] : kNone;
  }

  // Requires: the name is not there; number >= 0.
  void Add(Name name, std::int32_t number) {
    std::int32_t& row = row_of_[static_cast<std::size_t>(name.segment)];
    if (row == kNone) row = NewRow();
    Row& of = rows_[static_cast<std::size_t>(row)];
    const auto block = static_cast<std::size_t>(name.block);
    if (of.numbers.size() <= block) of.numbers.resize(block + 1, kNone);
    of.numbers[block] = number;
    ++of.size;
  }

  // Requires: the name is there. A row without names is used again, with its memory.
  void Erase(Name name) {
    std::int32_t& row = row_of_[static_cast<std::size_t>(name.segment)];
    Row& of = rows_[static_cast<std::size_t>(row)];
    of.numbers[static_cast<std::size_t>(name.block)] = kNone;
    if (--of.size > 0) return;
    of.numbers.clear();
    spare_.push_back(row);
    row = kNone;
  }

 private:
  struct Row {
    std::vector<std::int32_t> numbers;  // by block
    std::int32_t size = 0;              // of those that are there
  };

  std::int32_t NewRow() {
    if (spare_.empty()) {
      rows_.emplace_back();
      return static_cast<std::int32_t>(rows_.size() - 1);
    }
    const std::int32_t row = spare_.back();
    spare_.pop_back();
    return row;
  }

  std::vector<std::int32_t> row_of_;  // by segment
  std::vector<Row> rows_;
  std::vector<std::int32_t> spare_;
};

}  // namespace servecast
