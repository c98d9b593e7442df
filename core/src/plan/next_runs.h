// Chooses what a plan asks next.
#pragma once

#include "plan/so_far.h"

namespace servecast {

// Adds a place, wants more or longer runs of those there are, or finishes. Requires: every place
// has the runs that it wants.
void ChooseNext(SoFar& plan);

}  // namespace servecast
