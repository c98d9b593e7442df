// Traffic as a scenario has it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "servecast/number_table.h"

namespace servecast {

enum class ArrivalProcess {
  kPoisson,
  kConstant,
  kTrace,
  kGamma,
  kWeibull,
  kUniform,
  kStatic,
  kClosedLoop
};
inline bool HasRate(ArrivalProcess process) {
  return process != ArrivalProcess::kTrace && process != ArrivalProcess::kStatic &&
         process != ArrivalProcess::kClosedLoop;
}
// What a run begins with. Spread: the clients of a closed loop at random points of the time that
// they think, and conversations of a flat rate that are under way. Together: all clients at 0, no
// conversation.
enum class LoadStart { kSpread, kTogether };
// How the rate changes over time; each is a factor of the rate.
enum class RateProfile { kFlat, kPiecewise, kDiurnal, kRamp };

struct ArrivalSpec {
  ArrivalProcess process = ArrivalProcess::kPoisson;
  double rate_per_s = 1;
  double cv = 2;  // gamma, weibull: standard deviation of the gaps over their mean
  // Of the processes that have a rate.
  std::optional<std::int64_t> max_concurrency;  // requests that clients have in flight at most
  RateProfile profile = RateProfile::kFlat;
  NumberTable rate_factors = {{0, 1}};  // piecewise: [from_s, factor], the first from 0
  double peak_hour = 14;                // diurnal
  double peak_to_trough = 4;
  double period_h = 24;
  double ramp_from = 0;  // ramp: factors
  double ramp_to = 1;
  double ramp_s = 600;
  NumberTable spikes;  // [start_s, duration_s, factor], on top of the profile
  // closed_loop
  std::int64_t concurrency = 16;
  double think_time_s = 0;  // mean, exponential
  // closed_loop, and processes with a rate
  LoadStart start = LoadStart::kSpread;
  // trace
  double rate_scale = 1;    // arrivals come this many times as fast
  double keep = 1;          // share of the rows
  std::int64_t repeat = 1;  // times that the trace is played; 0: until there are enough requests

  friend bool operator==(const ArrivalSpec&, const ArrivalSpec&) = default;
};

// Clients hold back what would be too much at a time.
inline bool CapsClients(const ArrivalSpec& arrivals) {
  return HasRate(arrivals.process) && arrivals.max_concurrency.has_value();
}

enum class LengthDistribution {
  kFixed,
  kUniform,
  kLognormal,
  kEmpirical,
  kTrace,
  kNormal,
  kZipf,
  kRatio,    // outputs only: of the prompt
  kWorkload  // of a class: as the workload's
};

// A length is an increasing function of one uniform draw.
inline bool HasOneDraw(LengthDistribution distribution) {
  return distribution == LengthDistribution::kUniform ||
         distribution == LengthDistribution::kNormal ||
         distribution == LengthDistribution::kLognormal ||
         distribution == LengthDistribution::kEmpirical;
}

// Tokens. Only the members of its distribution count; draws are rounded to the nearest token and
// clipped to [min, max].
struct LengthSpec {
  LengthDistribution distribution = LengthDistribution::kFixed;
  std::int64_t value = 512;         // fixed
  std::int64_t min = 1;             // uniform, zipf, normal, lognormal
  std::optional<std::int64_t> max;  // uniform and zipf (required), normal, lognormal
  double mean = 512;                // normal
  double stddev = 128;              // normal
  double median = 256;              // lognormal
  double p99 = 2048;                // lognormal
  double theta = 0.6;               // zipf: the k-th length has weight k^-theta
  bool scrambled = false;           // zipf: the frequent lengths are spread over [min, max]
  double ratio = 20;                // ratio: prompt tokens per output token
  double scale = 1;                 // trace
  // Outputs drawn from one number: Spearman's rank correlation with the prompt.
  double correlation = 0;
  NumberTable quantiles;  // empirical: [probability, tokens], both ascending

  friend bool operator==(const LengthSpec&, const LengthSpec&) = default;
};

// A shared prefix of prompts (a system prompt), before the drawn prompt tokens.
struct PrefixSpec {
  std::int64_t groups = 0;  // each request belongs to one, drawn evenly; 0: nothing is shared
  std::int64_t tokens = 0;  // of the prefix, the same for all requests of a group

