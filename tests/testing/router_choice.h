// A router, its parameters and its seed, as tests choose them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/base.h"
#include "servecast/scenario.h"

namespace servecast::testing {

struct RouterChoice {
  std::string name = "round_robin";
  ParamMap params;
  std::int64_t seed = 7;
  EppSpec epp = {};  // of the router "epp"

  double Param(std::string_view param) const;
  TimeNs Period() const;  // of its signals; 0: live
};

// Any router but epp, with parameters at random: a function of the seed. Periods are of the case's
// steps.
RouterChoice MakeRouterChoice(std::uint64_t seed, TimeNs step);

// The router epp with a shipped profile or one of random plugins, likewise.
RouterChoice MakeEppChoice(std::uint64_t seed, TimeNs step);
// The same with flow control at random.
RouterChoice MakeFlowChoice(std::uint64_t seed, TimeNs step);

}  // namespace servecast::testing
