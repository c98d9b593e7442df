// See hybrid_cases.h. The step time is that of the golden traces, and so much more for each image.
#include "testing/hybrid_cases.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cost/model_cost.h"
#include "fmt/format.h"
#include "testing/dice.h"
#include "testing/engine_run.h"
#include "testing/vllm_golden.h"
#include "testing/vllm_hybrid_reference.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

struct HybridCase {
  RequestTable requests;
  std::vector<std::int64_t> groups, prefixes, parents;
  ModelSpec model;
  EngineSpec engine;
  SchedulerSpec scheduler;
  std::int64_t most_image_tokens = 0, image_ms = 0;

  EngineCase ForEngine() const {
    EngineCase made = {requests, engine, scheduler, *engine.max_model_len, std::nullopt};
    made.model = model;
    made.most_image_tokens = most_image_tokens;
    return made;
  }
};

class LatencyWithImages final : public GoldenLatency {
 public:
  explicit LatencyWithImages(std::int64_t image_ms) : image_ms_(image_ms) {}
  StepPrice Price(const BatchShape& shape) const override {
    StepPrice price = GoldenLatency::Price(shape);
    price.duration += shape.images * image_ms_ * kNsPerMs;
    return price;
  }

 private:
  std::int64_t image_ms_;
};

ModelSpec MakeModel(Dice& dice) {
  ModelSpec m;
  m.name = "layers";
  m.hidden_size = 128;
  m.intermediate_size = 256;
  m.vocab_size = 1000;
  m.num_attention_heads = m.num_key_value_heads = 2;
  m.head_dim = 64;
  const std::vector<std::string> kinds = dice.Pick<std::vector<std::string>>(
      {{"sliding"}, {"chunked"}, {"gated_delta"}, {"gated_delta"}, {"sliding", "gated_delta"}});
  for (const std::string& kind : kinds) {
    LayerSpec layer;
    layer.kind = kind;
    layer.count = dice.Between(1, 3);
    if (kind == "gated_delta") {
      layer.state_heads = layer.state_key_heads = 2;
      layer.state_key_dim = layer.state_value_dim = dice.Pick({16, 48, 64});
      layer.conv_kernel = 4;
    } else {
      layer.window = dice.Pick({20, 48, 100, 250});
    }
    m.layers.push_back(layer);
  }
  // Of chunks alone a prompt is hit where it has nothing in common with any (B6): no model is so.
  if (dice.Percent(90) || kinds[0] == "chunked")
    m.layers.push_back({.kind = "full", .count = dice.Between(1, 2)});
  for (const LayerSpec& layer : m.layers) m.num_hidden_layers += layer.count;
  return m;
}

// Images none over another, from `at` on; the same one can be there twice.
void AddImages(Dice& dice, std::int64_t at, std::int64_t end, std::int64_t often,
               const std::vector<PromptImage>& sizes, std::vector<PromptImage>& images) {
  while (dice.Percent(often)) {
    at += dice.Percent(50) ? 0 : dice.Between(0, 40);
    PromptImage image = sizes[static_cast<std::size_t>(
        dice.Between(0, static_cast<std::int64_t>(sizes.size()) - 1))];
    if (at + image.tokens > end) return;
    image.offset = static_cast<std::int32_t>(at);
    images.push_back(image);
    at = image.end();
  }
}

std::vector<PromptImage> MakeSizes(Dice& dice, HybridCase& made) {
  const std::int64_t longest = dice.Pick({3, 12, 40, 150});
  const bool breaks = dice.Percent(20);
  std::vector<PromptImage> sizes(static_cast<std::size_t>(dice.Pick({2, 8, 60})));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    PromptImage& size = sizes[i];
    size.content = static_cast<std::int64_t>(i);
    size.tokens = static_cast<std::int32_t>(dice.Between(1, longest));
    if (breaks && size.tokens > 1) size.row_break = static_cast<std::int32_t>(dice.Between(2, 5));
    size.embeds = size.tokens - (size.row_break > 0 ? size.tokens / size.row_break : 0);
    made.most_image_tokens = std::max<std::int64_t>(made.most_image_tokens, size.embeds);
  }
  return sizes;
}

