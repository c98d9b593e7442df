// Designs of a deployment that a search compares: what is asked about one, and what was found.
// Plain data, so that tasks may run in any process or worker (io/design_json.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

inline constexpr std::size_t kMostDesigns = 10'000;

// A member of the document, by its path, and the values that it takes in turn. "*" stands for every
// pool: cluster.pools.*.tensor_parallel.
struct Axis {
  std::string path;
  std::vector<std::string> values;  // as ApplyOverrides takes them
};

// How what is known of a design was found, each surer and dearer than the one before.
enum class Rung {
  kBound,    // in closed form: whether it fits, and what no scheduling could beat
  kCoarse,   // one run a number of replicas
  kCertain,  // as many runs as intervals need
};

// What a search looks for the least of: $ an hour, or energy per output token.
enum class Least { kCost, kEnergy };

// A design that costs so many times what the cheapest does is no alternative to it.
inline constexpr double kNoAlternative = 10;

// One question about one design; independent of all others.
struct DesignTask {
  std::int64_t id = 0;
  Rung rung = Rung::kBound;
  std::string document;
  bool fixed = false;  // its replicas are the document's; else the fewest are looked for
  std::vector<std::int64_t> start;  // replicas by pool to begin with; empty: the document's
  // Of one pool, what it may cost: a design that needs more is given up. $ an hour, or GPUs where
  // nothing has a price; 0: it does not matter.
  double most = 0;
  bool energy = false;  // its energy is asked for: one run more of an answer that holds
};

enum class DesignState {
  kUnknown,     // not run, or too few requests have an answer
  kMeets,       // every target's interval is within its limit
  kNear,        // an interval covers a limit
  kMisses,      // with any number of replicas, or with those that it has
  kOverloaded,  // completes less than comes
  kDoesNotFit,  // its model, into the GPUs' memory
  kRefused,     // its document means nothing that can run; the issues say why
  kNotJudged,   // servers like it were predicted too badly
};

struct DesignPoint {
  struct Pool {
    std::string name;
    PoolRole role = PoolRole::kMixed;
    std::int64_t replicas = 0, low = 0, high = 0;  // the ends: of 95 %, or of one run's
    std::int64_t gpus_per_replica = 1;
    std::optional<double> price;  // $ an hour of one GPU
  };
  struct Target {
    SloMetric metric = SloMetric::kTtft;
    std::optional<double> value, low, high;  // as of PlanTarget
    double unserved_share = 0;
    std::optional<double> strain;  // share of what is allowed; none: no value, or endless
  };
  // Of the run that `servecast run` makes first, by the GPUs' power laws.
  struct Energy {
    double mean_w = 0;                // of a GPU
    double j_per_output_token = 0;    // of all GPUs
    std::optional<double> low, high;  // of J, by the law's error; none: the error is not known
  };

  std::int64_t id = 0;
  Rung rung = Rung::kBound;
  DesignState state = DesignState::kUnknown;
  std::string reason;  // in words, where it is not an answer
  Issues issues;
  std::vector<Pool> pools;      // empty: no number is known
  std::vector<Target> targets;  // as in the scenario; empty before a run
  // The worst target's share of its limit; none: overloaded, or unknown.
  std::optional<double> strain, strain_low, strain_high;
  std::optional<std::size_t> closest;  // that target
  std::string binding;  // what one replica fewer misses; "capacity"; empty: there are none fewer
  double requests_per_s = 0, goodput_per_s = 0, output_tokens_per_s = 0;
  // What no system can beat: GPUs that the load keeps busy at the data sheet's peaks, one replica a
  // pool at least, their price, and by target the strain of a request that is alone.
  double least_gpus = 0;
  std::optional<double> least_dollars;
  std::vector<double> least_strains;
  std::vector<std::int64_t> start;  // replicas by pool that the closed form has for enough
  double start_gpus = 0;            // of these
  std::optional<double> start_dollars;
  // None: not asked for, or the power of a GPU is not known; `energy` is of a design that holds.
  std::optional<Energy> energy;
  std::optional<double> least_j_per_output_token;  // that no run goes below
  bool given_up = false;                           // it needs more than the task's most
  EvidenceClass evidence = EvidenceClass::kUntested;
  std::vector<std::string> warnings;    // of its evidence: sentences
  bool seats_to_spare = false;          // with more max_num_seqs the same runs would come out
  std::int64_t runs = 0, requests = 0;  // 0: those of the same with fewer seats, to spare

  // Keeps every target, as far as is known.
  bool Holds() const {
    return (state == DesignState::kMeets || state == DesignState::kNear) && strain && *strain <= 1;
  }
};

// Of all pools.
enum class End { kValue, kLow, kHigh };
std::int64_t GpusOf(const DesignPoint& point, End end = End::kValue);
// None: a GPU has no price.
std::optional<double> DollarsPerHour(const DesignPoint& point, End end = End::kValue);

}  // namespace servecast
