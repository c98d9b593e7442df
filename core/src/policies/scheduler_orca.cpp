// Orca (Yu et al., OSDI 2022) and FasterTransformer, after Vidur: KV memory for the longest request
// is reserved at admission, prompts are computed whole, and nobody is preempted.
#include <algorithm>
#include <memory>

#include "serving/batch_former.h"

namespace servecast {
namespace {

std::int64_t Reservation(const FormerState& s) {
  return s.limits().max_model_len / s.limits().block_size;
}
std::int64_t MostMembers(const FormerState& s) {
  return std::min(s.limits().max_reserved, s.limits().max_num_seqs);
}

void Continue(FormerState& s, Batch& batch, std::int64_t members) {
  const std::size_t count = std::min(s.parked.size(), static_cast<std::size_t>(members));
  for (std::size_t i = 0; i < count; ++i) {
    const Job& job = s.job(s.parked[i]);
    batch.push_back({s.parked[i], job.prefilled() ? 1 : job.prompt - job.processed});
  }
  s.parked.erase(s.parked.begin(), s.parked.begin() + static_cast<std::ptrdiff_t>(count));
}

void Admit(FormerState& s, Batch& batch, std::int64_t members) {
  while (!s.waiting.empty() && static_cast<std::int64_t>(batch.size()) < members &&
         s.Fits(Reservation(s))) {
    const JobIndex head = s.waiting.front();
    s.waiting.pop_front();
    s.Admit(head, Reservation(s));
    batch.push_back({head, s.job(head).prompt});
  }
}

class Orca final : public BatchFormer {
 public:
  void Form(FormerState& s, Batch& batch) override {
    Continue(s, batch, MostMembers(s));
    Admit(s, batch, MostMembers(s));
  }
};

// A batch runs until all that it began with are done; only then is there another one.
class FasterTransformer final : public BatchFormer {
 public:
  void Form(FormerState& s, Batch& batch) override {
    if (s.parked.empty()) {
      Admit(s, batch, MostMembers(s));
    } else {
      Continue(s, batch, MostMembers(s));
    }
  }
};

}  // namespace

extern const FormerEntry kSchedulerOrca;
const FormerEntry kSchedulerOrca = {
    "orca", "iteration-level batching with memory for the longest request reserved",
    [] { return std::unique_ptr<BatchFormer>(std::make_unique<Orca>()); }};

extern const FormerEntry kSchedulerFasterTransformer;
const FormerEntry kSchedulerFasterTransformer = {
    "faster_transformer", "a batch is fixed until all its requests are done",
    [] { return std::unique_ptr<BatchFormer>(std::make_unique<FasterTransformer>()); }};

}  // namespace servecast
