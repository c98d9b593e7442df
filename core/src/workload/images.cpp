// How many tokens an image becomes (servecast/model_spec.h).
#include <algorithm>
#include <cmath>

#include "servecast/model_spec.h"

namespace servecast {

namespace {

// Of an image, or a tile, that is always as large.
std::int64_t FixedTokens(const VisionSpec& v) {
  const std::int64_t side = std::max<std::int64_t>(v.image_size / (v.patch_size * v.merge_size), 1);
  return side * side;
}

// Tiles that the image is cut into: of the grids that it can be scaled up to, that which scales it
// the least; if it must shrink, the least too; of several such grids the smallest. A grid of r rows
// and c columns scales by the lesser of r side / height and c side / width.
std::int64_t TilesOf(const VisionSpec& v, std::int64_t width, std::int64_t height) {
  std::int64_t best = 0, tiles = 1;  // scale x width x height / side
  const auto up = [&](std::int64_t scale) { return scale * v.image_size >= width * height; };
  for (std::int64_t rows = 1; rows <= v.max_tiles; ++rows) {
    for (std::int64_t columns = 1; rows * columns <= v.max_tiles; ++columns) {
      const std::int64_t scale = std::min(rows * width, columns * height);
      const bool better = best == 0 || (up(scale) != up(best) ? up(scale)
                                        : up(scale)           ? scale < best
                                                              : scale > best);
      if (better || (scale == best && rows * columns < tiles)) {
        best = scale;
        tiles = rows * columns;
      }
    }
  }
  return tiles;
}

// With the whole image as one more.
std::int64_t AllTiles(std::int64_t tiles) { return tiles > 1 ? tiles + 1 : 1; }

// What stands between tiles, and <|image_start|>, <|image|> and <|image_end|>.
std::int64_t BesideTiles(std::int64_t tiles) { return (tiles > 1 ? tiles : 0) + 3; }

}  // namespace

std::int64_t ImageEmbeds(const VisionSpec& v, std::int64_t width, std::int64_t height) {
  if (!v.On() || v.max_tiles == 0) return ImageTokens(v, width, height);
  return AllTiles(TilesOf(v, width, height)) * FixedTokens(v);
}

std::int64_t ImageTokens(const VisionSpec& vision, std::int64_t width, std::int64_t height) {
  if (!vision.On()) return 0;
  if (vision.max_tiles > 0) {
    return ImageEmbeds(vision, width, height) + BesideTiles(TilesOf(vision, width, height));
  }
  if (vision.image_size > 0) return FixedTokens(vision);
  const std::int64_t pixels = vision.patch_size * vision.merge_size;  // of a token's side
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
  if (const std::int64_t most = vision.max_tiles; most > 0) {
    return AllTiles(most) * FixedTokens(vision) + BesideTiles(most);
  }
  return vision.image_size > 0 ? ImageTokens(vision, 1, 1) : vision.max_image_tokens;
}

}  // namespace servecast
