// Replicas that encode images for others, the slow and obvious way: a queue each, the encoder's
// cache as a list (reference_encoder.h), the router by its rule (reference_rules.h), every transfer
// an object. It is told when requests come to the gateway, and says when what their images became
// is where they go on. Of the engine it shares types, the request table and the price of a step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/base.h"
#include "servecast/scenario.h"
#include "serving/policy.h"
#include "testing/reference_encoder.h"
#include "testing/reference_rules.h"
#include "testing/router_choice.h"
#include "workload/request_table.h"

namespace servecast::testing {

struct EncodeInput {
  const RequestTable& requests;
  const std::vector<TimeNs>& comes;  // by row, to the gateway
  const LatencyModel& latency;
  RouterChoice router;  // without old signals
  std::int64_t replicas = 1, seats = 1, budget = 1;
  DisaggregationSpec link;  // its bandwidth is said
  std::int64_t embed_bytes = 1;
};

struct EncodeOutput {
  std::vector<Encoding> encodings;  // by row; `replica` is the place among those that encode
  std::int64_t steps = 0, images = 0, hits = 0;
  std::int64_t cut = 0, waited = 0, shared = 0;  // prompts, of requests; transfers beside others
};

class EncodeReference {
 public:
  explicit EncodeReference(const EncodeInput& input)
      : in_(input),
        rules_(input.router, input.requests,
               std::vector<ServedBy>(static_cast<std::size_t>(input.replicas),
                                     ServedBy{.seats = input.seats})) {
    out_.encodings.resize(in_.requests.arrival.size());
    for (std::int64_t i = 0; i < in_.replicas; ++i) {
      replicas_.push_back({ReferenceEncoder(in_.requests, in_.budget, false), {}, {}, kNever, {}});
    }
    for (std::size_t r = 0; r < in_.comes.size(); ++r) {
      if (!in_.requests.ImagesOf(static_cast<RequestId>(r)).empty()) coming_.push_back(r);
    }
    std::stable_sort(coming_.begin(), coming_.end(),
                     [&](std::size_t a, std::size_t b) { return in_.comes[a] < in_.comes[b]; });
  }

  EncodeOutput Run() {
    for (;;) {
      TimeNs now = coming_.empty() ? kNever : in_.comes[coming_.front()];
      for (const One& one : replicas_) now = std::min(now, one.ends);
      now = std::min(now, NextOfLink());
      if (now == kNever) break;
      PassLink(now);
      for (One& one : replicas_) {
        if (one.ends == now) End(one, now);
      }
      std::sort(set_out_.begin(), set_out_.end());
      for (const std::size_t r : std::exchange(set_out_, {})) Send(r, now);
      while (!coming_.empty() && in_.comes[coming_.front()] == now) {
        Place(coming_.front());
        coming_.pop_front();
      }
      for (One& one : replicas_) {
        if (one.ends == kNever && !one.queue.empty()) Begin(one, now);
      }
    }
    for (const One& one : replicas_) out_.hits += one.encoder.Hits();
    return std::move(out_);
  }

 private:
  struct Waits {
    std::size_t row = 0;
    std::size_t left_from = 0;  // of its images, the first that is not encoded
  };
  struct One {
    ReferenceEncoder encoder;
    std::deque<Waits> queue;
    std::vector<Waits> step;
    TimeNs ends = kNever;
    std::vector<std::size_t> has;  // rows that were placed here and have not left
  };
  struct Transfer {
    std::size_t row = 0;
    TimeNs begins = 0;
    __int128 left = 0;  // in billionths of a byte
  };

  void Place(std::size_t row) {
    std::vector<ReplicaSight> sights;
    for (const One& one : replicas_) {
      ReplicaSight sight;
      sight.outstanding = static_cast<std::int64_t>(one.has.size());
      sight.own = one.has;
      sights.push_back(sight);
    }
    const std::size_t place = rules_.Choose(row, sights, in_.comes[row]).value();
    replicas_[place].queue.push_back({row, 0});
    replicas_[place].has.push_back(row);
    out_.encodings[row].replica = static_cast<std::int32_t>(place);
    if (replicas_[place].ends < kNever || replicas_[place].queue.size() > 1) ++out_.waited;
  }

