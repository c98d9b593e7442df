// See scheduler_setup.h.
#include "serving/replica/scheduler_setup.h"

#include <algorithm>

#include "cost/model_bytes.h"
#include "cost/vidur_planner.h"

namespace servecast {
namespace {

SchedulerLimits LimitsOf(const Scenario& s, const ModelCost& cost, const SchedulerEntry& entry,
                         std::int64_t max_model_len) {
  const EngineSpec& e = s.engine;
  const std::int64_t unit = entry.counts_tokens ? e.block_size : 1;
  SchedulerLimits limits;
  limits.max_num_seqs = e.max_num_seqs;
  limits.stages = s.cluster.pool().pipeline_parallel;
  if (entry.overlaps && e.async_scheduling) limits.stages = 2;
  limits.max_num_batched_tokens = e.max_num_batched_tokens;
  limits.block_size = e.block_size / unit;
  limits.blocks = cost.usable_blocks * unit;
  limits.watermark_blocks =
      static_cast<std::int64_t>(e.watermark * static_cast<double>(cost.pool_blocks * unit));
  limits.max_model_len = max_model_len;
  limits.as_vidur = e.compat == Compat::kVidur;
  limits.caches_prefixes =
      e.enable_prefix_caching && entry.no_prefix_caching.empty() && !limits.as_vidur;
  if (limits.as_vidur) {
    const std::int64_t slots = VidurPlanOf(s).slots;
    limits.max_reserved = std::max<std::int64_t>(1, slots) * limits.stages;
  }
  return limits;
}

std::vector<std::string_view> DeparturesOf(const Scenario& s, const SchedulerEntry& entry) {
  const EngineSpec& e = s.engine;
  const bool vidur = e.compat == Compat::kVidur;
  const std::pair<bool, std::string_view> all[] = {
      {!entry.departure.empty(), entry.departure},
      {e.enable_prefix_caching && vidur, "prefix caching: none, as Vidur has none"},
      {e.enable_prefix_caching && !vidur && !entry.no_prefix_caching.empty(),
       entry.no_prefix_caching},
      {e.async_scheduling && !entry.overlaps,
       "scheduling: always synchronous: a batch is formed when one has ended"},
      {e.enable_chunked_prefill && !entry.splits_prompts,
       "chunked prefill: this scheduler computes each prompt in one batch"},
      {vidur,
       "preemption: a decode asks for a spare KV block although its last has room, and a "
       "prompt that is preempted in the middle is cut there, the rest counts as output"},
      {vidur,
       "KV memory: planned in whole requests of the greatest length, without embedding, LM "
       "head and activations"},
      {vidur, "least_outstanding: counts who waits, not who runs"},
      {vidur,
       "queue: its head may wait for ever, as the watermark holds for the only request, too"},
  };
  std::vector<std::string_view> departures;
  for (const auto& [applies, sentence] : all) {
    if (applies) departures.push_back(sentence);
  }
  return departures;
}

// SGLANG_VLM_CACHE_SIZE_MB is 100 unless it is set.
std::int64_t KeptEmbeds(const ModelSpec& model) {
  constexpr std::int64_t kBytes = std::int64_t{100} << 20;
  return kBytes / std::max<std::int64_t>(EmbedBytes(model), 1);
}

}  // namespace

std::unique_ptr<SchedulerSetup> MakeSchedulerSetup(const Scenario& scenario, const ModelCost& cost,
                                                   std::int64_t max_model_len,
                                                   const RequestTable& requests) {
  auto made = std::make_unique<SchedulerSetup>();
  SchedulerSetup& setup = *made;
  setup.entry = &FindScheduler(scenario.scheduler.policy);
  setup.limits = LimitsOf(scenario, cost, *setup.entry, max_model_len);
  setup.report_block = setup.entry->counts_tokens ? scenario.engine.block_size : 1;
  for (const std::int32_t output : requests.output_tokens) {
    setup.declared_output = std::max<std::int64_t>(setup.declared_output, output);
  }
  setup.departures = DeparturesOf(scenario, *setup.entry);
  setup.kept_embeds = KeptEmbeds(scenario.model);
  return made;
}

}  // namespace servecast
