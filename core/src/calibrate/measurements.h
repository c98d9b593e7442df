// Measurements of one's own server, as files hold them. docs/how-to/calibrate.md lists the forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/result.h"
#include "servecast/trace.h"

namespace servecast {

enum class PointForm {
  kPrompt,      // one request at a time, one output token
  kDecodeStep,  // a step of `batch` decodes with `context` tokens each, on average
  kRun          // many requests, as their client saw them
};
const char* WordOf(PointForm form);

enum class Figure { kTtft, kTpot, kE2e };  // means; of a prompt or step the file's median or mean
const char* WordOf(Figure figure);

struct MeasuredFigure {
  Figure figure = Figure::kTtft;
  double ms = 0;
};

// What clients saw of requests, in no order, ms. Of many gaps between tokens some, evenly chosen.
struct ClientTimes {
  std::vector<double> ttft, itl, e2e;
  std::int64_t every = 1;  // gap that was chosen
};
inline constexpr std::int64_t kMostGaps = 200'000;

// Requests as a client sends them. Where only their rate and lengths are known they are drawn, some
// times over.
struct RunLoad {
  std::vector<Trace> draws;
  ClientTimes seen;  // of the rows that are compared; empty where means alone are known
  std::optional<std::int64_t> concurrency;  // a closed loop: arrivals are its answers
  std::size_t from = 0, to = 0;             // rows that are compared; of a drawn one all
  double rate_per_s = 0;                    // 0: not by a rate
  bool one_server = false;  // seen by one server, not by the clients of all replicas
  bool greedy = false;  // requests ask for temperature 0: no top-p, whatever the model's files say
};

struct CalibrationPoint {
  PointForm form = PointForm::kPrompt;
  std::string label;  // "prefill.csv, row 3"
  std::int64_t prompt = 0, batch = 0, context = 0;
  std::shared_ptr<const RunLoad> run;  // not of prompts and steps
  std::vector<MeasuredFigure> figures;
  bool held_out = false;  // judges the fit, and is no part of it
};

// Power of GPUs beside a run.
struct MeasuredPower {
  std::string label;      // "power.csv"
  double mean_w = 0;      // of a GPU, over all samples
  std::int64_t gpus = 0;  // 0: the file does not tell them apart
  double seconds = 0;     // from the first sample to the last; 0: the file has no times
  // Of the file before it; nullptr: that has no run, or several.
  std::shared_ptr<const RunLoad> run;
  bool held_out = false;
};

// What a file says of its server, in its own words; "" and nothing where it does not.
struct MeasuredServer {
  std::string model, gpu, engine, engine_version;
  std::optional<std::int64_t> tensor_parallel, replicas, max_num_seqs, max_num_batched_tokens,
      kv_tokens, block_size;
};

struct Measurements {
  std::vector<CalibrationPoint> points;
  std::vector<MeasuredPower> power;
  std::shared_ptr<const RunLoad> last_run;  // of the file before, if it has one run alone
  MeasuredServer server;                    // of the first file that says it
  // A line a file: what it is, and what can be fitted from it.
  std::vector<std::string> found;
  std::vector<std::string> warnings;
};

// One file, named `name` in all that is said of it: in one of the forms of readers.h. Issues: all
// that is wrong with it; nothing is half read.
Result<Measurements> ReadMeasurements(std::string_view text, const std::string& name);

// `more`, of one file, behind `all`: power is that of the run of the file before it. A server that
// two files name differently is a warning.
void AddMeasurements(Measurements more, Measurements& all);

}  // namespace servecast
