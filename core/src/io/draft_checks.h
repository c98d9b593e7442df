// What a scenario with drafts has to say, and what drafts do not go with.
#pragma once

#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// Of a scenario with one pool.
void CheckDrafts(const Scenario& scenario, Issues& issues);

}  // namespace servecast
