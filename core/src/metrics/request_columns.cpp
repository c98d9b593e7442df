// The columns with a value per request, and the fingerprint, which is over the same.
#include <array>
#include <limits>

#include "base/hash.h"
#include "metrics/summarize.h"
#include "metrics/time_split.h"

namespace servecast {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double>& ColumnAt(Report& report, std::string_view name) {
  std::size_t i = 0;
  while (Columns()[i].name != name) ++i;
  return report.columns[i];
}

void FillTimes(const RunView& run, Report& report) {
  const std::size_t size = run.requests.arrival.size();
  std::array<std::vector<double>*, TimeSplitReport::kParts> columns{};
  for (std::size_t p = 0; p < columns.size(); ++p) {
    columns[p] = &ColumnAt(report, std::string(TimeSplitReport::kNames[p]) + "_ms");
    columns[p]->assign(size, kNan);
  }
  for (std::size_t i = 0; report.time_split.on && i < size; ++i) {
    if (run.results.state[i] != RequestState::kCompleted) continue;
    const TimeSplit e2e = TimesOf(run.requests, run.results, run.token_delay, i).e2e;
    for (std::size_t p = 0; p < columns.size(); ++p) {
      (*columns[p])[i] = static_cast<double>(e2e.*kTimeParts[p]) / kMs;
    }
  }
}

}  // namespace

std::optional<bool> RunView::DeadlineMissed(std::size_t r) const {
  const std::vector<TimeNs>& deadline = requests.ttft_deadline;
  if (deadline.empty() || deadline[r] == kNever || !Arrived(r)) return std::nullopt;
  const TimeNs first = results.first_token[r];
  if (first >= 0) return first - requests.arrival[r] > deadline[r];
  return IsLost(results.state[r]) || end - requests.arrival[r] > deadline[r];
}

std::size_t RunView::FinishReasonOf(std::size_t r) const {
  switch (results.state[r]) {
    case RequestState::kCompleted:
      return results.generated[r] < requests.output_tokens[r] ? 1 : 0;
    case RequestState::kDropped:
      return 2;
    case RequestState::kTimedOut:
      return 3;
    case RequestState::kRejected:
      return 5;
    case RequestState::kLost:
      return 6;
    default:
      return 4;
  }
}

void FillRequestColumns(const RunView& run, Report& report) {
  const std::size_t size = run.requests.arrival.size();
  const RequestResults& results = run.results;
  const auto ms_since_arrival = [&](std::size_t i, TimeNs time) {
    return time >= 0 ? static_cast<double>(time - run.requests.arrival[i]) / kMs : kNan;
  };
  const auto fill = [&](std::string_view name, auto value) {
    std::vector<double>& column = ColumnAt(report, name);
    column.reserve(size);
    for (std::size_t i = 0; i < size; ++i) column.push_back(value(i));
  };
  fill("arrival_s", [&](std::size_t i) {
    return run.requests.arrival[i] >= 0 ? Seconds(run.requests.arrival[i]) : kNan;
  });
  fill("class", [&](std::size_t i) {
    return run.ClassOf(i) == RunView::kNoClass ? kNan : static_cast<double>(run.ClassOf(i));
  });
  std::vector<double>&sessions = ColumnAt(report, "session"), &turns = ColumnAt(report, "turn");
  double session = -1, turn = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const bool first = run.requests.think.empty() || run.requests.think[i] < 0;
    session += first ? 1 : 0;
    turn = first ? 0 : turn + 1;
    sessions.push_back(session);
    turns.push_back(turn);
  }
  fill("prefill_replica", [&](std::size_t i) {
    return results.HandedOver(i) ? static_cast<double>(results.hand_overs[i].prefill_replica)
                                 : kNan;
  });
  fill("prefilled_s", [&](std::size_t i) {
    return results.HandedOver(i) ? Seconds(results.hand_overs[i].prefilled) : kNan;
  });
  fill("transfer_start_s", [&](std::size_t i) {
    const bool sent = results.HandedOver(i) && results.hand_overs[i].reserved >= 0;
    return sent ? Seconds(results.hand_overs[i].reserved) : kNan;
  });
  fill("replica", [&](std::size_t i) {
    const std::int32_t replica = results.ReplicaOf(i);
    return replica >= 0 ? static_cast<double>(replica) : kNan;
  });
  fill("prompt_tokens", [&](std::size_t i) { return run.requests.prompt_tokens[i]; });
  fill("cached_tokens", [&](std::size_t i) { return results.cached_tokens[i]; });
  fill("output_tokens", [&](std::size_t i) { return results.generated[i]; });
  fill("scheduling_delay_ms",
       [&](std::size_t i) { return ms_since_arrival(i, results.first_scheduled[i]); });
  fill("ttft_ms", [&](std::size_t i) { return ms_since_arrival(i, results.first_token[i]); });
  fill("tpot_ms", [&](std::size_t i) {
    return results.completion[i] >= 0 && results.generated[i] > 1 ? run.TpotNs(i) / kMs : kNan;
  });
  fill("e2e_ms", [&](std::size_t i) { return ms_since_arrival(i, results.completion[i]); });
  FillTimes(run, report);
  fill("encode_ms", [&](std::size_t i) {
    const bool any = !run.requests.images_until.empty() && results.first_token[i] >= 0;
    return any ? static_cast<double>(results.Encode(i)) / kMs : kNan;
  });
  fill("deadline_missed", [&](std::size_t i) {
    const std::optional<bool> missed = run.DeadlineMissed(i);
    return missed ? static_cast<double>(*missed) : kNan;
  });
  fill("attempts", [&](std::size_t i) {
    if (run.attempts != nullptr) return (*run.attempts)[i];
    return run.Arrived(i) ? 1 : 0;
  });
  fill("preemptions", [&](std::size_t i) { return results.preemptions[i]; });
  fill("state", [&](std::size_t i) { return static_cast<double>(results.state[i]); });
  fill("finish_reason", [&](std::size_t i) {
    return run.Arrived(i) ? static_cast<double>(run.FinishReasonOf(i)) : kNan;
  });
}

