// What encoding images adds to a step: the products and the attention of the vision encoder, by the
// shares of the GPU's peaks that those of the model reach (docs/model.md). No server with images
// was compared, and what the host does for an image (resizing, hashing) is not in it.
#pragma once

#include <cstdint>

#include "base/math.h"
#include "cost/model_bytes.h"
#include "cost/model_cost.h"
#include "servecast/scenario.h"

namespace servecast {

class EncoderTimes {
 public:
  EncoderTimes(const Scenario& s, const ModelCost& cost);

  // Of a step that encodes so many images, in nanoseconds: arithmetic and reads of the weights, of
  // which the longer counts, and the kernels and all-reduces beside them.
  double ComputeNs(std::int64_t images) const { return Rounds(images) * image_ns_; }
  double MemoryNs() const { return read_ns_; }
  double OverheadNs(std::int64_t images) const {
    return kernels_ns_ + Rounds(images) * collective_ns_;
  }

 private:
  double Rounds(std::int64_t images) const { return D(CeilDiv(images, at_once_)); }

  std::int64_t at_once_ = 1;  // GPUs that encode an image each
  double image_ns_ = 0, read_ns_ = 0, kernels_ns_ = 0, collective_ns_ = 0;
};

// Of a cluster with pools that encode images for the others, what is left of the scenario for a
// pool alone: the encoder, with no text model and no KV cache but the least that a memory plan
// knows; or prompts whose images are not the pool's to encode.
void LeaveToEncoders(const PoolSpec& pool, Scenario& scenario);

}  // namespace servecast