  // In order, up to the first image that the step has no room for.
  void Begin(One& one, TimeNs now) {
    one.encoder.Begin();
    bool full = false;
    while (!full && !one.queue.empty() && one.step.size() < static_cast<std::size_t>(in_.seats)) {
      const std::size_t row = one.queue.front().row;
      const std::span<const PromptImage> images =
          in_.requests.ImagesOf(static_cast<RequestId>(row));
      std::size_t done = one.queue.front().left_from;
      const std::int64_t from = images[done].offset;
      const std::int64_t until =
          from + one.encoder.Cut(static_cast<RequestId>(row), from, images.back().end() - from);
      if (until == from) break;
      one.encoder.Take(static_cast<RequestId>(row));
      while (done < images.size() && images[done].end() <= until) ++done;
      full = done < images.size();
      if (full) ++out_.cut;
      one.step.push_back({row, done});
      if (full) {
        one.queue.front().left_from = done;
      } else {
        one.queue.pop_front();
      }
      Encoding& encoding = out_.encodings[row];
      if (encoding.started < 0) encoding.started = now;
    }
    BatchShape shape;
    shape.images = one.encoder.Encoded();
    out_.images += shape.images;
    ++out_.steps;
    one.ends = now + in_.latency.Price(shape).duration;
  }

  void End(One& one, TimeNs now) {
    for (const Waits& waits : one.step) {
      const auto id = static_cast<RequestId>(waits.row);
      const std::span<const PromptImage> images = in_.requests.ImagesOf(id);
      one.encoder.Passed(id, images[waits.left_from - 1].end());
      if (waits.left_from < images.size()) continue;
      out_.encodings[waits.row].encoded = now;
      one.has.erase(std::find(one.has.begin(), one.has.end(), waits.row));
      set_out_.push_back(waits.row);
    }
    one.step.clear();
    one.ends = kNever;
  }

  void Send(std::size_t row, TimeNs now) {
    Encoding& encoding = out_.encodings[row];
    encoding.bytes = 0;
    for (const PromptImage& image : in_.requests.ImagesOf(static_cast<RequestId>(row))) {
      encoding.bytes += image.embeds * in_.embed_bytes;
    }
    const auto latency = static_cast<TimeNs>(in_.link.base_latency_us * 1000 + 0.5);
    transfers_.push_back({row, now + std::max<TimeNs>(latency, 1),
                          static_cast<__int128>(encoding.bytes) * 1'000'000'000});
  }

  __int128 Rate() const { return static_cast<std::int64_t>(*in_.link.bandwidth_gb_s * 1e9 + 0.5); }
  __int128 Flowing() const {
    __int128 flowing = 0;
    for (const Transfer& t : transfers_) flowing += t.begins <= link_at_ ? 1 : 0;
    return flowing;
  }
  TimeNs NextOfLink() const {
    TimeNs next = kNever;
    for (const Transfer& t : transfers_) {
      if (t.begins > link_at_) {
        next = std::min(next, t.begins);
        continue;
      }
      const __int128 end = link_at_ + (t.left * Flowing() + Rate() - 1) / Rate();
      if (end < next) next = static_cast<TimeNs>(end);
    }
    return next;
  }
  // Only at its own moments, as what flows in between is cut to whole units.
  void PassLink(TimeNs now) {
    if (NextOfLink() != now) return;
    const __int128 flowing = Flowing();
    for (Transfer& t : transfers_) {
      if (t.begins <= link_at_) t.left -= Rate() * (now - link_at_) / flowing;
    }
    link_at_ = now;
    for (auto t = transfers_.begin(); t != transfers_.end();) {
      if (t->begins > now || t->left > 0) {
        ++t;
        continue;
      }
      out_.encodings[t->row].arrived = now;
      if (flowing > 1) ++out_.shared;
      t = transfers_.erase(t);
    }
  }

  const EncodeInput& in_;
  EncodeOutput out_;
  ReferenceRules rules_;
  std::vector<One> replicas_;
  std::deque<std::size_t> coming_;
  std::vector<std::size_t> set_out_;
  std::vector<Transfer> transfers_;
  TimeNs link_at_ = 0;
};

}  // namespace servecast::testing
