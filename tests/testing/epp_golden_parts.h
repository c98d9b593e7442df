// What the replays of the endpoint picker's files share (epp_golden.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "servecast/epp.h"
#include "serving/cluster/epp/scheduler.h"

namespace servecast::testing::epp_golden {

using Json = nlohmann::json;
using Difference = std::optional<std::string>;

// Texts as numbers, from 0 on, in the order in which they are asked for.
class Names {
 public:
  std::int32_t operator()(const std::string& name) {
    return numbers_.try_emplace(name, static_cast<std::int32_t>(numbers_.size())).first->second;
  }

 private:
  std::map<std::string, std::int32_t> numbers_;
};

// Parameters by path.
EppParameters ParametersOf(const Json& members);

// The configuration of the manifest's profile.
EppConfig ConfigOf(const Json& manifest, const std::string& profile);

// "" where `found` is `wanted`, which is absent where nothing is expected.
Difference Differs(const std::string& what, const Json& wanted, const Json& found);

// Compares runs of profiles with a row's `runs`, and schedules with the picks that it names.
// `prefill_if_picked` is compared, too.
Difference CompareCycle(const Json& row, epp::Scheduler& scheduler, const epp::Request& request,
                        epp::Endpoints endpoints, epp::Choice& choice);

// Each replays all lines of its file and counts decisions.
Difference ReplayCycles(const Json& manifest, const std::string& profile,
                        const std::vector<Json>& rows, std::size_t& decisions);
Difference ReplayPrefix(const std::vector<Json>& rows, std::size_t& decisions);
Difference ReplayLoop(const Json& manifest, const std::vector<Json>& rows, std::size_t& decisions);
Difference ReplaySaturation(const std::vector<Json>& rows, std::size_t& decisions);
Difference ReplayFlow(const std::vector<Json>& rows, std::size_t& decisions);

}  // namespace servecast::testing::epp_golden
