// What a scenario with drafts, adapters or images has to say, and what these do not go with.
#pragma once

#include <cstddef>

#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// Of a scenario with one pool.
void CheckDrafts(const Scenario& scenario, Issues& issues);
void CheckAdapters(const Scenario& scenario, Issues& issues);
void CheckImages(const Scenario& scenario, Issues& issues);
// Of a scenario whose pool of that number encodes images for the others, with paths as if it were
// the first.
void CheckEncoders(const Scenario& scenario, std::size_t pool, Issues& issues);

}  // namespace servecast
