// Puts together what a plan has found so far.
#pragma once

#include "plan/so_far.h"
#include "servecast/plan.h"

namespace servecast {

PlanAnswer AnswerSoFar(const SoFar& plan);

}  // namespace servecast
