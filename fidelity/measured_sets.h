// Measurements of real servers as files hold them: what was run, under which load, what came out.
// Files are recognised by their columns, wherever they lie; docs/fidelity.md lists the forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "servecast/result.h"

namespace servecast {

// Equal servers that do the same of a request. Of a mixture of experts `data_parallel` replicas of
// attention share the experts.
struct MeasuredWorkers {
  std::int64_t workers = 1, tensor_parallel = 1, data_parallel = 1, expert_parallel = 1;
};

// What the server was, in the words of the file; names are understood later (measured_setup.h).
struct MeasuredSetup {
  std::string model, gpu, engine, engine_version, precision, kv_dtype;
  std::int64_t tensor_parallel = 1, pipeline_parallel = 1, data_parallel = 1, expert_parallel = 1;
  std::int64_t replicas = 1;  // independent servers behind a router, each with all of the above
  std::optional<std::int64_t> max_num_seqs, max_num_batched_tokens, block_size;
  std::optional<std::int64_t> kv_blocks;  // the whole pool
  std::optional<double> gpu_memory_utilization;
  std::optional<std::int64_t> expert_tensor_parallel;  // GPUs that share each expert, where said
  // Where servers of their own do the prefill: those, and those that decode.
  std::optional<MeasuredWorkers> prefill, decode;
  std::string router;  // of replicas and workers, a policy; "": that of scenarios
  // kScenario: the file below the folder that says all of the above.
  std::string scenario;
  // Nobody asks for top-p: requests went to the engine itself, which knows no generation_config, or
  // their client asks for temperature 0.
  bool no_top_p = false;
};

// How it was loaded and what was timed.
enum class MeasuredForm {
  kPrompt,      // one request at a time, one output token: TTFT of `input` tokens
  kPrefix,      // the same behind a cached prefix of `prefix` tokens
  kDecodeStep,  // a step of `batch` decodes with `context` tokens each, on average
  kSaturated,   // closed loop of `batch`, outputs of `output` tokens on average; ITL
  kClosedLoop,  // closed loop of `batch`, fixed lengths; TPOT
  kPoisson,     // open loop of `requests` at `rate`, drawn lengths
  kPromptPool,  // the same for `duration_s`, 100 prompts in turn over and over
  kReplay,      // recorded arrivals and lengths
  kScenario     // a scenario beside the row says server and load
};

// Tokens: fixed at `mean`, or a clipped lognormal of that mean, or uniform from `least` to `most`.
struct MeasuredLengths {
  double mean = 0;
  std::optional<double> sigma;
  std::optional<double> least, most;
  double min = 1, max = 1e6;
};

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();
inline constexpr std::int64_t kPromptPoolSize = 100;

struct MeasuredRequest {
  double arrival_s = 0;
  std::int32_t input = 0, output = 0;
  // The whole prompt that it begins with, as an earlier request had it; -1: none.
  std::int32_t shares_with = -1;
  bool answer_too = false;  // and the answer to it
  // The request before it of a client that waits for answers, and the time from that answer to this
  // request; -1: it comes at its arrival.
  std::int32_t follows = -1;
  double pause_s = 0;
  double ttft_ms = kNotMeasured, e2e_ms = kNotMeasured;
  bool scheduled = false;  // the engine's own clock says when
};

struct MeasuredLoad {
  MeasuredForm form = MeasuredForm::kPrompt;
  MeasuredLengths input, output;
  double rate = 0, duration_s = 0;
  std::int64_t requests = 0, batch = 0, context = 0, prefix = 0;
  std::optional<std::int64_t> max_concurrency;  // kPoisson: that its client has in flight at most
  bool seats_stated = false;  // kClosedLoop: clients beyond max_num_seqs wait for a seat
  bool warm = false;          // kPromptPool: a stage before this one has cached the prompts
  // kReplay: all of the run, and which of them are scored.
  std::shared_ptr<const std::vector<MeasuredRequest>> recorded;
  std::size_t from = 0, to = 0;
};

// By name: "ttft", "ttft_p99", "tpot", "tpot_p99", "e2e" in ms; "throughput" in requests/s;
// "preemptions"; "power" in W a GPU, "energy" in J per output token of all GPUs.
using Metrics = std::map<std::string, double>;

// Means over requests, and the 99th percentiles of TTFT and TPOT. Requires: ms, in any order.
Metrics RequestMetrics(std::vector<double> ttft, const std::vector<double>& tpot,
                       const std::vector<double>& e2e);

// Requests per second, from the first arrival to the last answer.
class RequestRate {
 public:
  void Add(double arrival_s, double e2e_ms);
  std::optional<double> PerSecond() const;

 private:
  std::int64_t requests_ = 0;
  double first_s_ = 0, last_s_ = 0;
};

// Percentile by linear interpolation at rank share * (n - 1). Requires: not empty.
double PercentileOf(std::vector<double> values, double share);

// A row of a set; a row of a file that measured two things is two.
struct Measured {
  std::string set;           // the file, without ending
  std::string row;           // what tells it from the others of the set, in its own words
  std::size_t file_row = 0;  // from 1; 0: the file as a whole
  std::string workload;      // what was asked of the server, beside rate and lengths
  std::string sweep;         // rows of one set-up and workload under rising load
  bool serving = false;      // an open-loop run of a server: counts over all sets
  MeasuredSetup setup;
  MeasuredLoad load;
  Metrics values;
  std::string test;  // whose rows were measured together, as its column "origin" has it
  // Means that the row itself states, ms; they tell a run that two sets hold. 0: it does not.
  double stated_ttft = 0, stated_e2e = 0;
  std::string skipped;  // why it cannot be run; "" when it can
};

// All rows of all files below `folder`, in order of the files, each to be run or with the reason
// why not. Folders "ops" and "traces" hold no runs, "models" no measurements.
std::vector<Measured> ReadMeasuredSets(const std::string& folder);

}  // namespace servecast
