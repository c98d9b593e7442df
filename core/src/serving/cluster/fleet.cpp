#include "serving/cluster/fleet.h"

#include <algorithm>
#include <utility>

#include "serving/replica/scheduler_setup.h"

namespace servecast {
namespace {

void Add(const SchedulerCounts& one, SchedulerCounts& sum) {
  sum.prefill_tokens += one.prefill_tokens;
  sum.padding_tokens += one.padding_tokens;
  sum.gc_passes += one.gc_passes;
  sum.lost_victims += one.lost_victims;
  sum.verified_steps += one.verified_steps;
  sum.draft_tokens += one.draft_tokens;
  sum.accepted_tokens += one.accepted_tokens;
  sum.used_draft_tokens += one.used_draft_tokens;
  sum.encoded_images += one.encoded_images;
  sum.encode_ns += one.encode_ns;
  sum.image_hits += one.image_hits;
  sum.stage_busy_ns += one.stage_busy_ns;
  sum.walked += one.walked;
}

void Add(const KvOffloadReport& one, KvOffloadReport& sum) {
  sum.on |= one.on;
  for (std::size_t i = 0; i < kKvTiers; ++i) {
    sum.tiers[i].blocks += one.tiers[i].blocks;
    sum.tiers[i].hit_tokens += one.tiers[i].hit_tokens;
    sum.tiers[i].hit_blocks += one.tiers[i].hit_blocks;
    sum.tiers[i].loaded_blocks += one.tiers[i].loaded_blocks;
  }
  sum.offloaded_blocks += one.offloaded_blocks;
  sum.thrashed_blocks += one.thrashed_blocks;
  sum.transfer_ns += one.transfer_ns;
}

}  // namespace

class Fleet::Replaced final : public Engine {
 public:
  void Take(Engine& one, std::int64_t timed_out, std::int64_t lost) {
    now_ = std::max(now_, one.now());
    completed_ += one.completed();
    timed_out_ += one.timed_out() + timed_out;
    lost_ += lost;
    length_capped_ += one.length_capped();
    prefix_cache_.Add(one.prefix_cache());
    Add(one.counts(), counts_);
    KvOffloadReport offload = one.kv_offload();
    for (KvTierReport& tier : offload.tiers) tier.blocks = 0;  // its successor has as many
    Add(offload, kv_offload_);
  }

  bool Advance(std::int64_t) override { return true; }
  TimeNs now() const override { return now_; }
  std::int64_t running() const override { return 0; }
  std::int64_t queued() const override { return 0; }
  std::int64_t completed() const override { return completed_; }
  std::int64_t timed_out() const override { return timed_out_; }
  std::int64_t lost() const override { return lost_; }
  std::int64_t length_capped() const override { return length_capped_; }
  std::int64_t kv_blocks_used() const override { return 0; }
  const PrefixCacheReport& prefix_cache() override { return prefix_cache_; }
  SchedulerCounts counts() const override { return counts_; }
  KvOffloadReport kv_offload() const override { return kv_offload_; }
  void WriteProgress(std::vector<std::int32_t>&) const override {}

 private:
  TimeNs now_ = 0;
  std::int64_t completed_ = 0, timed_out_ = 0, lost_ = 0, length_capped_ = 0;
  PrefixCacheReport prefix_cache_;
  SchedulerCounts counts_;
  KvOffloadReport kv_offload_;
};

Fleet::Fleet(std::vector<FleetPool> pools, Clients& clients)
    : pools_(std::move(pools)), clients_of_all_(clients) {
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    for (std::int64_t i = 0; i < pools_[p].replicas; ++i) AddNode(p);
  }
}

std::int32_t Fleet::AddNode(std::size_t pool, TimeNs dies_at) {
  const ReplicaInput& each = pools_[pool].each;
  const auto place =
      std::count_if(nodes_.begin(), nodes_.end(),
                    [&](const std::unique_ptr<Node>& node) { return node->role == each.role; });
  const auto number = static_cast<std::int64_t>(nodes_.size());
  nodes_.push_back(
      std::make_unique<Node>(Node{.inbox = Inbox(clients_of_all_, each.requests, each.results, true,
                                                 each.role == PoolRole::kPrefill),
                                  .recorder = *each.recorder,
                                  .replica = nullptr,
                                  .pool = pool,
                                  .role = each.role,
                                  .place = static_cast<std::int32_t>(place)}));
  Node& node = *nodes_.back();
  node.replica = MakeFor(node, number, dies_at);
  return static_cast<std::int32_t>(number);
}

std::unique_ptr<Engine> Fleet::MakeFor(Node& node, std::int64_t number, TimeNs dies_at) const {
  ReplicaInput input = pools_[node.pool].each;
  input.inbox = &node.inbox;
  input.recorder = &node.recorder;
  input.number = number;
  input.one_of_many = true;
  input.dies_at = dies_at;
  return MakeReplica(input);
}

Gateway::Member Fleet::MemberAt(std::size_t index) const {
  const ReplicaInput& each = pools_[nodes_[index]->pool].each;
  return {.replica = nodes_[index]->replica.get(),
          .number = static_cast<std::int32_t>(index),
          .block_size = each.engine.block_size,
          .blocks = (each.pool_blocks - 1) * each.ranks,
          .caches_prefixes = each.setup.limits.caches_prefixes,
          .seats = each.engine.max_num_seqs * each.ranks};
}

