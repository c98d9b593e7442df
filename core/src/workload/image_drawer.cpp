#include "workload/image_drawer.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/random.h"
#include "servecast/workload_spec.h"

namespace servecast {

std::shared_ptr<ImageDrawer> MakeImageDrawer(const Scenario& s) {
  if (!s.workload->HasImages()) return nullptr;
  const ImageSpec& images = s.workload->images;
  const VisionSpec& vision = s.model.vision;
  return std::make_shared<ImageDrawer>(ImageTokens(vision, images.width, images.height),
                                       ImageEmbeds(vision, images.width, images.height),
                                       images.distinct);
}

std::int64_t ImageDrawer::ImageOf(const Session& session, std::int64_t turn, std::int64_t image) {
  if (distinct_ == 0) return new_image_++;
  const double u = Uniform(session.seed, Stream::kImage, session.key + turn, image);
  return std::min(static_cast<std::int64_t>(u * static_cast<double>(distinct_)), distinct_ - 1);
}

void ImageDrawer::Extend(const Session& session, ContentSegment& segment, RequestTable& table) {
  if (distinct_ == 0 || session.first_turn > 0) return;
  for (std::int64_t k = 0; k < session.images; ++k) {
    const auto [at, is_new] = pictured_.try_emplace(
        {segment.parent, ImageOf(session, 0, k)}, static_cast<std::int32_t>(table.segments.size()));
    if (is_new) table.segments.push_back(segment);
    segment.parent = at->second;
    segment.shared_tokens += static_cast<std::int32_t>(tokens_);
  }
}

void ImageDrawer::Add(const Session& session, std::int64_t turn, std::int64_t before,
                      std::size_t row, RequestTable& table) {
  const bool first = turn == session.first_turn;
  const std::int64_t from = first ? 0 : turn;
  if (!first) {
    const std::span<const PromptImage> earlier = table.ImagesOf(static_cast<RequestId>(row - 1));
    const std::vector<PromptImage> copy(earlier.begin(), earlier.end());
    table.images.insert(table.images.end(), copy.begin(), copy.end());
  }
  const auto tokens = static_cast<std::int32_t>(tokens_);
  const auto embeds = static_cast<std::int32_t>(embeds_);
  std::int64_t offset = before - (turn - from) * session.images * tokens_;
  for (std::int64_t t = from; t <= turn; ++t) {
    for (std::int64_t k = 0; k < session.images; ++k, offset += tokens_) {
      table.images.push_back(
          {ImageOf(session, t, k), static_cast<std::int32_t>(offset), tokens, embeds, 0});
    }
  }
  table.images_until[row] = static_cast<std::int64_t>(table.images.size());
}

}  // namespace servecast
