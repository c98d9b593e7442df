// Fuzz target: files of measurements, whole or refused; and packs.
#include <algorithm>
#include <string>

#include "base/base.h"
#include "calibrate/measurements.h"
#include "calibrate/pack.h"
#include "calibrate/step_trace.h"
#include "fuzz/inputs.h"

namespace servecast::fuzz {
namespace {

void ReadFiles(std::string_view input) {
  Measurements all;
  for (const std::string_view part : Parts(input)) {
    const Result<CalibrationPack> pack = ReadPack(part);
    if (!pack.ok()) CheckIssues(pack.issues());
    const Result<StepTrace> trace = ReadStepTrace(part, "a file");
    if (!trace.ok()) CheckIssues(trace.issues());
    Result<Measurements> read = ReadMeasurements(part, "a file");
    if (!read.ok()) {
      CheckIssues(read.issues());
      continue;
    }
    SERVECAST_CHECK(read.value().found.size() == 1, "what was found is said");
    for (const CalibrationPoint& point : read.value().points) {
      SERVECAST_CHECK(!point.figures.empty(), "a point has figures");
      SERVECAST_CHECK(std::all_of(point.figures.begin(), point.figures.end(),
                                  [](const MeasuredFigure& figure) { return figure.ms > 0; }),
                      "a figure is a time");
      SERVECAST_CHECK((point.form == PointForm::kRun) == (point.run != nullptr),
                      "a run has a load");
    }
    AddMeasurements(std::move(read.value()), all);
  }
}

}  // namespace
}  // namespace servecast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  servecast::fuzz::ReadFiles(servecast::fuzz::TextOf(data, size));
  return 0;
}
