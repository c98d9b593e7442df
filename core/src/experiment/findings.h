// What the runs of an experiment come to, before it is put into words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "experiment/observations.h"
#include "experiment/statistics.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

// How runs are read. Steady: the load is the same throughout, and what counts is what it would be
// for ever; else a run has its own beginning and end, and all of it counts.
struct Reading {
  bool steady = true;
  std::size_t batches = 0;   // of each run; 0: runs are the groups
  bool by_group = false;     // also what each group by itself comes to
  double confidence = 0.95;  // of what is 95 % below
};

// On which side of its limit a target is.
enum class Side { kWithin, kAcross, kBeyond };

struct TargetFinding {
  std::optional<Interval> ms;  // 95 %; none: too few samples. Of attainment: 1 is the limit
  Interval unserved;           // share, 95 %; of attainment: of those beyond a limit
  Side side = Side::kAcross;   // at 95 %
  bool settled = false;        // not across even at 98 %
  bool never = false;          // no request had such a latency, in any run
  // Of each group by itself, if asked for; kNone: too few samples.
  struct Own {
    double ms = Observations::kNone, unserved = 0;
  };
  std::vector<Own> by_group;
};

// How many times as many requests would take the limit out of the interval, if its value stays; at
// most a thousand. Requires: it has an interval.
double TimesToTell(const SloSpec& slo, const TargetFinding& target);

// Requests [first, last) of a run count, which arrived from `begin` to `end`; rates, from `from`
// on.
struct CountedRequests {
  std::size_t first = 0, last = 0;
  TimeNs from = 0;
  TimeNs begin = kNever, end = -1;  // of nobody
};

struct Findings {
  std::vector<TargetFinding> targets;
  std::vector<CountedRequests> counted;  // by run
  TimeNs from = 0, until = 0;            // of the first run's arrivals that count
  bool long_warmup = false;              // beyond what thinking makes of it
  // Times that a run is as long as a life (lives.h); none: nobody thinks.
  std::optional<double> lives;
  bool too_short = false;  // for a life
  // A run's mean number in the system scatters as if it had been seen independently fewer than ten
  // times: what is congested at its beginning is likely to be so at its end.
  bool long_memory = false;
  // Clients give up: what is not completed is not what waits, and nothing can be said by it.
  bool gives_up = false;
  bool falls_behind = false;  // completes clearly less than comes, at 99 %
  // Completes less than comes, by half a per cent and at 99.9 % one-sided, though the first
  // requests are long gone.
  bool grows = false;
  // While load was offered, its second half: completed and come, requests/s; 95 %. None: too few.
  std::optional<Interval> served_per_s, served_share;  // the share: of what came
  double offered_per_s = 0;
  // From the warm-up to the last arrival; none: most answers come after it.
  struct Rates {
    double requests_per_s = 0, goodput_per_s = 0, tokens_per_s = 0;
  };
  std::optional<Rates> rates;
};

// Requires: `runs` not empty. Intervals need batches, or eight runs or more.
Findings FindingsOf(const Scenario& scenario, const Reading& reading,
                    const std::vector<Observations>& runs);

// What the document offers, in requests/s: of conversations, turns as well, which an overload
// delays. nullopt: it states none.
std::optional<double> OfferedRate(const Scenario& scenario);

// Puts them into the report, verdict and all. Requires: the report's certainty, and its pooled
// figures.
void JudgeExperiment(const Scenario& scenario, const Findings& findings, bool overloaded,
                     Report& report);

// The target that the verdict goes by. Requires: JudgeExperiment did its part.
std::size_t DecidingTarget(const Findings& findings, const Report& report);

// The same before there are findings. `runs`: planned so far.
void JudgePartial(const Scenario& scenario, std::size_t runs, Report& report);

}  // namespace servecast