// Some begin alike, some are the next turn of one before them.
void MakeRequests(Dice& dice, HybridCase& made) {
  RequestTable& t = made.requests;
  const std::int64_t longest = *made.engine.max_model_len, count = dice.Between(5, 40);
  const std::int64_t often = dice.Pick({0, 50, 70, 90}), chats = dice.Pick({0, 30, 60});
  const std::vector<PromptImage> sizes = MakeSizes(dice, made);
  const std::int64_t prefixes = dice.Between(0, 2), gap_ns = dice.Pick({3, 30, 200}) * kNsPerMs;
  std::vector<std::vector<PromptImage>> alike(static_cast<std::size_t>(prefixes));
  std::vector<std::int64_t> alike_tokens;
  for (auto& images : alike) {
    alike_tokens.push_back(dice.Between(1, longest / 3));
    AddImages(dice, 0, alike_tokens.back(), often, sizes, images);
  }
  t.segments.resize(static_cast<std::size_t>(prefixes));
  std::vector<std::vector<PromptImage>> images(static_cast<std::size_t>(count));
  std::vector<bool> followed(static_cast<std::size_t>(count), false);
  TimeNs now = 0;
  for (std::int64_t r = 0; r < count; ++r) {
    now += 1 + dice.Between(0, gap_ns);
    std::int64_t group = -1, prefix = 0, parent = r > 0 && dice.Percent(chats) ? r - 1 : -1;
    if (parent >= 0) parent = dice.Between(0, parent);
    const auto p = static_cast<std::size_t>(std::max<std::int64_t>(parent, 0));
    if (parent >= 0 && !followed[p] && t.prompt_tokens[p] + t.output_tokens[p] < longest / 2) {
      prefix = t.prompt_tokens[p] + t.output_tokens[p];
      images[static_cast<std::size_t>(r)] = images[p];
      t.content.push_back(t.content[p]);
      followed[p] = true;
    } else {
      parent = -1;
      ContentSegment segment;
      if (prefixes > 0 && dice.Percent(50)) {
        group = dice.Between(0, prefixes - 1);
        const auto g = static_cast<std::size_t>(group);
        prefix = alike_tokens[g];
        segment = {static_cast<std::int32_t>(group), static_cast<std::int32_t>(prefix)};
        images[static_cast<std::size_t>(r)] = alike[g];
      }
      t.content.push_back(static_cast<std::int32_t>(t.segments.size()));
      t.segments.push_back(segment);
    }
    const std::int64_t prompt = prefix + dice.Between(1, longest / 3);
    AddImages(dice, prefix, prompt, often, sizes, images[static_cast<std::size_t>(r)]);
    t.arrival.push_back(now);
    t.prompt_tokens.push_back(static_cast<std::int32_t>(prompt));
    t.output_tokens.push_back(static_cast<std::int32_t>(dice.Between(1, dice.Pick({3, 40, 150}))));
    t.priority.push_back(static_cast<std::int32_t>(dice.Between(0, 2)));
    made.groups.push_back(group);
    made.prefixes.push_back(prefix);
    made.parents.push_back(parent);
  }
  if (often == 0) {
    made.most_image_tokens = 0;
    return;
  }
  for (const auto& each : images) {
    t.images.insert(t.images.end(), each.begin(), each.end());
    t.images_until.push_back(static_cast<std::int64_t>(t.images.size()));
  }
}

void MakeEngine(Dice& dice, HybridCase& made) {
  EngineSpec& e = made.engine;
  e.max_model_len = dice.Pick({300, 700});
  e.max_num_seqs = dice.Between(2, 12);
  e.max_num_batched_tokens = e.max_num_seqs + dice.Pick({5, 20, 40, 200, 800});
  e.enable_prefix_caching = dice.Percent(80);
  e.async_scheduling = dice.Percent(50);
  e.enable_chunked_prefill = true;
  e.long_prefill_token_threshold = dice.Percent(40) ? dice.Between(5, 60) : 0;
  e.scheduler_reserve_full_isl = dice.Percent(50);
  e.disable_chunked_mm_input = dice.Percent(20);
  e.frees_states_across_gaps = dice.Percent(50);
  e.hybrid_kv_cache_manager = HybridKvManager::kOn;
  if (dice.Percent(45)) made.scheduler.order = "priority_fcfs";
}