// Everything that the run decided, as integers: model.md's list, in id order.
std::uint64_t FingerprintOf(const RunView& run, const Report& r) {
  Hasher h;
  h.Add(run.scenario.content_hash);
  h.Add(run.trace_hash);
  const RequestResults& results = run.results;
  for (std::size_t i = 0; i < run.requests.arrival.size(); ++i) {
    h.Add(run.requests.arrival[i]);
    h.Add(results.enqueue[i]);
    h.Add(results.first_scheduled[i]);
    h.Add(results.first_token[i]);
    h.Add(results.completion[i]);
    h.Add(static_cast<std::int64_t>(run.requests.prompt_tokens[i]) << 32 | results.generated[i]);
    h.Add(static_cast<std::int64_t>(results.preemptions[i]) << 32 | results.cached_tokens[i]);
    h.Add(std::int64_t{results.ReplicaOf(i)});
    h.Add(static_cast<std::int64_t>(results.state[i]));
  }
  for (const HandOver& o : results.hand_overs) {
    for (const std::int64_t part : {o.prefilled, o.reserved, o.arrived, o.resumed, o.bytes,
                                    std::int64_t{o.prefill_replica}}) {
      h.Add(part);
    }
  }
  for (const Encoding& e : results.encodings) {
    for (const std::int64_t part :
         {e.started, e.encoded, e.arrived, e.bytes, std::int64_t{e.replica}}) {
      h.Add(part);
    }
  }
  const PrefixCacheReport& c = r.prefix_cache;
  for (const std::int64_t counter :
       {r.arrived, r.completed, r.queued, r.running, r.dropped, r.timed_out, r.rejected,
        r.length_capped, r.preemptions, r.output_tokens, r.steps, c.query_tokens, c.hit_tokens,
        c.query_blocks, c.hit_blocks, c.resumed_hit_tokens, c.evicted_blocks, run.end}) {
    h.Add(counter);
  }
  const KvOffloadReport& o = r.kv_offload;
  if (o.on) {
    for (const std::int64_t counter :
         {o.tiers[0].hit_blocks, o.tiers[0].loaded_blocks, o.tiers[1].hit_blocks,
          o.tiers[1].loaded_blocks, o.offloaded_blocks, o.thrashed_blocks, o.transfer_ns}) {
      h.Add(counter);
    }
  }
  return h.Finish();
}

}  // namespace servecast
