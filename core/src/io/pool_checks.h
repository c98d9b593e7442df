// What the pools of a cluster must have in common, and what each must be.
#pragma once

#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// In the page's first module none, which runs no clusters (wasm/left_out.cpp).
void CheckPools(const Scenario& scenario, Issues& issues);

}  // namespace servecast
