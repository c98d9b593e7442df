#include "testing/router_choice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "serving/cluster/epp/picker_router.h"
#include "serving/cluster/epp/profiles.h"
#include "serving/cluster/router.h"
#include "testing/dice.h"
#include "testing/epp_differential.h"
#include "testing/epp_flow_cases.h"

namespace servecast::testing {

double RouterChoice::Param(std::string_view param) const {
  for (const ParamSpec& spec : FindRouter(name).params) {
    if (spec.name == param) return ParamValues({&spec, 1}, params)[0];
  }
  return 0;
}

TimeNs RouterChoice::Period() const {
  return static_cast<TimeNs>((Param("staleness_ms") + Param("stats_interval_ms")) * 1e6);
}

RouterChoice MakeRouterChoice(std::uint64_t seed, TimeNs step) {
  std::uint64_t state = seed;
  const auto draw = [&state](std::uint64_t among) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((state >> 33) % among);
  };
  draw(1);
  const std::span<const RouterEntry> routers = Routers();
  RouterChoice choice;
  choice.name = routers[draw(routers.size() - 1)].name;  // epp is the last
  choice.seed = static_cast<std::int64_t>(draw(1000));
  for (const ParamSpec& param : FindRouter(choice.name).params) {
    const std::string name = param.name;
    if (name == "staleness_ms" || name == "stats_interval_ms") {
      const double steps[] = {0, 0, 0.4, 3, 17.5, 200};
      choice.params[name] = steps[draw(6)] * static_cast<double>(step) / 1e6;
    } else if (name == "max_outstanding") {
      choice.params[name] = static_cast<double>(draw(5));
    } else if (name == "max_tree_size") {
      choice.params[name] = static_cast<double>(4 << draw(16));
    } else if (name == "eviction_interval_s") {
      choice.params[name] =
          std::max(1.0, static_cast<double>(draw(100)) * static_cast<double>(step) / 1e6) / 1e3;
    } else if (name == "kv_aware_threshold" || name == "balance_abs_threshold") {
      choice.params[name] = static_cast<double>((1 << draw(9)) - 1);
    } else {
      const double values[] = {param.min, param.min, param.fallback, 1, 2.5, param.max};
      const double value = std::clamp(values[draw(6)], param.min, param.max);
      choice.params[name] = param.whole ? std::floor(value) : value;
    }
  }
  return choice;
}

RouterChoice MakeEppChoice(std::uint64_t seed, TimeNs step) {
  Dice dice(seed);
  const double steps = dice.Pick<double>({0, 0.4, 3, 17.5, 200});
  RouterChoice choice{.name = "epp",
                      .params = {{"poll_ms", steps * static_cast<double>(step) / 1e6}},
                      .seed = static_cast<std::int64_t>(seed % 1000)};
  const auto shipped = epp::ShippedProfiles();
  if (dice.Percent(40)) {
    const auto last = static_cast<std::int64_t>(shipped.size()) - 1;
    choice.epp.profile = shipped[static_cast<std::size_t>(dice.Between(0, last))].name;
    return choice;
  }
  choice.epp.profile = kOwnEppProfile;
  EppConfig own;
  do {
    own = RandomEppConfig(dice);
  } while (!epp::NotModelled(own).empty());
  if (dice.Percent(50)) {
    own.plugins.push_back({"producer",
                           "approx-prefix-cache-producer",
                           {{"autoTune", dice.Percent(50)},
                            {"lruCapacityPerServer", dice.Pick<double>({1, 2, 40})},
                            {"maxPrefixTokensToMatch", dice.Pick<double>({0, 128})},
                            {"maxPrefixBlocksToMatch", dice.Pick<double>({0, 1})}}});
  }
  if (dice.Percent(30)) {
    own.plugins.push_back({"load",
                           "inflight-load-producer",
                           {{"addEstimatedOutputTokens", true},
                            {"maxEstimatedOutputTokens", dice.Pick<double>({0, 60})}}});
  }
  choice.epp.own = std::make_shared<const EppConfig>(std::move(own));
  return choice;
}

RouterChoice MakeFlowChoice(std::uint64_t seed, TimeNs step) {
  RouterChoice choice = MakeEppChoice(seed, step);
  Dice dice(seed);
  EppConfig own = epp::ConfigOf(choice.epp);
  AddRandomFlow(dice, std::max<std::int64_t>(1, step / kNsPerMs), own);
  choice.epp.profile = kOwnEppProfile;
  choice.epp.own = std::make_shared<const EppConfig>(std::move(own));
  return choice;
}

}  // namespace servecast::testing
