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
  const auto at_size = [&](std::int64_t wanted) {
    return std::sqrt(static_cast<double>(wanted) / (w * h));
  };
  std::int64_t resized = whole;
  if (whole > vision.max_image_tokens) {
    const double by = at_size(vision.max_image_tokens);
    resized = tokens(std::floor(w * by)) * tokens(std::floor(h * by));
  } else if (whole < vision.min_image_tokens) {
    const double by = at_size(vision.min_image_tokens);
    resized = tokens(std::ceil(w * by)) * tokens(std::ceil(h * by));
  }
  return std::min(resized, vision.max_image_tokens);
}

std::int64_t MostImageTokens(const VisionSpec& vision) {
  if (!vision.On()) return 0;
  return vision.image_size > 0 ? ImageTokens(vision, 1, 1) : vision.max_image_tokens;
}

}  // namespace servecast
