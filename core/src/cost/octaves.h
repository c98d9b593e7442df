// Functions of integers >= 0 as tables that are looked up in a few nanoseconds: 2^bits segments in
// each power of two (whole numbers below 2^(bits + 1)), linear between. Monotone where its values
// are, and never below a convex function that its values are not below.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace servecast {

class Octaves {
 public:
  explicit constexpr Octaves(int bits) : bits_(bits) {}

  struct Place {
    std::size_t index;  // of the knot below
    double fraction;    // of the way to the next
  };
  // Requires: x >= 0.
  Place Find(std::int64_t x) const {
    const auto u = static_cast<std::uint64_t>(x);
    const int octave = static_cast<int>(std::bit_width(u >> bits_)) - 1;
    if (octave <= 0) return {static_cast<std::size_t>(u), 0};
    const std::uint64_t below = u & ((std::uint64_t{1} << octave) - 1);
    return {(static_cast<std::size_t>(octave) << bits_) + static_cast<std::size_t>(u >> octave),
            static_cast<double>(below) / static_cast<double>(std::uint64_t{1} << octave)};
  }
  std::int64_t Knot(std::size_t index) const {
    const std::size_t octave = index >> bits_;
    if (octave <= 1) return static_cast<std::int64_t>(index);
    return static_cast<std::int64_t>(index - ((octave - 1) << bits_)) << (octave - 1);
  }

 private:
  int bits_;
};

// A function of one number from 0 to at least `last`; beyond it grows in proportion.
class OctaveCurve {
 public:
  OctaveCurve() = default;
  template <class Function>
  OctaveCurve(int bits, std::int64_t last, Function&& value) : octaves_(bits) {
    const std::size_t knots = octaves_.Find(last).index + 2;
    values_.reserve(knots);
    for (std::size_t i = 0; i < knots; ++i) values_.push_back(value(octaves_.Knot(i)));
  }
  double At(std::int64_t x) const {
    const Octaves::Place at = octaves_.Find(x);
    if (at.index + 1 >= values_.size()) {
      return values_.back() *
             (static_cast<double>(x) / static_cast<double>(octaves_.Knot(values_.size() - 1)));
    }
    return values_[at.index] + at.fraction * (values_[at.index + 1] - values_[at.index]);
  }
  std::vector<double>& Values() { return values_; }
  std::int64_t Knot(std::size_t index) const { return octaves_.Knot(index); }

 private:
  Octaves octaves_{0};
  std::vector<double> values_;
};

// A function of two numbers, likewise.
class OctavePlane {
 public:
  OctavePlane() = default;
  template <class Function>
  OctavePlane(int bits, std::int64_t last_x, std::int64_t last_y, Function&& value)
      : octaves_(bits),
        rows_(octaves_.Find(last_x).index + 2),
        columns_(octaves_.Find(last_y).index + 2) {
    values_.reserve(rows_ * columns_);
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j < columns_; ++j) {
        double v = value(octaves_.Knot(i), octaves_.Knot(j));
        if (i > 0) v = v > values_[(i - 1) * columns_ + j] ? v : values_[(i - 1) * columns_ + j];
        if (j > 0) v = v > values_.back() ? v : values_.back();
        values_.push_back(v);
      }
    }
  }
  double At(std::int64_t x, std::int64_t y) const {
    double beyond = 1;
    const Octaves::Place a = Within(x, rows_, beyond), b = Within(y, columns_, beyond);
    const double* low = values_.data() + a.index * columns_ + b.index;
    const double* high = low + columns_;
    const double left = low[0] + b.fraction * (low[1] - low[0]);
    const double right = high[0] + b.fraction * (high[1] - high[0]);
    return beyond * (left + a.fraction * (right - left));
  }

 private:
  Octaves::Place Within(std::int64_t x, std::size_t knots, double& beyond) const {
    const Octaves::Place at = octaves_.Find(x);
    if (at.index + 1 < knots) return at;
    beyond *= static_cast<double>(x) / static_cast<double>(octaves_.Knot(knots - 1));
    return {knots - 2, 1};
  }

  Octaves octaves_{0};
  std::size_t rows_ = 0, columns_ = 0;
  std::vector<double> values_;
};

}  // namespace servecast
