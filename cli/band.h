// Bands and probability of what an experiment says, for the commands that show them.
#pragma once

#include <optional>

#include "servecast/error_band.h"

namespace servecast {

// Restates the verdict of an experiment that has ended; nullopt where no error is known.
std::optional<Banded> PutBand(Scenario scenario, Trace trace, const Sureness& sureness,
                              Report& report);

}  // namespace servecast
