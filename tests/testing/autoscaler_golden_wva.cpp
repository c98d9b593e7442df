// The recordings of llm-d's Workload Variant Autoscaler.
#include <array>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "serving/scaling/wva.h"
#include "testing/autoscaler_golden.h"
#include "testing/autoscaler_rows.h"
#include "testing/csv_table.h"

namespace servecast::testing {
namespace {

// "--name=value", or "--name" and then a value.
WvaArguments ArgumentsOf(const Json& list) {
  std::map<std::string, std::string> given;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string word = list[i].get<std::string>();
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      given[word.substr(0, equals)] = word.substr(equals + 1);
    } else if (i + 1 < list.size()) {
      given[word] = list[++i].get<std::string>();
    }
  }
  const auto number = [&](const char* name) -> std::optional<std::int64_t> {
    if (given.count(name) == 0) return std::nullopt;
    return IntOf(given[name]);
  };
  WvaArguments arguments;
  arguments.max_num_batched_tokens = number("--max-num-batched-tokens");
  arguments.max_num_seqs = number("--max-num-seqs");
  arguments.num_gpu_blocks_override = number("--num-gpu-blocks-override");
  arguments.tensor_parallel = number("--tensor-parallel-size").value_or(1);
  arguments.gpu_memory_utilization = given["--gpu-memory-utilization"];
  arguments.block_size = given["--block-size"];
  arguments.kv_cache_dtype = given["--kv-cache-dtype"];
  return arguments;
}

struct Model {
  std::vector<WvaVariant> variants;
  std::map<std::string, std::size_t> number;
  std::optional<Wva> scaler;
};

WvaSpec SpecOf(const Json& json) {
  WvaSpec spec;
  spec.tokens = TextIn(json, "analyzer") == "v2";
  spec.kv_threshold = RealIn(json, "kvCacheThreshold");
  spec.queue_threshold = RealIn(json, "queueLengthThreshold");
  spec.kv_spare = RealIn(json, "kvSpareTrigger", spec.kv_spare);
  spec.queue_spare = RealIn(json, "queueSpareTrigger", spec.queue_spare);
  spec.scale_up = RealIn(json, "scaleUpThreshold", spec.scale_up);
  spec.scale_down_boundary = RealIn(json, "scaleDownBoundary", spec.scale_down_boundary);
  spec.scale_to_zero = BoolIn(json, "scale_to_zero");
  return spec;
}

std::map<std::string, Model> ModelsOf(const Json& json) {
  std::map<std::string, Model> models;
  for (const Json& one : In(json, "variants")) {
    Model& model = models[TextIn(one, "model")];
    model.number[TextIn(one, "name")] = model.variants.size();
    model.variants.push_back(
        {TextIn(one, "name"), TextIn(one, "accelerator"), RealIn(one, "cost"),
         IntIn(one, "gpus_per_replica"),
         one.contains("vllm_args") ? ArgumentsOf(In(one, "vllm_args")) : WvaArguments{}});
  }
  for (auto& [name, model] : models) model.scaler.emplace(SpecOf(json), model.variants);
  return models;
}

std::size_t Number(const Model& model, const std::string& name) {
  const auto at = model.number.find(name);
  if (at != model.number.end()) return at->second;
  Bad("unknown variant " + name);
  return 0;
}

// What a row says that a tick sees.
struct Seen {
  std::vector<WvaDeployment> deployments;
  std::vector<std::size_t> order;  // of variants in the row
  std::vector<WvaReplica> replicas;
  std::optional<WvaSchedulerQueue> queue;
  std::int64_t retained = -1;
};

WvaReplica ReplicaOf(const Model& model, const std::string& text) {
  const std::vector<std::string> parts = Split(text, ':');
  WvaReplica replica;
  if (parts.size() != 3 && parts.size() != 8) {
    Bad("unknown replica " + text);
    return replica;
  }
  replica.variant = Number(model, parts[0]);
  replica.kv_usage = RealOf(parts[1]);
  replica.queue = IntOf(parts[2]);
  if (parts.size() == 3) return replica;
  replica.kv_tokens = IntOf(parts[3]);
  replica.tokens_in_use = IntOf(parts[4]);
  replica.mean_input = RealOf(parts[5]);
  replica.mean_output = RealOf(parts[6]);
  replica.prefix_hit_rate = RealOf(parts[7]);
  return replica;
}

Seen SeenOf(const Model& model, const ScalerRows& rows, std::size_t row) {
  Seen seen;
  seen.deployments.resize(model.variants.size());
  for (const std::string& one : Items(rows.Text(row, "variants"))) {
    const std::vector<std::string> parts = Split(one, ':');
    if (parts.size() != 4) {
      Bad("unknown variant " + one);
      continue;
    }
    const std::size_t variant = Number(model, parts[0]);
    seen.order.push_back(variant);
    seen.deployments[variant] = {IntOf(parts[1]), IntOf(parts[2]), IntOf(parts[3])};
  }
  for (const std::string& one : Items(rows.Text(row, "replicas"))) {
    seen.replicas.push_back(ReplicaOf(model, one));
  }
  if (const std::string& queue = rows.Text(row, "scheduler_queue"); !queue.empty()) {
    const std::vector<std::string> parts = Split(queue, ':');
    if (parts.size() != 2) Bad("unknown scheduler queue " + queue);
    seen.queue = WvaSchedulerQueue{IntOf(parts.front()), IntOf(parts.back())};
  }
  seen.retained = rows.Int(row, "requests_in_retention");
  return seen;
}

