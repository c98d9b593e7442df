// Which replicas a pool has over time: a scaler says how many, new ones take a cold start, and one
// that is not wanted any more drains: it gets no request and ends when its last one has left.
//
//   starting --cold start--> up --not wanted--> draining --last request leaves--> down
//
// Replicas keep their numbers, and one that starts is a new number with empty caches. Scaled down
// are those that start, the youngest first, then those that are up, likewise. The scaler sees what
// was scraped last, `scrape_delay_s` before, at multiples of `scrape_period_s`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/base.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "serving/policy.h"

namespace servecast {

class Membership {
 public:
  struct Input {
    const ScalingSpec& spec;  // outlives it
    TimeNs cold_start = 0;
    std::int64_t initial = 1;  // replicas that are up at 0, by number from 0 on
  };
  // What an engine says when it is scraped.
  struct Scraped {
    EngineLoad load;
    std::int64_t kv_blocks = 1;
  };
  struct Change {
    std::int64_t start = 0;           // new replicas, which the caller makes and names by Started
    std::vector<std::int32_t> drain;  // of those up: they get no request from now on
  };
  virtual ~Membership() = default;

  // When the next replica comes up, a scrape is due or the scaler decides. At one time in that
  // order.
  virtual TimeNs Next() const = 0;
  // The replicas whose cold start ends by then; each once.
  virtual std::vector<std::int32_t> ComeUp(TimeNs time) = 0;
  virtual bool ScrapesAt(TimeNs time) const = 0;
  // Whether the replica is up or draining.
  virtual bool Serves(std::int32_t replica) const = 0;
  // `scraped`: by number, of all replicas; not looked at where it does not serve.
  virtual void Scrape(TimeNs time, const std::vector<Scraped>& scraped, std::int64_t held) = 0;
  virtual bool DecidesAt(TimeNs time) const = 0;
  virtual Change Decide(TimeNs time) = 0;
  virtual void Started(std::int32_t replica, TimeNs time) = 0;

  // A request is placed on a replica, or leaves it at that time, which may lie ahead.
  virtual void Placed(std::int32_t replica) = 0;
  virtual void Left(std::int32_t replica, TimeNs time) = 0;
  // Requests on replicas that have not been said to leave; the latest time that was said. Which of
  // them are said by a time depends on how the run is sliced, who leaves by then does not.
  virtual std::int64_t Staying() const = 0;
  virtual TimeNs LastLeft() const = 0;

  // Up to `end`, without weights_s and what depends on GPUs and prices. O(replicas ever).
  virtual ScalingReport ReportTo(TimeNs end) const = 0;
};

// In a file of its own, which the page's first module leaves out.
std::unique_ptr<Membership> MakeMembership(const Membership::Input& input);

}  // namespace servecast
