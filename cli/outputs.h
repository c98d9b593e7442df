// The files that a run leaves: tables of requests, batches and the time series, and a time line for
// Perfetto. Steps are written as they happen, so memory does not grow with the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "host/output_file.h"
#include "io/time_line.h"
#include "io/vidur_names.h"
#include "servecast/error_band.h"
#include "servecast/report.h"
#include "serving/hooks.h"

namespace servecast {

enum class Names { kServecast, kVidur };

// Writes each step of a run; either file may be null.
class StepWriter final : public StepObserver {
 public:
  StepWriter(OutputFile* batches, OutputFile* trace, Names names);
  void OnStep(const StepRecord& step) override;
  const VidurTimes& vidur_times() const { return vidur_times_; }
  // The time line's requests, and its end.
  void Finish(const Report& report);

 private:
  void WriteBatch(const StepRecord& step);

  OutputFile* batches_;
  Names names_;
  VidurTimes vidur_times_;
  std::int64_t rows_ = 0;  // of batches, by Vidur's names
  std::optional<TimeLine> time_line_;
};

// Where the files go; "": nowhere.
struct OutputPaths {
  std::string json, requests, batches, series, chrome_trace;
};

// The files that were asked for, open before anything runs.
class Outputs {
 public:
  Outputs(const OutputPaths& paths, Names names);

  bool ok() const { return ok_; }
  // Of the run whose steps are written; nullptr where no file has them.
  StepWriter* steps() { return steps_ ? &*steps_ : nullptr; }
  // What it takes to write them all: few files have a row per request.
  ReportDetail detail() const;
  // Whether one of them is stdout, "-".
  bool TakesStdout() const { return takes_stdout_; }
  // All files into their places, or none.
  bool Write(const Report& report, const Banded* banded = nullptr);

 private:
  Names names_;
  bool ok_ = true, takes_stdout_ = false;
  std::optional<OutputFile> json_, requests_, batches_, series_, trace_;
  std::optional<StepWriter> steps_;
};

}  // namespace servecast
