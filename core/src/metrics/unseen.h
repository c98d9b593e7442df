// What a scenario says will happen, and its run was over before.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "servecast/scenario.h"

namespace servecast {

struct Unseen {
  std::vector<std::string> load;    // "the rest of its day of 24 h", "the spike at 60 min"
  std::vector<std::string> events;  // of replicas: "the failure at 17 min"
};

// Of a run that ended by itself, after so many seconds; nothing where measure.horizon_s ends it.
Unseen UnseenOf(const Scenario& scenario, double run_s);

// "The run ended after 70.2 s, before ..."; empty: all of it was seen. `run`: what to call it.
std::string UnseenWords(const Scenario& scenario, double run_s, std::string_view run = "The run");

}  // namespace servecast
