// What a scenario with drafts, or with adapters, has to say, and what these do not go with.
#pragma once

#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// Of a scenario with one pool.
void CheckDrafts(const Scenario& scenario, Issues& issues);
void CheckAdapters(const Scenario& scenario, Issues& issues);

}  // namespace servecast
