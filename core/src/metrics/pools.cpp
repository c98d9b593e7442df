// What a report says of each of several pools, and of the KV that travels between them.
#include <algorithm>

#include "metrics/latencies.h"
#include "metrics/samples.h"
#include "metrics/summarize.h"
#include "metrics/work.h"

namespace servecast {
namespace {

double Number(std::int64_t n) { return static_cast<double>(n); }

std::vector<std::int64_t> RequestsByPool(const RunView& run) {
  std::vector<std::int64_t> requests(run.pools.size(), 0);
  const auto count = [&](std::int32_t replica) {
    if (replica >= 0) ++requests[run.pool_of[static_cast<std::size_t>(replica)]];
  };
  for (std::size_t r = 0; r < run.results.replica.size(); ++r) {
    count(run.results.ReplicaOf(r));
    if (run.results.EncodedApart(r)) {
      const std::int32_t encoder = run.results.encodings[r].replica;
      if (encoder != run.results.replica[r]) count(encoder);
    }
    if (!run.results.HandedOver(r)) continue;
    const HandOver& h = run.results.hand_overs[r];
    if (h.prefill_replica != run.results.replica[r]) count(h.prefill_replica);
  }
  return requests;
}

PoolReport ReportOf(const RunView& run, std::size_t number) {
  const PoolRun& pool = run.pools[number];
  const TimeNs end = run.end;
  const PoolSpec& spec = pool.spec();
  const HardwareSpec& hardware = pool.scenario.hardware;
  const Recorder& recorder = pool.recorder;
  PoolReport r;
  r.name = spec.name;
  r.gpu = hardware.name;
  r.role = spec.role;
  r.replicas = spec.replicas;
  r.mean_replicas = MeanReplicas(run, number, 0, end);
  r.tensor_parallel = spec.tensor_parallel;
  r.stages = spec.pipeline_parallel;
  r.gpus = spec.Gpus();
  r.steps = recorder.steps();
  r.output_tokens = recorder.output_tokens();
  r.preemptions = recorder.preemptions();
  r.kv_tokens = pool.cost.kv_tokens;
  r.kv_peak_usage = Number(recorder.peak_kv_blocks()) / Number(pool.cost.usable_blocks);
  const double kv_tokens = Number(pool.cost.usable_blocks * pool.scenario.engine.block_size);
  r.kv_peak_fragmentation = Number(recorder.peak_kv_unused()) / kv_tokens;
  r.allocation_failures = recorder.blocks_refused();
  if (hardware.price_per_gpu_hour) r.cost_per_hour = *hardware.price_per_gpu_hour * Number(r.gpus);
  if (end <= 0) return r;
  const double all = Number(end) * r.mean_replicas;
  r.busy_share = Number(recorder.busy_ns()) / all;
  r.blocked_share =
      Number(recorder.blocked_ns(BlockedBy::kKvBlocks) + recorder.blocked_ns(BlockedBy::kSeats) +
             recorder.blocked_ns(BlockedBy::kTokenBudget)) /
      all;
  r.compute_share = Number(recorder.bound_ns(StepBound::kCompute)) / all;
  TimeNs width = 0;
  WideInt kv = 0;
  Work work;
  for (const SeriesBin& bin : recorder.BinsUpTo(end, &width)) {
    kv += bin.kv_blocks;
    work.Add(bin.work);
  }
  r.kv_mean_usage = static_cast<double>(kv) / all / Number(pool.cost.usable_blocks);
  r.kv_mean_fragmentation = static_cast<double>(recorder.kv_unused()) / all / kv_tokens;
  const double gpu_seconds = all / 1e9 * Number(r.stages);
  const PeakUse use = UseOf(work, r.output_tokens, gpu_seconds, pool.cost, hardware);
  r.mfu = use.mfu;
  r.bandwidth_use = use.bandwidth;
  return r;
}

// The sums over pools.
void PutScaling(const RunView& run, Report& report) {
  ScalingReport& all = report.scaling;
  if (!all.on) return;
  all.cost = 0;
  for (std::size_t p = 0; p < run.pools.size(); ++p) {
    ScalingReport& own = all.pools[p];
    PutGpus(run.pools[p], run.end, own);
    all.mean_gpus += own.mean_gpus;
    all.gpu_hours += own.gpu_hours;
    all.cost = all.cost && own.cost ? std::optional(*all.cost + *own.cost) : std::nullopt;
    const auto& price = run.pools[p].scenario.hardware.price_per_gpu_hour;
    if (price) report.pools[p].cost_per_hour = *price * own.mean_gpus;
  }
}

// `start`: when one sets out.
template <class Transfer>
void PutTransfers(const std::vector<Transfer>& transfers, TimeNs Transfer::*start,
                  TransferReport& report) {
  report.on = true;
  std::vector<double> ms;
  for (const Transfer& one : transfers) {
    if (one.arrived < 0) continue;
    report.bytes += one.bytes;
    ms.push_back(Number(one.arrived - one.*start) / 1e6);
    report.mean_ms += ms.back();
  }
  report.transfers = static_cast<std::int64_t>(ms.size());
  if (ms.empty()) return;
  report.mean_ms /= Number(report.transfers);
  SortValues(ms);
  report.p99_ms = Percentile(ms, 99);
}

}  // namespace

void ReportPools(const RunView& run, Report& report) {
  const std::vector<std::int64_t> requests = RequestsByPool(run);
  for (std::size_t p = 0; p < run.pools.size(); ++p) {
    report.pools.push_back(ReportOf(run, p));
    report.pools.back().requests = requests[p];
  }
  PutScaling(run, report);
  if (!run.results.encodings.empty()) {
    PutTransfers(run.results.encodings, &Encoding::encoded, report.images.embeddings);
  }
  if (run.results.hand_overs.empty()) return;
  KvTransferReport& transfer = report.kv_transfer;
  transfer.first_token_from_decode = run.scenario.cluster.disaggregation.first_token_from_decode;
  PutTransfers(run.results.hand_overs, &HandOver::reserved, transfer);
}

// Mean use of KV blocks, seats or tokens, whichever is scarcest in a pool, where it is highest.
double PoolsScarcestUse(const RunView& run, std::size_t first_bin, std::size_t last_bin) {
  double scarcest = 0;
  for (std::size_t p = 0; p < run.pools.size(); ++p) {
    const PoolRun& pool = run.pools[p];
    TimeNs width = 0;
    const std::vector<SeriesBin> bins = pool.recorder.BinsUpTo(run.end, &width);
    SeriesBin sum;
    for (std::size_t b = first_bin; b < std::min(last_bin, bins.size()); ++b) sum.Add(bins[b]);
    const EngineSpec& engine = pool.scenario.engine;
    const double time = Number(width) * Number(static_cast<std::int64_t>(last_bin - first_bin)) *
                        MeanReplicas(run, p, width * static_cast<TimeNs>(first_bin),
                                     width * static_cast<TimeNs>(last_bin));
    if (time <= 0) continue;
    scarcest = std::max(
        {scarcest, static_cast<double>(sum.kv_blocks) / time / Number(pool.cost.usable_blocks),
         static_cast<double>(sum.running) / time / Number(engine.max_num_seqs),
         static_cast<double>(sum.batch_tokens) / time / Number(engine.max_num_batched_tokens)});
  }
  return scarcest;
}

}  // namespace servecast
