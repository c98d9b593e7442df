// See ranges.h.
#include "ranges.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/text.h"
#include "io/json_document.h"

namespace servecast {
namespace {

// False: it begins like a range and is none.
bool AddValues(const std::string& value, std::vector<std::string>& out) {
  const std::size_t dots = value.find("..");
  const std::optional<double> from =
      dots == std::string::npos ? std::nullopt : NumberOf(value.substr(0, dots));
  if (!from) {
    out.push_back(value);
    return true;
  }
  const std::size_t colon = value.find(':', dots);
  const std::optional<double> to = NumberOf(value.substr(dots + 2, colon - dots - 2));
  const std::optional<double> step =
      colon == std::string::npos ? std::optional(1.0) : NumberOf(value.substr(colon + 1));
  if (!to || !step || !(*step > 0) || *to < *from) return false;
  constexpr double kMostNumbers = 10'000;
  const double count = std::floor((*to - *from) / *step * (1 + 1e-12) + 1e-9) + 1;
  if (!(count <= kMostNumbers)) return false;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    const double number = *from + static_cast<double>(i) * *step;
    // Of tenths, what is meant: 0.3, not 0.30000000000000004.
    const double rounded = std::round(number * 1e9) / 1e9;
    out.push_back(NumberText(std::fabs(number) < 1e6 ? rounded : number));
  }
  return true;
}

}  // namespace

std::optional<Axis> AxisOrRange(const std::string& text) {
  std::optional<Axis> axis = AxisOf(text);
  if (!axis) return std::nullopt;
  std::vector<std::string> values;
  for (const std::string& value : axis->values) {
    if (!AddValues(value, values)) return std::nullopt;
  }
  axis->values = std::move(values);
  return axis;
}

}  // namespace servecast
