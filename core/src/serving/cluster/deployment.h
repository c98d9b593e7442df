// What a scenario runs: one or more pools of equal replicas, resolved once. A single pool is a list
// of one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cost/model_cost.h"
#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "serving/kv/kv_tiers.h"
#include "serving/policy.h"
#include "serving/replica/pipeline.h"
#include "serving/replica/replica.h"
#include "serving/replica/scheduler_setup.h"

namespace servecast {

struct Pool {
  Scenario scenario;  // as it is for this pool alone
  ModelCost cost;
  std::shared_ptr<const LatencyModel> latency;  // pure, so deployments may share it
  std::vector<PipelineStage> stages;            // empty: one, which `latency` prices
  std::vector<KvTier> kv_tiers;                 // none: nothing is offloaded
  std::unique_ptr<SchedulerSetup> setup;        // nullptr: not set up yet
  // Of a KV block as its scheduler counts them, on all GPUs of a replica together.
  std::int64_t block_bytes = 0;

  const PoolSpec& spec() const { return scenario.cluster.pool(); }
};

struct Deployment {
  std::vector<Pool> pools;                 // one at least
  std::int64_t max_model_len = INT64_MAX;  // so that any replica can serve any request
  LatencyLabel label;  // of each pool by its own GPU, engine and step times, each text once

  bool AllHave(Feature feature) const;  // of the pools' schedulers
  // Once the requests are known: some are told the longest output of them.
  void SetUpSchedulers(const RequestTable& requests);
};

// With several pools, an issue names its pool. A label takes longer than the rest; who reads no
// report of it can do without.
Result<Deployment> Deploy(const Scenario& scenario, bool labelled = true);

// The same for a scenario that differs from that of `like` in replicas, load and seed only: step
// times, which may take milliseconds to compose, are shared.
Deployment Redeploy(const Deployment& like, const Scenario& scenario);

}  // namespace servecast
