// Producers of what plugins read of a request: their parameters, from the configuration.
#pragma once

#include "servecast/epp.h"
#include "serving/cluster/epp/inflight_load.h"
#include "serving/cluster/epp/prefix_blocks.h"

namespace servecast::epp {

// Of the plugin "approx-prefix-cache-producer"; its defaults where the configuration has none.
PrefixSettings PrefixSettingsOf(const EppConfig& config);

// Of the plugin "inflight-load-producer", likewise.
LoadSettings LoadSettingsOf(const EppConfig& config);

}  // namespace servecast::epp