  friend bool operator==(const PrefixSpec&, const PrefixSpec&) = default;
};

// Conversations: turn k+1 arrives a think time after turn k is complete, and its prompt is all that
// was said before, then the drawn prompt tokens. The arrival process starts sessions.
struct SessionSpec {
  std::int64_t turns = 1;   // 1: every request stands alone
  double think_time_s = 0;  // mean, exponential

  friend bool operator==(const SessionSpec&, const SessionSpec&) = default;
};

// LoRA adapters of the model: each session has one of them, or none where there are none.
struct AdapterSpec {
  std::int64_t count = 0;
  double theta = 0;  // the k-th has weight k^-theta; 0: all are equally likely

  friend bool operator==(const AdapterSpec&, const AdapterSpec&) = default;
};

// Images of each request, in front of the prompt tokens that are drawn for it, which are its text.
struct ImageSpec {
  std::int64_t per_request = 0;
  std::int64_t width = 1024, height = 1024;  // pixels
  std::int64_t distinct = 0;  // so many different images, drawn evenly; 0: no two are the same

  friend bool operator==(const ImageSpec&, const ImageSpec&) = default;
};

inline LengthSpec LengthsOfTheWorkload() {
  LengthSpec spec;
  spec.distribution = LengthDistribution::kWorkload;
  return spec;
}

// Clients of one kind. What a class does not set is as in the workload.
struct ClassSpec {
  std::string name;
  double share = 1;                        // of the sessions, relative to the other classes
  std::optional<double> rate_per_s;        // arrivals of its own instead of a share
  std::int64_t priority = 0;               // lower is more urgent
  std::optional<double> ttft_deadline_ms;  // what the order edf goes by
  std::optional<double> timeout_s;         // after it the client gives up
  // Instead of the engine's: mean tokens of a step that verifies all its drafts.
  std::optional<double> acceptance_length;
  LengthSpec prompt_tokens = LengthsOfTheWorkload();
  LengthSpec output_tokens = LengthsOfTheWorkload();
  std::optional<std::int64_t> prefix_groups;  // none shared with other classes
  std::optional<std::int64_t> prefix_tokens;
  std::optional<std::int64_t> turns;
  std::optional<double> think_time_s;
  std::optional<std::int64_t> adapters;  // none shared with other classes
  std::optional<double> adapter_theta;
  std::optional<std::int64_t> images_per_request;

  friend bool operator==(const ClassSpec&, const ClassSpec&) = default;
};

// Clients that send a request again when it was turned away or timed out. The back-off before the
// k-th retry is min(backoff_s * multiplier^(k-1), max_backoff_s), less a share up to `jitter`.
// Defaults but for `max` are those of OpenAI's Python client. Or clients that hedge: who has no
// first token after `hedge_after_s` sends the request once more, and keeps the attempt whose first
// token comes first.
struct RetrySpec {
  std::int64_t max = 0;  // retries of a request; 0: clients do not try again
  double backoff_s = 0.5, multiplier = 2, max_backoff_s = 8;
  double jitter = 0.25;
  // A retry is sent while fewer than this share of the requests so far were; none: always.
  std::optional<double> budget;
  std::optional<double> hedge_after_s;  // none: clients do not hedge
  std::optional<double> hedge_budget;   // as `budget`, of second attempts

  bool On() const { return max > 0; }
  bool Hedges() const { return hedge_after_s.has_value(); }
  friend bool operator==(const RetrySpec&, const RetrySpec&) = default;
};

struct WorkloadSpec {
  std::string name;
  ArrivalSpec arrivals;
  LengthSpec prompt_tokens;
  LengthSpec output_tokens;
  PrefixSpec prefix;
  SessionSpec sessions;
  AdapterSpec adapters;
  ImageSpec images;
  std::vector<ClassSpec> classes;  // none: all requests are alike
  RetrySpec retries;
  std::int64_t requests = 1000;  // replayed arrivals: all of the trace, `repeat` times, instead

  bool HasImages() const {  // of some class at least
    const auto any = [this](const ClassSpec& c) {
      return c.images_per_request.value_or(images.per_request) > 0;
    };
    return classes.empty() ? images.per_request > 0
                           : std::any_of(classes.begin(), classes.end(), any);
  }
  bool HasTurns() const {  // conversations, of some class at least
    const auto turns = [this](const ClassSpec& c) { return c.turns.value_or(sessions.turns) > 1; };
    return classes.empty() ? sessions.turns > 1
                           : std::any_of(classes.begin(), classes.end(), turns);
  }
  friend bool operator==(const WorkloadSpec&, const WorkloadSpec&) = default;
};

}  // namespace servecast