void Fleet::Replace(std::int32_t index, TimeNs dies_at, std::int64_t timed_out, std::int64_t lost) {
  Node& node = NodeAt(index);
  if (replaced_ == nullptr) replaced_ = std::make_unique<Replaced>();
  static_cast<Replaced&>(*replaced_).Take(*node.replica, timed_out, lost);
  node.inbox.Reset();
  node.replica = MakeFor(node, index, dies_at);
}

std::vector<Engine*> Fleet::All() const {
  std::vector<Engine*> all;
  for (const auto& node : nodes_) all.push_back(node->replica.get());
  if (replaced_ != nullptr) all.push_back(replaced_.get());
  return all;
}

std::vector<Gateway::Member> Fleet::Members(PoolRole role) const {
  std::vector<Gateway::Member> members;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i]->role == role) members.push_back(MemberAt(i));
  }
  return members;
}

bool Fleet::Close() {
  for (const auto& node : nodes_) {
    node->inbox.AllowUntil(kNever);
    node->replica->Advance(1);
  }
  return true;
}

TimeNs Fleet::now() const {
  TimeNs latest = 0;
  for (const Engine* one : All()) latest = std::max(latest, one->now());
  return latest;
}

std::int64_t Fleet::Sum(std::int64_t (Engine::*figure)() const) const {
  std::int64_t sum = 0;
  for (const Engine* one : All()) sum += (one->*figure)();
  return sum;
}

std::vector<std::string_view> Fleet::departures() const {
  std::vector<std::string_view> all;
  for (const Engine* each : All()) {
    for (const std::string_view one : each->departures()) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
  }
  return all;
}

const PrefixCacheReport& Fleet::prefix_cache() {
  prefix_cache_ = {};
  for (Engine* one : All()) prefix_cache_.Add(one->prefix_cache());
  return prefix_cache_;
}

SchedulerCounts Fleet::counts() const {
  SchedulerCounts sum;
  for (const Engine* one : All()) Add(one->counts(), sum);
  return sum;
}

KvOffloadReport Fleet::kv_offload() const {
  KvOffloadReport sum;
  for (const Engine* one : All()) Add(one->kv_offload(), sum);
  return sum;
}

std::vector<ReplicaReport> Fleet::PerReplica(TimeNs end) const {
  const RequestTable& requests = any().requests;
  const RequestResults& results = any().results;
  const auto ranks = static_cast<std::size_t>(any().ranks);  // of a node, each a replica here
  std::vector<ReplicaReport> reports(nodes_.size() * ranks);
  std::vector<std::int64_t> first_tokens(reports.size(), 0);
  std::vector<double> ttft_ns(reports.size(), 0), outstanding_ns(reports.size(), 0);
  for (std::size_t r = 0; r < results.replica.size(); ++r) {
    if (results.ReplicaOf(r) < 0) continue;
    const auto i = static_cast<std::size_t>(results.ReplicaOf(r));
    TimeNs over = results.completion[r] >= 0 ? results.completion[r] : end;
    if (results.state[r] == RequestState::kTimedOut) {
      over = std::min(over, requests.arrival[r] + requests.timeout[r]);
    }
    if (results.state[r] == RequestState::kLost) over = results.lost_at[r];
    ++reports[i].requests;
    TimeNs from = results.enqueue[r];
    if (results.EncodedApart(r)) {
      const Encoding& e = results.encodings[r];
      const auto before = static_cast<std::size_t>(e.replica);
      reports[before].requests += before == i ? 0 : 1;
      outstanding_ns[before] += static_cast<double>(std::min(e.encoded, end) - from);
      if (before == i) continue;
      from = std::min(e.arrived, end);
    }
    if (results.HandedOver(r)) {
      const HandOver& h = results.hand_overs[r];
      const auto before = static_cast<std::size_t>(h.prefill_replica);
      reports[before].requests += before == i ? 0 : 1;
      outstanding_ns[before] += static_cast<double>(std::min(h.prefilled, end) - from);
      from = std::min(h.prefilled, end);
    }
    outstanding_ns[i] += static_cast<double>(std::max(std::min(over, end), from) - from);
    if (results.first_token[r] < 0) continue;
    ++first_tokens[i];
    ttft_ns[i] += static_cast<double>(results.first_token[r] - requests.arrival[r]);
  }
  const auto all = static_cast<double>(std::max<TimeNs>(end, 1));
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const Node& node = *nodes_[i / ranks];
    const Recorder& recorder = node.recorder;
    // Ranks in lock step are busy together.
    reports[i].busy_share =
        static_cast<double>(recorder.busy_ns() / static_cast<TimeNs>(ranks)) / all;
    reports[i].mean_outstanding = outstanding_ns[i] / all;
    if (node.role != PoolRole::kEncode) {
      reports[i].kv_peak_usage = static_cast<double>(recorder.peak_kv_blocks()) /
                                 static_cast<double>(pools_[node.pool].each.pool_blocks - 1);
    }
    if (first_tokens[i] > 0) {
      reports[i].ttft_mean_ms = ttft_ns[i] / static_cast<double>(first_tokens[i]) / 1e6;
    }
  }
  return reports;
}

void Fleet::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (const auto& node : nodes_) node->replica->WriteProgress(generated);
}

void Fleet::WriteRecords(TimeNs end, Recorder& recorder) const {
  for (const auto& node : nodes_) recorder.Add(node->recorder, end);
}

void Fleet::WritePoolRecords(TimeNs end, std::int64_t pool, Recorder& recorder) const {
  for (const auto& node : nodes_) {
    if (node->pool == static_cast<std::size_t>(pool)) recorder.Add(node->recorder, end);
  }
}

}  // namespace servecast
