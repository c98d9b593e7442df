#include "testing/hedge_reference.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "fmt/format.h"
#include "testing/cluster_run.h"
#include "testing/random_cases.h"

namespace servecast::testing {
namespace {

class HedgeReader {
 public:
  HedgeReader(const RandomCase& before, const ClusterRun& run, std::int64_t replicas,
              const RouterChoice& router, HedgeComparison& found)
      : before_(before.requests),
        case_(before),
        run_(run),
        t_(run.requests),
        horizon_(before.horizon.value_or(kNever)),
        replicas_(replicas),
        router_(router),
        n_(t_.requests()),
        found_(found) {}

  void Read() {
    ReadSecondAttempts();
    for (std::size_t i = 0; i < n_ && Agree(); ++i) ReadCancelled(i);
    if (Agree()) ReadPlaces();
    for (std::int32_t i = 0; i < replicas_ && Agree(); ++i) RunAlone(i);
  }

 private:
  bool Agree() const { return found_.mismatch.empty(); }
  void Differ(std::string what, std::size_t row) {
    if (Agree())
      found_.mismatch = fmt::format("{}, attempt {} of request {}", what, row / n_, row % n_);
  }
  // What the client of an attempt sees first, by then.
  bool Token(std::size_t row, TimeNs by) const {
    return run_.results.first_token[row] >= 0 && run_.results.first_token[row] <= by;
  }

  // All attempts in the order in which they set out, or would have.
  void ReadSecondAttempts() {
    std::vector<std::tuple<TimeNs, std::size_t>> order;
    for (std::size_t i = 0; i < n_; ++i) {
      if (t_.arrival[i] < 0 || run_.results.state[i] == RequestState::kDropped) continue;
      if (t_.prompt_tokens[i] >= longest()) continue;
      order.emplace_back(t_.arrival[i], i);
      const TimeNs at = t_.arrival[i] + t_.hedge_after;
      const bool gone = before_.timeout[i] <= t_.hedge_after;
      if (!gone && !Token(i, at)) order.emplace_back(at, n_ + i);
    }
    std::sort(order.begin(), order.end());
    double firsts = 0, seconds = 0;
    std::vector<bool> due(n_, false);
    for (const auto& [at, row] : order) {
      if (at >= horizon_) break;
      if (row < n_) {
        ++firsts;
        continue;
      }
      due[row - n_] = true;
      const bool sent = t_.retry_budget < 0 || seconds + 1 <= t_.retry_budget * firsts;
      if (t_.arrival[row] != at) return Differ("a second attempt does not set out in time", row);
      if (sent == (run_.results.state[row] == RequestState::kRejected)) {
        return Differ("a budget is not kept", row);
      }
      (sent ? found_.hedged : found_.over_budget) += 1;
      seconds += sent ? 1 : 0;
    }
    for (std::size_t i = 0; i < n_; ++i) {
      if (!due[i] && t_.arrival[n_ + i] >= 0) Differ("a second attempt for nothing", n_ + i);
    }
  }
  std::int64_t longest() const {
    std::int64_t most = case_.model_max_len;
    most = std::min(most, (case_.PoolBlocks() - 1) * case_.engine.block_size);
    if (case_.engine.max_model_len) most = std::min(most, *case_.engine.max_model_len);
    if (!case_.engine.enable_chunked_prefill) {
      most = std::min(most, case_.engine.max_num_batched_tokens + 1);
    }
    return most;
  }

  void ReadCancelled(std::size_t i) {
    ++found_.requests;
    const std::size_t rows[] = {i, n_ + i};
    const auto first = [&](std::size_t row) {
      const TimeNs token = run_.results.first_token[row];
      return std::pair(token < 0 ? kNever : token, row);
    };
    const auto [token, kept] = std::min(first(rows[0]), first(rows[1]));
    found_.won += token < kNever && kept == rows[1] ? 1 : 0;
    for (const std::size_t row : rows) {
      const TimeNs patience = t_.timeout[row];
      if (patience == before_.timeout[row]) {
        const bool sent = t_.arrival[row] >= 0 && run_.results.enqueue[row] >= 0 &&
                          run_.results.state[row] != RequestState::kRejected;
        if (token >= horizon_ || row == kept || !sent || t_.arrival[row] >= token) continue;
        // An answer may be complete for the engine before its client sees a token of it.
        const bool seen_late =
            case_.latency.output_token_delay > 0 || case_.latency.delivery_delay > 0;
        const bool answered = run_.results.state[row] == RequestState::kCompleted &&
                              (seen_late || run_.results.completion[row] <= token);
        const bool over = answered || patience <= token - t_.arrival[row];
        if (!over) Differ("an attempt was not cancelled", row);
        continue;
      }
      ++found_.cancelled;
      if (row == kept || t_.arrival[row] + patience != token) {
        Differ("an attempt was cancelled at another time", row);
      }
    }
  }

