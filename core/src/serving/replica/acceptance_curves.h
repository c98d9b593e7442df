// Measured acceptance: mean tokens of a step by its number of drafts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace servecast {

inline constexpr std::int64_t kMeasuredDrafts = 8;

struct AcceptanceCurve {
  std::string_view name;
  std::array<double, kMeasuredDrafts> lengths;  // of steps with 1, 2, ... drafts
};

std::span<const AcceptanceCurve> AcceptanceCurves();

// By position, the probability that a draft and all before it are accepted, in steps of so many
// drafts: what each further draft adds to the curve, scaled so that the mean is the measured one
// (within 0.03). Requires: the name of a curve, 1 <= drafts <= kMeasuredDrafts.
std::vector<double> RatesOfCurve(std::string_view name, std::int64_t drafts);

}  // namespace servecast