// As a case of the manifest has them.
Json SettingsOf(const HybridCase& made, const KvPlan& plan) {
  const EngineSpec& e = made.engine;
  Json groups = Json::array(), caps = Json::array(), classes = Json::array();
  for (std::size_t i = 0; i < plan.groups.groups.size(); ++i) {
    const KvGroup& g = plan.groups.groups[i];
    Json group = {{"kind", "full_attention"}, {"block_size", g.block_size}};
    if (g.kind == KvKind::kSliding) {
      group.update({{"kind", "sliding_window"}, {"sliding_window", g.window}});
    } else if (g.kind == KvKind::kChunked) {
      group.update({{"kind", "chunked_local_attention"}, {"attention_chunk_size", g.window}});
    } else if (g.kind == KvKind::kState) {
      const char* mode = g.mode == StateMode::kAlign ? "align" : "none";
      group.update({{"kind", "mamba"}, {"mamba_cache_mode", mode}});
    }
    groups.push_back(group);
    const std::optional<std::int64_t> cap = g.Cap(plan.rules);
    caps.push_back(cap ? Json(*cap) : Json());
    classes.push_back({i});
  }
  const std::int64_t encoder = std::max(e.max_num_batched_tokens, made.most_image_tokens);
  return {{"max_num_batched_tokens", e.max_num_batched_tokens},
          {"max_num_seqs", e.max_num_seqs},
          {"max_model_len", *e.max_model_len},
          {"long_prefill_token_threshold", e.long_prefill_token_threshold},
          {"num_blocks", *e.num_gpu_blocks_override},
          {"enable_prefix_caching", e.enable_prefix_caching},
          {"async_scheduling", e.async_scheduling},
          {"policy", made.scheduler.order == "priority_fcfs" ? "priority" : "fcfs"},
          {"enable_chunked_prefill", e.enable_chunked_prefill},
          {"scheduler_reserve_full_isl", e.scheduler_reserve_full_isl},
          {"watermark", 0.0},
          {"disable_chunked_mm_input", e.disable_chunked_mm_input},
          {"encoder_compute_budget", made.most_image_tokens > 0 ? encoder : 0},
          {"encoder_cache_slots", encoder},
          {"spec_classes", classes},
          {"groups", groups},
          {"admission_cap_blocks", caps},
          {"scheduler_block_size", plan.groups.scheduler_block},
          {"hash_block_size", plan.groups.hash_block},
          {"cache_block_size", plan.groups.cache_block},
          {"frees_states_across_gaps", e.frees_states_across_gaps},
          {"image_ms", static_cast<double>(made.image_ms)}};
}

template <class Items, class Show>
std::string Joined(const Items& items, Show show) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : " ") + show(item);
  return text;
}

// A step of the engine's, as the rows have it.
std::map<std::string, std::string> RowOf(const StepRecord& step) {
  const auto members = [&](auto show) { return Joined(step.members, show); };
  const auto id = [](RequestId request) { return std::to_string(request); };
  return {{"scheduled",
           members([](const StepMember& m) { return fmt::format("{}:{}", m.id, m.tokens); })},
          {"kind",
           members([](const StepMember& m) { return std::string(1, static_cast<char>(m.kind)); })},
          {"computed_before",
           members([](const StepMember& m) { return std::to_string(m.computed_before); })},
          {"sampled", members([](const StepMember& m) { return std::to_string(m.sampled); })},
          {"preempted", Joined(step.preempted, id)},
          {"finished", Joined(step.finished, id)},
          {"free_after_schedule", std::to_string(step.free_after_schedule)},
          {"free_after_step", std::to_string(step.free_after_step)},
          {"running_after_step", std::to_string(step.running_after_step)},
          {"waiting_after_step", std::to_string(step.waiting_after_step)},
          {"start_s", fmt::format("{:.7f}", static_cast<double>(step.start) * 1e-9)},
          {"end_s", fmt::format("{:.7f}", static_cast<double>(step.end) * 1e-9)}};
}

// Without those that an earlier call preempted, which made no step.
std::string WithoutMarked(const std::string& ids) {
  std::string text;
  for (std::size_t at = 0; at < ids.size();) {
    const std::size_t end = std::min(ids.find(' ', at), ids.size());
    const std::string id = ids.substr(at, end - at);
    if (id.back() != '*') text += (text.empty() ? "" : " ") + id;
    at = end + 1;
  }
  return text;
}

