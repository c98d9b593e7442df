// The router "epp": llm-d's endpoint picker before replicas that serve whole requests.
#pragma once

#include <memory>
#include <string>

#include "serving/cluster/router.h"

namespace servecast::epp {

// What of a configuration no scenario has the facts for, or this router not the outcome; "": it can
// run. Requires: WrongConfig() finds nothing.
std::string NotModelled(const EppConfig& config);

// Requires: input.epp is set, and its configuration is modelled. Its parameters: none (kPoll is the
// gateway's).
std::unique_ptr<Router> MakePickerRouter(const RouterInput& input);

}  // namespace servecast::epp
