#include "serving/disaggregated.h"

#include <algorithm>
#include <cmath>

namespace servecast {
namespace {

ReplicaInput ForAll(const Cluster::Input& input) {
  ReplicaInput all = input.replica;
  all.first_token_from_decode = input.disaggregation.first_token_from_decode;
  return all;
}

KvLink LinkOf(const DisaggregationSpec& spec) {
  return {static_cast<TimeNs>(std::nearbyint(spec.base_latency_us * 1e3)),
          static_cast<std::int64_t>(std::nearbyint(spec.bandwidth_gb_s * 1e9))};
}

}  // namespace

Disaggregated::Disaggregated(const Cluster::Input& input)
    : Fleet(ForAll(input), 0, input.pools, input.clients),
      in_(input),
      horizon_(std::min(input.replica.horizon, kClockEnd)),
      sides_(3),
      link_(LinkOf(input.disaggregation)),
      active_(static_cast<std::int32_t>(nodes_.size())),
      session_of_(SessionsOf(input.replica.requests)),
      gate_of_(input.replica.requests.arrival.size(), nullptr) {
  for (const auto& node : nodes_) {
    Side& side = sides_[static_cast<std::size_t>(pools_[node->pool].role)];
    side.nodes.push_back(static_cast<std::int32_t>(place_.size()));
    place_.push_back(static_cast<std::int32_t>(side.nodes.size()) - 1);
  }
  for (Side& side : sides_) side.loads = ReplicaLoads(static_cast<std::int64_t>(side.nodes.size()));
  const bool mixed = !sides_[static_cast<std::size_t>(PoolRole::kMixed)].nodes.empty();
  Open(whole_, *in_.router, in_.router_params, mixed ? PoolRole::kMixed : PoolRole::kDecode);
  Open(prefill_, *in_.router, in_.router_params, PoolRole::kPrefill);
  Open(decode_, *in_.decode_router, in_.decode_router_params, PoolRole::kDecode);
  in_.replica.results.hand_overs.resize(in_.replica.requests.arrival.size());
}

// What it asks of replicas that differ is the least that any has.
void Disaggregated::Open(Gate& gate, const RouterEntry& entry, const std::vector<double>& params,
                         PoolRole role) {
  gate.entry = &entry;
  gate.side = &sides_[static_cast<std::size_t>(role)];
  RouterInput input{in_.seed, static_cast<std::int64_t>(gate.side->nodes.size()), params};
  input.seats = input.cached_blocks = INT64_MAX;
  for (const ClusterPool& pool : pools_) {
    if (pool.role != role) continue;
    input.block_size = pool.engine.block_size;
    input.seats = std::min(input.seats, pool.engine.max_num_seqs);
    input.cached_blocks =
        std::min(input.cached_blocks, pool.engine.enable_prefix_caching ? pool.pool_blocks - 1 : 0);
  }
  gate.router = entry.make(input);
}

bool Disaggregated::Advance(std::int64_t max_steps) {
  for (std::int64_t steps = 0; steps < max_steps;) {
    const TimeNs event = NextEvent();
    const bool comes = event < horizon_;
    if (comes && (active_.empty() || active_.TopKey() >= event)) {
      Happen(event);
    } else if (!active_.empty()) {
      const std::int32_t index = active_.TopId();
      active_.Remove(index);
      TimeNs until = comes ? event : kNever - 1;
      // At one time the lowest goes first, however the run is sliced.
      if (!active_.empty()) {
        until = std::min(until, active_.TopKey() + (index < active_.TopId() ? 1 : 0));
      }
      steps += Run(index, until, max_steps - steps);
    } else {
      return Close();
    }
  }
  return false;
}

TimeNs Disaggregated::NextEvent() const {
  const TimeNs next = std::min(in_.clients.NextEnqueue(), link_.Next());
  return prefilled_.empty() ? next : std::min(next, prefilled_.front().time);
}

// One thing that does at `time`, that of the next event.
void Disaggregated::Happen(TimeNs time) {
  if (link_.Next() == time) {
    for (const RequestId request : link_.Pass()) {
      const std::int32_t index = in_.replica.results.replica[static_cast<std::size_t>(request)];
      Node& node = NodeAt(index);
      if (node.by_former != nullptr) {
        node.by_former->Arrive(request, time);
      } else {
        node.by_vllm->Arrive(request, time);
      }
      Activate(index, time);
      Free(request, time);
    }
  } else if (in_.clients.NextEnqueue() == time) {
    const RequestId request = in_.clients.TakeNext();
    const std::int64_t prompt =
        in_.replica.requests.prompt_tokens[static_cast<std::size_t>(request)];
    Route(prompt > in_.disaggregation.above_tokens ? prefill_ : whole_, request, time);
  } else {
    const RequestId request = prefilled_.front().request;
    std::pop_heap(prefilled_.begin(), prefilled_.end(), LaterPrefill);
    prefilled_.pop_back();
    Route(decode_, request, time);
  }
}

void Disaggregated::Route(Gate& gate, RequestId request, TimeNs time) {
  Side& side = *gate.side;
  while (!side.departures.empty() && side.departures.front().time <= time) {
    const Departure departure = side.departures.front();
    std::pop_heap(side.departures.begin(), side.departures.end(), Later);
    side.departures.pop_back();
    side.loads.Change(departure.place, -1);
    if (!departure.gate->entry->ignores_load) {
      departure.gate->router->Left(departure.request, departure.place);
    }
  }
  if (gate.entry->reads_engines) {
    for (std::size_t i = 0; i < side.nodes.size(); ++i) {
      const Node& node = NodeAt(side.nodes[i]);
      const EngineLoad load = node.replica->LoadAt(time);
      const auto at = static_cast<std::int32_t>(i);
      side.loads.SetEngine(at,
                           {std::max<std::int64_t>(side.loads.Outstanding(at) - load.running, 0),
                            load.kv_blocks_used, pools_[node.pool].pool_blocks - 1});
    }
  }
  const RequestTable& requests = in_.replica.requests;
  const auto r = static_cast<std::size_t>(request);
  std::vector<ContentRange> content;
  if (gate.entry->reads_content) {
    const std::int64_t block_size = pools_[NodeAt(side.nodes[0]).pool].engine.block_size;
    content = ContentFor(requests, request, block_size);
  }
  const std::int32_t place = gate.router->Choose(
      {request, session_of_.empty() ? request : session_of_[r], requests.prompt_tokens[r], content},
      side.loads);
  gate_of_[r] = &gate;
  side.loads.Change(place, 1);
  const std::int32_t index = side.nodes[static_cast<std::size_t>(place)];
  in_.replica.results.replica[r] = index;
  NodeAt(index).inbox.Send(request, time);
  Activate(index, time);
}

// Steps that it took.
std::int64_t Disaggregated::Run(std::int32_t index, TimeNs until, std::int64_t max_steps) {
  Node& node = NodeAt(index);
  const std::int64_t before = node.recorder.steps();
  node.inbox.AllowUntil(until);
  const bool idle = node.replica->Advance(max_steps);
  if (!idle) {
    active_.Push(index, node.by_former != nullptr ? node.replica->ready() : node.replica->now(),
                 index);
  } else if (Wakes(node) < horizon_) {
    active_.Push(index, std::max(Wakes(node), node.replica->now()), index);
  }
  Side& side = sides_[static_cast<std::size_t>(pools_[node.pool].role)];
  for (const Inbox::Timed& left : node.inbox.departures()) {
    side.departures.push_back({left.time, place_[static_cast<std::size_t>(index)], left.request,
                               gate_of_[static_cast<std::size_t>(left.request)]});
    std::push_heap(side.departures.begin(), side.departures.end(), Later);
  }
  node.inbox.departures().clear();
  Hear(node);
  return node.recorder.steps() - before;
}

// What a replica has to say to others.
void Disaggregated::Hear(Node& node) {
  for (const Inbox::Word& word : node.inbox.words()) {
    if (word.kind == Inbox::Word::Kind::kPrefilled) {
      prefilled_.push_back({word.time, word.request});
      std::push_heap(prefilled_.begin(), prefilled_.end(), LaterPrefill);
    } else if (word.kind == Inbox::Word::Kind::kReserved) {
      HandOver& hand_over = in_.replica.results.hand_overs[static_cast<std::size_t>(word.request)];
      hand_over.bytes = word.blocks * pools_[node.pool].block_bytes;
      link_.Start(word.request, hand_over.bytes, word.time);
    } else {
      Free(word.request, word.time);
    }
  }
  node.inbox.words().clear();
}

// The prefill side needs the request's blocks no more.
void Disaggregated::Free(RequestId request, TimeNs time) {
  const std::int32_t index =
      in_.replica.results.hand_overs[static_cast<std::size_t>(request)].prefill_replica;
  Node& node = NodeAt(index);
  if (node.by_former != nullptr) {
    node.by_former->FreeHandedOver(request, time);
  } else {
    node.by_vllm->FreeHandedOver(request, time);
  }
  Activate(index, time);
}

// Something comes to a replica that may sleep, or wait for a batch while another could be formed.
void Disaggregated::Activate(std::int32_t index, TimeNs time) {
  const Node& node = NodeAt(index);
  const bool active = active_.Has(index), by_former = node.by_former != nullptr;
  if (active && !by_former && !node.by_vllm->sleeps()) return;
  TimeNs at = by_former ? node.replica->ready() : node.replica->now();
  if (active) active_.Remove(index);
  if (!active || !by_former) at = std::max(time, at);
  active_.Push(index, at, index);
}

// When one that has nothing to do will have, if nothing comes; kNever.
TimeNs Disaggregated::Wakes(const Node& node) {
  if (node.by_former != nullptr) return node.by_former->Wakes();
  return node.by_vllm->sleeps() ? node.by_vllm->NextTimeout() : kNever;
}

}  // namespace servecast