std::string TargetsText(const Model& model, const std::vector<WvaTarget>& targets) {
  std::map<std::string, std::int64_t> sorted;
  for (const WvaTarget& one : targets) sorted[model.variants[one.variant].name] = one.replicas;
  std::string text;
  for (const auto& [name, replicas] : sorted) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, replicas);
  }
  return text;
}

// Parts of a cell between colons: numbers within 1e-12 (averages), words as they are.
bool SameCells(const std::string& recorded, const std::string& found, bool close) {
  const std::vector<std::string> a = Split(recorded, ':'), b = Split(found, ':');
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const std::optional<double> x = ParseDouble(a[i]), y = ParseDouble(b[i]);
    if (!x || !y || !(close ? Same(*x, *y) : *x == *y)) return false;
  }
  return true;
}

std::string AnalysisText(const Model& model, const WvaAnalysis& one, bool tokens) {
  const std::string& name = model.variants[one.variant].name;
  if (tokens) {
    return fmt::format("{}:{}:{}:{}:{}:{}", name, one.replicas, one.pending, one.capacity,
                       one.demand, one.cost);
  }
  return fmt::format("{}:{}:{}:{}:{}", name, one.replicas, one.open, one.spare_kv, one.spare_queue);
}

std::string ModelText(const WvaDecision& d, bool tokens) {
  if (d.variants.empty()) return "";
  if (tokens) {
    return fmt::format("{}:{}:{}:{}:{}", d.supply, d.demand, d.utilization, d.required, d.spare);
  }
  return fmt::format("{}:{}:{}:{}:{}", d.open, d.spare_kv, d.spare_queue, d.scale_up,
                     d.scale_down_safe);
}

std::optional<std::string> CompareAnalysis(const Model& model, const WvaDecision& decision,
                                           const ScalerRows& rows, std::size_t row, bool tokens) {
  std::map<std::string, std::string> found, recorded;
  for (const WvaAnalysis& one : decision.variants) {
    found[model.variants[one.variant].name] = AnalysisText(model, one, tokens);
  }
  for (const std::string& one : Items(rows.Text(row, "variant_analysis"))) {
    recorded[Split(one, ':')[0]] = one;
  }
  bool same = found.size() == recorded.size();
  for (const auto& [name, text] : recorded) {
    same = same && SameCells(text, found[name], !tokens);
    if (!same) {
      return fmt::format("row {}: variant_analysis: recorded \"{}\", found \"{}\"", row, text,
                         found[name]);
    }
  }
  if (!same) return fmt::format("row {}: variant_analysis: other variants", row);
  const std::string text = ModelText(decision, tokens),
                    &expected = rows.Text(row, "model_analysis");
  if (SameCells(expected, text, !tokens)) return std::nullopt;
  return fmt::format("row {}: model_analysis: recorded \"{}\", found \"{}\"", row, expected, text);
}

// One model's row of a tick.
struct Decided {
  std::size_t row = 0;
  Model* model = nullptr;
  Seen seen;
  WvaDecision decision;
};

void Limit(const Json& pool, std::vector<Decided>& tick) {
  std::map<std::string, std::int64_t> gpus;
  for (const auto& [name, count] : pool.items()) gpus[name] = count.get<std::int64_t>();
  std::vector<WvaClaim> claims;
  std::vector<WvaTarget*> targets;
  for (Decided& one : tick) {
    for (WvaTarget& target : one.decision.enforced) {
      const WvaVariant& variant = one.model->variants[target.variant];
      double spare = 0;
      for (const WvaAnalysis& a : one.decision.variants) {
        if (a.variant == target.variant) spare = a.spare_kv;
      }
      claims.push_back({variant.accelerator, variant.gpus_per_replica,
                        one.seen.deployments[target.variant].current, target.replicas, spare,
                        variant.cost});
      targets.push_back(&target);
    }
  }
  LimitGpus(gpus, claims);
  for (std::size_t i = 0; i < claims.size(); ++i) targets[i]->replicas = claims[i].target;
}

std::optional<std::string> CompareWvaCase(const Json& json, const ScalerRows& rows) {
  std::map<std::string, Model> models = ModelsOf(json);
  const bool tokens = TextIn(json, "analyzer") == "v2";
  for (std::size_t row = 0; row < rows.size();) {
    std::vector<Decided> tick;
    const std::string time = rows.Text(row, "tick");
    for (; row < rows.size() && rows.Text(row, "tick") == time; ++row) {
      const auto at = models.find(rows.Text(row, "model"));
      if (at == models.end()) return "unknown model " + rows.Text(row, "model");
      Decided one{row, &at->second, SeenOf(at->second, rows, row), {}};
      one.decision = one.model->scaler->Tick({.deployments = one.seen.deployments,
                                              .replicas = one.seen.replicas,
                                              .scheduler_queue = one.seen.queue,
                                              .requests_in_retention = one.seen.retained});
      if (auto difference = CompareAnalysis(*one.model, one.decision, rows, row, tokens)) {
        return difference;
      }
      RowCheck check(rows, row);
      check.Text("targets", TargetsText(*one.model, one.decision.targets));
      check.Text("enforced", TargetsText(*one.model, one.decision.enforced));
      if (check.difference()) return check.difference();
      tick.push_back(std::move(one));
    }
    if (BoolIn(json, "limiter") && !tokens) Limit(In(json, "gpu_pool"), tick);
    for (const Decided& one : tick) {
      RowCheck check(rows, one.row);
      check.Text("final", TargetsText(*one.model, one.decision.enforced));
      if (check.difference()) return check.difference();
    }
  }
  return std::nullopt;
}

}  // namespace

ScalerCases CompareWva(const std::string& cases, const std::string& rows) {
  return CompareCases("wva", cases, rows, CompareWvaCase);
}

}  // namespace servecast::testing
