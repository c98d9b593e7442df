// See blame.h.
#include "experiment/blame.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "metrics/time_split.h"

namespace servecast {

void TailBlame::Add(const RunRecords& records, double warmup_s) {
  const auto warmup = static_cast<TimeNs>(warmup_s * 1e9);
  const std::size_t run = runs_++;
  if (requests_.size() >= kMost) return;
  const std::size_t all = records.requests.arrival.size();
  for (std::size_t i = 0; i < all; i += 1 + all / kMost) {
    if (records.results.state[i] != RequestState::kCompleted) continue;
    if (records.requests.arrival[i] < warmup) continue;
    const RequestTimes times = TimesOf(records.requests, records.results, records.token_delay, i);
    Times& own = requests_.emplace_back();
    for (std::size_t p = 0; p < own.e2e.size(); ++p) {
      own.ttft[p] = times.ttft.*kTimeParts[p];
      own.e2e[p] = times.e2e.*kTimeParts[p];
    }
    own.first = times.ttft.Sum();
    own.all = times.e2e.Sum();
    own.later_tokens = records.results.generated[i] - 1;
    own.arrival = records.requests.arrival[i];
    own.run = run;
  }
}

std::vector<Blame> TailBlame::Find(const std::vector<CountedRequests>& counted) const {
  const auto counts = [&counted](const Times& t) {
    if (t.run >= counted.size()) return counted.empty();
    return t.arrival >= counted[t.run].begin && t.arrival <= counted[t.run].end;
  };
  std::vector<Blame> found;
  for (const std::string_view metric : {"ttft", "tpot", "e2e"}) {
    const bool first = metric == "ttft", later = metric == "tpot";
    const auto latency = [&](const Times& t) {
      if (!later) return static_cast<double>(first ? t.first : t.all);
      return static_cast<double>(t.all - t.first) / static_cast<double>(t.later_tokens);
    };
    std::vector<const Times*> of;
    for (const Times& t : requests_) {
      if (counts(t) && (!later || t.later_tokens > 0)) of.push_back(&t);
    }
    if (of.empty()) continue;
    const std::size_t slowest = (of.size() + 99) / 100;
    // The earlier of two alike, whatever the library.
    std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(slowest - 1), of.end(),
                     [&](const Times* a, const Times* b) {
                       const double x = latency(*a), y = latency(*b);
                       return x != y ? x > y : a < b;
                     });
    Blame& blame = found.emplace_back();
    blame.metric = metric;
    blame.from_ms = latency(*of[slowest - 1]) / 1e6;
    for (std::size_t i = 0; i < of.size(); ++i) {
      const Times& t = *of[i];
      for (Blame::Side* side : {&blame.all, i < slowest ? &blame.slowest : nullptr}) {
        if (side == nullptr) continue;
        side->requests += 1;
        side->tokens += t.later_tokens;
        for (std::size_t p = 0; p < t.e2e.size(); ++p) {
          const TimeNs part = first ? t.ttft[p] : later ? t.e2e[p] - t.ttft[p] : t.e2e[p];
          side->parts_ns[p] += part;
          side->total_ns += part;
        }
      }
    }
  }
  return found;
}

}  // namespace servecast
