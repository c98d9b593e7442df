// Bands and probability of what an experiment says, for the commands that show them.
#pragma once

#include <optional>
#include <string>

#include "arguments.h"
#include "progress.h"
#include "servecast/error_band.h"

namespace servecast {

// A report, and its bands where the forecast's error is known.
struct Judgement {
  Report report;
  std::optional<Banded> banded = std::nullopt;

  std::string Json(ReportParts parts) const {
    return ReportJson(report, banded ? &*banded : nullptr, parts);
  }
};

// Restates the verdict of an experiment that has ended; nullopt where no error is known.
std::optional<Banded> PutBand(Scenario scenario, Trace trace, const Sureness& sureness,
                              Report& report);

// What a verdict rests on: one run, as many as the targets need, or these and the forecast's error.
enum class Depth { kOnce, kSampling, kBands };
// Of the flags of a command.
inline Depth DepthOf(bool once, bool sampling) {
  return once ? Depth::kOnce : sampling ? Depth::kSampling : Depth::kBands;
}

// A scenario run to its end; progress: null without. Issues: those of MakeRun.
Result<Judgement> Judge(const Arguments& args, const Scenario& scenario, const Trace& trace,
                        Depth depth, Progress* progress);

}  // namespace servecast
