// Images before a prompt, as vLLM schedules them: what the encoder computes in a step, within a
// budget, and its results until the prompt has taken them up (E1 to E6: rules of the README of the
// golden traces with encoders). A request that needs more than there is room for computes the
// tokens in front of the first such image only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/base.h"
#include "workload/request_table.h"

namespace servecast {

class EncoderCache {
 public:
  // `most`: embeds that a step may encode, and that the cache has room for, no fewer than any image
  // has. `whole`: no step takes a part of an image's tokens (vLLM's disable_chunked_mm_input).
  // `requests` outlives this.
  EncoderCache(const RequestTable& requests, std::int64_t most, bool whole)
      : requests_(requests), most_(most), whole_(whole) {
    state_.free = state_.freeable = most;
  }

  bool Has(RequestId request) const { return !ImagesOf(request).empty(); }

  // ---- The step that is being formed ----
  void BeginStep();
  // How many of the `tokens` behind `computed` the request may compute now (E2). What this takes of
  // the cache it keeps until Drop, what it would encode is only asked for until Take.
  std::int64_t Cut(RequestId request, std::int64_t computed, std::int64_t tokens);
  // The request of the latest Cut is in the step (E4).
  void Take(RequestId request);
  // A member of the step is taken out again: its budget is there for others, its images stay.
  void TakeOut(RequestId request);
  std::int64_t images() const { return state_.images; }  // that the step encodes

  // ---- Requests ----
  // A step is launched with it, behind which so many tokens are computed and known.
  void Computed(RequestId request, std::int64_t tokens);
  // Outputs of a step that it was in are applied, with a token or not: it holds no image any more
  // that ends before what is computed by now (E5).
  void Passed(RequestId request, bool sampled);
  void Drop(RequestId request);  // it ends, is preempted, or is not admitted after all

  // A call may be tried: what it did to all of the above since Mark is undone.
  void Mark();
  void Undo();

  std::int64_t hits() const { return state_.hits; }  // images found encoded, by all takes so far

 private:
  struct State {
    struct Entry {
      std::int64_t embeds = 0;
      std::set<RequestId> holders;
    };
    struct Holder {
      std::set<std::size_t> images;  // places in its prompt
      std::int64_t computed = 0;     // tokens, of its launched steps
    };
    std::int64_t free = 0, freeable = 0;  // room, in embeds: unused; with what nobody holds
    std::int64_t budget = 0;
    std::unordered_map<std::int64_t, Entry> cached;         // by content
    std::vector<std::int64_t> idle;                         // held by nobody, oldest first
    std::map<RequestId, Holder> holders;                    // those with any
    std::map<RequestId, std::vector<std::size_t>> members;  // what the step encodes of each
    std::int64_t images = 0;
    std::int64_t hits = 0;
  };

  std::span<const PromptImage> ImagesOf(RequestId request) const {
    return requests_.ImagesOf(request);
  }
  bool Hold(RequestId request, std::size_t image);  // false: it did already
  void Release(RequestId request, std::size_t image);
  void MakeRoom(std::int64_t embeds);

  const RequestTable& requests_;
  const std::int64_t most_;
  const bool whole_;
  State state_, marked_;
  // By the latest Cut.
  std::vector<std::size_t> chosen_;
  std::int64_t found_ = 0;  // that it did not hold before
};

struct ReplicaInput;
// Embeds that a step may encode, and that the cache has room for (E1).
std::int64_t EncoderBudget(const ReplicaInput& input);
// nullptr: the replica has no images to encode.
std::shared_ptr<EncoderCache> MakeEncoderCache(const ReplicaInput& input);

}  // namespace servecast