std::string Difference(const ReplayRun& expected, const std::vector<StepRecord>& steps) {
  for (std::size_t i = 0; i < std::min(expected.rows.size(), steps.size()); ++i) {
    for (const auto& [column, found] : RowOf(steps[i])) {
      std::string wanted = expected.rows[i].at(column);
      if (column == "preempted") wanted = WithoutMarked(wanted);
      // Both round, the engine exact nanoseconds.
      const bool time = column.substr(column.size() - 2) == "_s";
      if (time ? std::abs(std::stod(wanted) - std::stod(found)) < 1e-6 : wanted == found) continue;
      return fmt::format("step {}: {}: expected {}, found {}", i, column, wanted, found);
    }
  }
  if (expected.rows.size() == steps.size()) return "";
  return fmt::format("expected {} steps, found {}", expected.rows.size(), steps.size());
}

void Count(const ReplayRun& run, const HybridCase& made, HybridCoverage& seen) {
  ++seen.cases;
  seen.steps += static_cast<std::int64_t>(run.rows.size());
  seen.preemptions += run.preemptions;
  seen.evicted += run.evicted;
  seen.hit_tokens += run.hit_tokens;
  seen.encoded_images += run.encoded;
  seen.image_hits += run.image_hits;
  seen.images_evicted += run.images_evicted;
  seen.cut_before_images += run.cut_before_images;
  seen.waits_for_encoder += run.waits_for_encoder;
  seen.refused_by_encoder += run.refused_by_encoder;
  seen.unencoded_victims += run.unencoded_victims;
  seen.hangs += run.hangs ? 1 : 0;
  for (const LayerSpec& layer : made.model.layers) {
    seen.windows += layer.kind == "sliding" ? 1 : 0;
    seen.chunks += layer.kind == "chunked" ? 1 : 0;
    seen.states += layer.kind == "gated_delta" ? 1 : 0;
  }
}

}  // namespace

std::optional<std::string> HybridDifference(std::uint64_t seed, HybridCoverage* seen) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 47);
  HybridCase made;
  MakeEngine(dice, made);
  made.model = MakeModel(dice);
  made.model.max_position_embeddings = *made.engine.max_model_len;
  MakeRequests(dice, made);
  made.image_ms = dice.Pick({0, 1, 30});
  made.engine.num_gpu_blocks_override = 100'000;
  const Result<ModelCost> roomy = ComputeModelCost(MakeScenario(made.ForEngine()));
  if (!roomy.ok()) return fmt::format("seed {}: {}", seed, roomy.issues()[0].message);
  const KvPlan& plan = *roomy.value().kv_plan;
  made.engine.num_gpu_blocks_override =
      1 + plan.groups.Planned(*made.engine.max_model_len, plan.rules) * dice.Pick({2, 3, 6}) / 2;
  const Json settings = SettingsOf(made, plan);
  const ReplayRun expected =
      ReplayHybrid({settings, made.requests, made.groups, made.prefixes, made.parents});
  const Result<EngineRun> run =
      RunEngine(made.ForEngine(), std::make_unique<LatencyWithImages>(made.image_ms), {});
  if (!run.ok()) return fmt::format("seed {}: {}", seed, run.issues()[0].message);
  if (seen != nullptr) Count(expected, made, *seen);
  std::string difference = Difference(expected, run.value().steps);
  const std::int64_t encoded = run.value().report.counts.encoded_images;
  if (difference.empty() && encoded != expected.encoded) {
    difference = fmt::format("expected {} images encoded, found {}", expected.encoded, encoded);
  }
  if (difference.empty()) return std::nullopt;
  std::string requests;
  for (std::size_t r = 0; r < made.groups.size(); ++r) {
    const RequestTable& t = made.requests;
    requests += fmt::format("\n{}: arrival {} prompt {} output {} group {} prefix {} parent {}", r,
                            t.arrival[r], t.prompt_tokens[r], t.output_tokens[r], made.groups[r],
                            made.prefixes[r], made.parents[r]);
    for (const PromptImage& image : t.ImagesOf(static_cast<RequestId>(r))) {
      requests += fmt::format(", image {} at {} of {} ({})", image.content, image.offset,
                              image.tokens, image.embeds);
    }
  }
  return fmt::format("seed {}: {}\n{}{}", seed, difference, settings.dump(), requests);
}

}  // namespace servecast::testing
