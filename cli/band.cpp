// See band.h.
#include "band.h"

#include <utility>

namespace servecast {

std::optional<Banded> PutBand(Scenario scenario, Trace trace, const Sureness& sureness,
                              Report& report) {
  std::optional<ErrorBand> band = ErrorBand::Create(std::move(scenario), std::move(trace), report);
  if (!band) return std::nullopt;
  while (!band->Advance(INT64_MAX)) {
  }
  return band->Put(sureness, report);
}

}  // namespace servecast
