// Drafts that a request verifies in each of its steps (rules 63 and 64). See trtllm_scheduler.h.
#include <algorithm>

#include "serving/trtllm/trtllm_scheduler.h"

namespace servecast {

void TrtllmScheduler::TakeDrafted() {}
void TrtllmScheduler::FillDrafted(StepPlan&) {}
void TrtllmScheduler::LaunchDrafted(Step&, Outputs&) {}
void TrtllmScheduler::DeliverDrafted(Outputs&, Step&) {}
void TrtllmScheduler::Rewind(Outputs&) {}

}  // namespace servecast
