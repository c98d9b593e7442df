// How many tokens an image becomes (servecast/model_spec.h).
#include <algorithm>
#include <cmath>

#include "servecast/model_spec.h"

namespace servecast {

std::int64_t ImageTokens(const VisionSpec& vision, std::int64_t width, std::int64_t height) {
  if (!vision.On()) return 0;
  const std::int64_t pixels = vision.patch_size * vision.merge_size;  // of a token's side
  if (vision.image_size > 0) {
    const std::int64_t side = std::max<std::int64_t>(vision.image_size / pixels, 1);
    return side * side;
  }
  const auto side = static_cast<double>(pixels);
  const auto tokens = [](double exact) {
    return std::max<std::int64_t>(static_cast<std::int64_t>(exact), 1);
  };
  const double w = static_cast<double>(width) / side, h = static_cast<double>(height) / side;
  const std::int64_t whole = tokens(std::nearbyint(w)) * tokens(std::nearbyint(h));
  if (whole <= vision.max_image_tokens) return whole;
  const double shrink = std::sqrt(w * h / static_cast<double>(vision.max_image_tokens));
  return tokens(std::floor(w / shrink)) * tokens(std::floor(h / shrink));
}

std::int64_t MostImageTokens(const VisionSpec& vision) {
  if (!vision.On()) return 0;
  return vision.image_size > 0 ? ImageTokens(vision, 1, 1) : vision.max_image_tokens;
}

}  // namespace servecast