  void ReadPlaces() {
    std::vector<std::size_t> order;
    for (std::size_t r = 0; r < t_.arrival.size(); ++r) {
      if (run_.results.replica[r] >= 0) order.push_back(r);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(run_.results.enqueue[a], t_.arrival[a], a) <
             std::tuple(run_.results.enqueue[b], t_.arrival[b], b);
    });
    std::int64_t turn = 0;
    for (const std::size_t r : order) {
      std::vector<std::int32_t> known;
      const std::int32_t beside = r < n_ || replicas_ == 1 ? -1 : run_.results.replica[r - n_];
      for (std::int32_t i = 0; i < replicas_; ++i) {
        if (i != beside) known.push_back(i);
      }
      const auto count = static_cast<std::int64_t>(known.size());
      std::int32_t place = known.front();
      if (router_.name == "round_robin") {
        place = known[static_cast<std::size_t>(turn++ % count)];
      } else {
        const double u = Uniform(router_.seed, Stream::kRouter, static_cast<std::int64_t>(r));
        place = known[static_cast<std::size_t>(u * static_cast<double>(count))];
      }
      ++found_.placed;
      if (run_.results.replica[r] != place) return Differ("it goes to another replica", r);
    }
  }

  void RunAlone(std::int32_t replica) {
    RandomCase part = case_;
    std::vector<std::size_t> rows;
    for (std::size_t r = 0; r < t_.arrival.size(); ++r) {
      if (run_.results.replica[r] == replica) rows.push_back(r);
    }
    if (rows.empty()) return;
    RequestTable& to = part.requests;
    to = {};
    to.segments = t_.segments;
    const auto copy = [&rows](const auto& from, auto& column) {
      for (const std::size_t row : rows) {
        if (!from.empty()) column.push_back(from[row]);
      }
    };
    copy(t_.arrival, to.arrival);
    copy(t_.prompt_tokens, to.prompt_tokens);
    copy(t_.output_tokens, to.output_tokens);
    copy(t_.priority, to.priority);
    copy(t_.max_new_tokens, to.max_new_tokens);
    copy(t_.ttft_deadline, to.ttft_deadline);
    copy(t_.timeout, to.timeout);
    copy(t_.content, to.content);
    const ReferenceOutput alone = RunReference(part, std::nullopt, replica);
    const RequestResults &a = run_.results, &b = alone.results;
    for (std::size_t i = 0; i < rows.size() && Agree(); ++i) {
      const std::size_t r = rows[i];
      const bool same = a.state[r] == b.state[i] && a.first_token[r] == b.first_token[i] &&
                        a.completion[r] == b.completion[i] && a.generated[r] == b.generated[i] &&
                        a.first_scheduled[r] == b.first_scheduled[i] &&
                        a.preemptions[r] == b.preemptions[i] &&
                        a.cached_tokens[r] == b.cached_tokens[i];
      if (!same) Differ(fmt::format("replica {} serves otherwise", replica), r);
    }
  }

  const RequestTable& before_;
  const RandomCase& case_;
  const ClusterRun& run_;
  const RequestTable& t_;
  TimeNs horizon_;
  std::int64_t replicas_;
  const RouterChoice& router_;
  std::size_t n_;
  HedgeComparison& found_;
};

bool IsForIt(const RandomCase& c) {
  return !MakeLatency(c)->DelayByLoad() && !AnswersBringRequests(c) && c.stages.empty() &&
         !c.engine.speculative.On() && c.engine.max_loras == 0 && c.windows.layers == 0;
}

// Second attempts are due when the first one of some request has its first token.
void HedgeAtAToken(std::int64_t replicas, const RouterChoice& router, RandomCase& c) {
  const ClusterRun run = RunCluster(c, replicas, router);
  RequestTable& t = c.requests;
  const std::size_t n = t.requests();
  for (std::size_t r = 0; r < n; ++r) {
    const TimeNs wait = run.results.first_token[r] - t.arrival[r];
    if (run.results.first_token[r] < 0 || t.arrival[n + r] >= 0 || wait <= 0) continue;
    t.hedge_after = wait;
    break;
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (t.timeout[i] < kNever) t.timeout[n + i] = std::max<TimeNs>(0, t.timeout[i] - t.hedge_after);
  }
}

}  // namespace

HedgeComparison CompareHedges(std::uint64_t seed) {
  HedgeComparison found;
  RandomCase random_case = MakeRandomHedgeCase(seed);
  random_case.latency.stalls = {};
  random_case.engine.api_server_count = 0;
  if (!IsForIt(random_case)) return found;
  found.told = true;
  RouterChoice router;
  router.name = seed % 2 == 0 ? "round_robin" : "random";
  router.seed = static_cast<std::int64_t>(seed);
  const auto replicas = static_cast<std::int64_t>(1 + seed / 2 % 4);
  if (seed % 5 == 0) HedgeAtAToken(replicas, router, random_case);
  const ClusterRun run = RunCluster(random_case, replicas, router);
  HedgeReader(random_case, run, replicas, router, found).Read();
  for (const std::int64_t slice : {1, 7}) {
    if (!found.mismatch.empty()) break;
    const ClusterRun sliced = RunCluster(random_case, replicas, router, slice);
    const RequestResults &a = run.results, &b = sliced.results;
    if (a.completion != b.completion || a.first_token != b.first_token || a.state != b.state ||
        a.generated != b.generated || run.waiting_ns != sliced.waiting_ns ||
        run.now != sliced.now || run.requests.timeout != sliced.requests.timeout) {
      found.mismatch = fmt::format("in slices of {} it differs", slice);
    }
  }
  if (!found.mismatch.empty()) found.mismatch = fmt::format("seed {}: {}", seed, found.mismatch);
  return found;
}

}  // namespace servecast::testing
