// Which images requests have, and where they stand in their prompts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast {

class ImageDrawer {
 public:
  // Whose draws: keyed by `key` + turn, as the lengths of prompts.
  struct Session {
    std::int64_t seed = 0, key = 0;
    std::int64_t images = 0;      // of each of its turns
    std::int64_t first_turn = 0;  // of the run
  };

  // Of an image tokens, and those of them that the encoder makes. `distinct`: as ImageSpec has it.
  ImageDrawer(std::int64_t tokens, std::int64_t embeds, std::int64_t distinct)
      : tokens_(tokens), embeds_(embeds), distinct_(distinct) {}

  std::int64_t tokens() const { return tokens_; }
  // The same images behind the same beginning are the same content: `segment`, which is to become
  // the session's own, goes on behind those of its first turn.
  void Extend(const Session& session, ContentSegment& segment, RequestTable& table);
  // Those of a turn's prompt whose own begin behind `before` tokens: with those of the turns before
  // it, of which those before the run stand together in front of its own.
  void Add(const Session& session, std::int64_t turn, std::int64_t before, std::size_t row,
           RequestTable& table);

 private:
  std::int64_t ImageOf(const Session& session, std::int64_t turn, std::int64_t image);

  const std::int64_t tokens_, embeds_, distinct_;
  // Segments of an image, by its content, behind a segment; -1: behind nothing.
  std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> pictured_;
  std::int64_t new_image_ = 0;  // of those of which no two are the same
};

// nullptr: no request has images.
std::shared_ptr<ImageDrawer> MakeImageDrawer(const Scenario& scenario);

}  // namespace servecast
