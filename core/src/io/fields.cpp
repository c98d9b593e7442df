// The fields of a scenario document (of its model and GPU: fields_model.cpp; of its engine:
// fields_engine.cpp; of its workload: fields_workload.cpp; of its calibration:
// fields_calibration.cpp): name, unit, range, help, each written there and nowhere else. Defaults
// are the member initialisers of scenario.h.
#include "io/fields_of.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "io/scaling_checks.h"
#include "serving/cluster/router.h"
#include "serving/policy.h"
#include "serving/replica/scheduler_entry.h"
#include "serving/scaling/scaler.h"

namespace servecast {
namespace {

// The parameters of the policies that one may choose for `field`, each name once.
template <class Entry>
void DescribeParams(const char* field, std::span<const Entry> entries, const std::string& chosen,
                    FieldVisitor& v, ParamMap& params, const ParamMap& base) {
  std::map<std::string_view, std::pair<const ParamSpec*, Choices>> by_name;
  for (const Entry& entry : entries) {
    for (const ParamSpec& param : entry.params) {
      auto& [spec, policies] = by_name[param.name];
      spec = &param;
      policies.push_back(entry.name);
    }
  }
  for (const auto& [name, param] : by_name) {
    const ParamSpec& p = *param.first;
    const Choices& policies = param.second;
    const bool active = std::find(policies.begin(), policies.end(), chosen) != policies.end();
    v.When(field, policies, active, [&](FieldVisitor& inner) {
      const FieldSpec spec{
          .name = p.name, .unit = p.unit, .min = p.min, .max = p.max, .help = p.help};
      std::optional<double> value = ParamValues({&p, 1}, params)[0];
      const double otherwise = ParamValues({&p, 1}, base)[0];
      if (p.whole) {
        std::optional<std::int64_t> number = static_cast<std::int64_t>(*value);
        inner.Integer(spec, number, static_cast<std::int64_t>(otherwise));
        value = static_cast<double>(*number);
      } else {
        inner.Number(spec, value, otherwise);
      }
      params[p.name] = value.value_or(p.fallback);
    });
  }
}

void Describe(FieldVisitor& v, SchedulerSpec& s, const SchedulerSpec& base) {
  Fields<SchedulerSpec> f(v, s, base);
  Choices policies, orders, priorities;
  for (const SchedulerEntry& entry : Schedulers()) policies.push_back(entry.name);
  f.Policy({.name = "policy",
            .help = "how a replica forms its batches; docs/model.md has the rules of each"},
           &SchedulerSpec::policy, policies);
  DescribeSchedulers(v, s, base);
  for (const OrderEntry& entry : Orders()) orders.push_back(entry.name);
  for (const PriorityEntry& entry : Priorities()) priorities.push_back(entry.name);
  f.Policy({.name = "order", .help = "which waiting request is admitted first"},
           &SchedulerSpec::order, orders);
  f.Policy(
      {.name = "priority", .help = "how a request's priority is computed; lower is more urgent"},
      &SchedulerSpec::priority, priorities);
  f.Policy(
      {.name = "preemption",
       .help = "which request is preempted when KV blocks run out: the last admitted (tail) or the "
               "least urgent (priority); auto: priority with order priority_fcfs, else tail"},
      &SchedulerSpec::preemption, {"auto", "tail", "priority"});
  DescribeParams("order", Orders(), s.order, v, s.params, base.params);
  DescribeParams("priority", Priorities(), s.priority, v, s.params, base.params);
}

// Of the router "epp".
void Describe(FieldVisitor& v, EppSpec& s, const EppSpec& base, bool active) {
  FieldsWhen<EppSpec>(v, "policy", {"epp"}, active, s, base, [](Fields<EppSpec>& of) {
    of.Policy(
        {.name = "profile",
         .help = "configuration that llm-d ships, or own; docs/model.md has their sources"},
        &EppSpec::profile,
        {"default", "optimized-baseline", "optimized-baseline-2026-05", "estimate-load-aware",
         "prefix-only", "no-hit-lru", "load-only", kFlowControlProfile, "random", kOwnEppProfile});
  });
  v.When("profile", {kOwnEppProfile}, active && s.profile == kOwnEppProfile,
         [&](FieldVisitor& inner) {
           inner.Foreign(
               {.name = "config",
                .help = "EndpointPickerConfig as JSON: plugins, schedulingProfiles, flowControl"},
               s.config, base.config);
         });
}

void Describe(FieldVisitor& v, ScalingSpec& s, const ScalingSpec& base);

// Those that look at no prompts and no KV caches: an encoder has neither.
std::vector<RouterEntry> RoutersOfEncoders() {
  std::vector<RouterEntry> blind;
  for (const RouterEntry& e : Routers()) {
    if (!e.reads_content && !e.reads_tokens && !e.reads_engines) blind.push_back(e);
  }
  return blind;
}

// A section of a pool's own, where it is other than the scenario's. Read, null takes away what has
// no value by default.
template <class Spec>
void DescribeOwn(FieldVisitor& v, const char* name, std::optional<Spec>& own,
                 const Spec& scenarios) {
  Spec value = own ? *own : scenarios;
  v.Object(
      {.name = name, .nullable = true, .idle = !own, .repeats = true},
      [&](FieldVisitor& inner) { Describe(inner, value, inner.reads() ? Spec{} : scenarios); });
  if (value == scenarios) {
    own.reset();
  } else {
    own = std::move(value);
  }
}

void Describe(FieldVisitor& v, PoolSpec& p, const PoolSpec& base, const Scenario& s) {
  Fields<PoolSpec> f(v, p, base);
  f.Add({.name = "name", .help = "what to call the pool", .label = true}, &PoolSpec::name);
  f.Enum({.name = "role",
          .help = "what the pool's replicas do for a request: everything (mixed), its prefill, "
                  "its decode, or encode its images for the others; what the pool does not set is "
                  "the scenario's"},
         &PoolSpec::role, {"mixed", "prefill", "decode", "encode"});
  f.Add({.name = "replicas",
         .min = 1,
         .max = 1024,
         .help = "equal engines behind the router, each with its own GPUs"},
        &PoolSpec::replicas);
  f.Add({.name = "tensor_parallel",
         .unit = "GPUs",
         .min = 1,
         .max = 1024,
         .help = "GPUs that share every matrix product"},
        &PoolSpec::tensor_parallel);
  f.Add({.name = "pipeline_parallel",
         .min = 1,
         .max = 64,
         .help = "stages that the layers are split into, each on its own GPUs"},
        &PoolSpec::pipeline_parallel);
  f.Add({.name = "attention_data_parallel",
         .unit = "replicas",
         .min = 1,
         .max = 1024,
         .help = "for a mixture of experts: replicas that share one set of experts, spread over "
                 "all their GPUs; each has its own attention and KV cache"},
        &PoolSpec::attention_data_parallel);
  DescribeOwn(v, "hardware", p.hardware, s.hardware);
  DescribeOwn(v, "engine", p.engine, s.engine);
  DescribeOwn(v, "scheduler", p.scheduler, s.scheduler);
  DescribeOwn(v, "scaling", p.scaling, s.cluster.scaling);
}

void Describe(FieldVisitor& v, DisaggregationSpec& d, const DisaggregationSpec& base) {
  Fields<DisaggregationSpec> f(v, d, base);
  f.Enum({.name = "first_token_from",
          .help = "which side sends the first token, with pools for prefill"},
         &DisaggregationSpec::first_token_from_decode, {"prefill", "decode"});
  f.Add({.name = "above_tokens",
         .unit = "tokens",
         .min = 0,
         .max = kMaxTokens,
         .help =
             "prompts up to this length are served whole: by mixed pools, or else by decode pools"},
        &DisaggregationSpec::above_tokens);
  f.Add({.name = "base_latency_us",
         .unit = "us",
         .min = 0,
         .max = 1e9,
         .help = "time before a request's KV blocks start to flow from prefill to decode"},
        &DisaggregationSpec::base_latency_us);
  f.Add({.name = "bandwidth_gb_s",
         .unit = "GB/s",
         .min = 0.001,
         .max = 1e6,
         .help = "bandwidth from prefill to decode, shared by all transfers under way; default: "
                 "0.68 of the pools' least inter_node_gb_s, else 34"},
        &DisaggregationSpec::bandwidth_gb_s);
}

void Describe(FieldVisitor& v, LatencySpec& l, const LatencySpec& base) {
  Fields<LatencySpec> f(v, l, base);
  Choices backends = {"auto"};
  for (const LatencyEntry& entry : LatencyModels()) backends.push_back(entry.name);
  f.Policy(
      {.name = "backend",
       .help = "model of the step time; auto: the most accurate for this model, GPU and engine"},
      &LatencySpec::backend, backends);
  using Latency = Fields<LatencySpec>;
  const auto with = [&](const Choices& names, void (*add)(Latency&)) {
    const bool active = std::find(names.begin(), names.end(), l.backend) != names.end();
    v.When("backend", names, active, [&](FieldVisitor& inner) {
      Latency fields(inner, l, base);
      add(fields);
    });
  };
  with({"blackbox", "roofline"}, [](Latency& g) {
    g.Add(
        {.name = "alpha",
         .unit = "us",
         .min = 0,
         .max = 1e9,
         .help =
             "three delays: before the queue, before the queue per prompt token, per output token"},
        &LatencySpec::alpha);
  });
  with({"blackbox"}, [](Latency& g) {
    g.Add({.name = "beta",
           .unit = "us",
           .min = 0,
           .max = 1e9,
           .help = "three times: of a step, per prefill token, per decode token"},
          &LatencySpec::beta);
  });
  with({"roofline"}, [](Latency& g) {
    const auto share = [](const char* name, const char* help) {
      return FieldSpec{.name = name, .unit = "1", .min = 0.01, .max = 1, .help = help};
    };
    g.Add(share("mfu_prefill",
                "share of the peak reached in prefill; default: 0.65, with compat blis 0.45, "
                "BLIS's value for the H100"),
          &LatencySpec::mfu_prefill);
    g.Add(share("mfu_decode",
                "share of the peak reached in decode; default: 0.12, with compat blis 0.3, BLIS's "
                "value for the H100"),
          &LatencySpec::mfu_decode);
  });
  with({"trained_physics"}, [](Latency& g) {
    g.Add({.name = "physics_alpha",
           .unit = "us",
           .min = 0,
           .max = 1e9,
           .help = "three delays: before the queue, after the last token, per output token"},
          &LatencySpec::physics_alpha);
    g.Add({.name = "physics_beta", .min = 0, .max = 1e6, .help = "ten factors, in BLIS's order"},
          &LatencySpec::physics_beta);
  });
  with({"physics"}, [](Latency& g) {
    const auto weights = [](const char* name, const char* help) {
      return FieldSpec{.name = name, .unit = "us", .min = -1e12, .max = 1e12, .help = help};
    };
    g.Policy({.name = "variant",
              .help = "which features: as first specified, errors included (seed), or corrected"},
             &LatencySpec::variant, {"corrected", "seed"});
    g.Add(weights("alpha_coefficients", "weights of the 11 features of the delay before the queue"),
          &LatencySpec::alpha_coefficients);
    g.Add(weights("beta_coefficients", "weights of the 16 features of a step's time"),
          &LatencySpec::beta_coefficients);
    g.Add(weights("wait_coefficients",
                  "weights of the 11 features of the wait in the queue, for estimates only"),
          &LatencySpec::wait_coefficients);
    g.Add({.name = "preemption_gamma",
           .min = 0,
           .max = 1,
           .help = "weight of a step in the moving average of preemptions"},
          &LatencySpec::preemption_gamma);
  });
  with({"roofline", "trained_physics"}, [](Latency& g) {
    g.Add({.name = "weight_bytes", .unit = "B", .min = 1, .max = 4, .help = "bytes per weight"},
          &LatencySpec::weight_bytes);
    g.Add({.name = "peak_fp8_tflops",
           .unit = "TFLOP/s",
           .min = 0,
           .max = 1e6,
           .help = "peak with one-byte weights; 0: the same as with two-byte weights"},
          &LatencySpec::peak_fp8_tflops);
    g.Add({.name = "interleave_moe_layer_step",
           .min = 0,
           .max = 1000,
           .help = "one layer in every (this number + 1) has experts; 0: every layer has"},
          &LatencySpec::interleave_moe_layer_step);
    g.Add({.name = "intermediate_size_mlp",
           .min = 0,
           .max = 1e7,
           .help = "width of the MLP in layers without experts"},
          &LatencySpec::intermediate_size_mlp);
  });
}

constexpr const char* kGraceHelp =
    "how long a replica drains at most; default: until its last request has left";

void Describe(FieldVisitor& v, ScalingSpec& s, const ScalingSpec& base) {
  Fields<ScalingSpec> f(v, s, base);
  Choices names, scaled, scraping, planners;
  for (const ScalerEntry& entry : Scalers()) {
    names.push_back(entry.name);
    if (entry.make == nullptr) continue;
    scaled.push_back(entry.name);
    (entry.plans ? planners : scraping).push_back(entry.name);
  }
  f.Policy({.name = "policy", .help = "what adds and removes replicas"}, &ScalingSpec::policy,
           names);
  DescribeParams("policy", Scalers(), s.policy, v, s.params, base.params);
  const bool plans = std::find(planners.begin(), planners.end(), s.policy) != planners.end();
  FieldsWhen<ScalingSpec>(
      v, "policy", {"schedule"}, s.policy == "schedule", s, base, [](Fields<ScalingSpec>& g) {
        g.Add({.name = "schedule",
               .max = 1e8,
               .help = "[from_s, replicas]: the number of replicas from a time on",
               .columns = "from_s, replicas"},
              &ScalingSpec::schedule);
      });
  FieldsWhen<ScalingSpec>(
      v, "policy", {"hpa", "keda"}, s.policy == "hpa" || s.policy == "keda", s, base,
      [](Fields<ScalingSpec>& g) {
        g.Enum({.name = "metric", .help = "what the scaler reads, summed over replicas"},
               &ScalingSpec::metric,
               Choices(kScalingMetricNames.begin(), kScalingMetricNames.end()));
      });
  FieldsWhen<ScalingSpec>(v, "policy", planners, plans, s, base, [](Fields<ScalingSpec>& g) {
    g.Enum({.name = "optimization_target",
            .help = "thresholds (throughput, latency; load: your own), or estimates of latency"},
           &ScalingSpec::optimization_target,
           Choices(kDynamoTargetNames.begin(), kDynamoTargetNames.end()));
    g.Add({.name = "enable_load_scaling", .help = "one replica at a time"},
          &ScalingSpec::enable_load_scaling);
    g.Add({.name = "enable_throughput_scaling",
           .help = "by requests of an interval; with load scaling a lower bound"},
          &ScalingSpec::enable_throughput_scaling);
  });
  FieldsWhen<ScalingSpec>(v, "policy", scaled, s.On(), s, base, [](Fields<ScalingSpec>& g) {
    g.Add({.name = "min_replicas", .min = 0, .max = 1024, .help = "fewest replicas"},
          &ScalingSpec::min_replicas);
    g.Add({.name = "max_replicas", .min = 1, .max = 1024, .help = "most replicas"},
          &ScalingSpec::max_replicas);
  });
  FieldsWhen<ScalingSpec>(v, "policy", scraping, s.On() && !plans, s, base,
                          [](Fields<ScalingSpec>& g) {
                            g.Add({.name = "scrape_period_s",
                                   .unit = "s",
                                   .min = 0.1,
                                   .max = 3600,
                                   .help = "time between scrapes of replicas"},
                                  &ScalingSpec::scrape_period_s);
                          });
  FieldsWhen<ScalingSpec>(v, "policy", scaled, s.On(), s, base, [](Fields<ScalingSpec>& g) {
    const auto add = [&g](const char* name, const char* unit, double min, double max,
                          const char* help, double ScalingSpec::*member) {
      g.Add({.name = name, .unit = unit, .min = min, .max = max, .help = help}, member);
    };
    add("scrape_delay_s", "s", 0, 3600, "age of a scrape before the scaler sees it",
        &ScalingSpec::scrape_delay_s);
    add("node_s", "s", 0, 86400, "cold start: waiting for a node", &ScalingSpec::node_s);
    add("image_s", "s", 0, 86400, "cold start: pulling the image", &ScalingSpec::image_s);
    add("weights_gb_s", "GB/s", 1e-3, 1e6, "cold start: rate at which the weights load",
        &ScalingSpec::weights_gb_s);
    add("engine_s", "s", 0, 86400,
        "cold start: start of the engine, with compilation and graph capture",
        &ScalingSpec::engine_s);
    g.Add({.name = "warm_replicas",
           .max = 1024,
           .help = "replicas beside these that are started and asleep"},
          &ScalingSpec::warm_replicas);
    g.Add({.name = "wake_s",
           .unit = "s",
           .max = 86400,
           .help = "until a warm replica serves; must be stated with warm_replicas"},
          &ScalingSpec::wake_s);
    add("warm_gpu_share", "", 0, 1,
        "share of its GPUs' time that a replica counts while it is asleep: 1 where it keeps them",
        &ScalingSpec::warm_gpu_share);
    g.Add({.name = "termination_grace_period_s", .unit = "s", .max = 1e8, .help = kGraceHelp},
          &ScalingSpec::termination_grace_period_s);
  });
}

void Describe(FieldVisitor& v, FailureSpec& s, const FailureSpec& base) {
  Fields<FailureSpec> f(v, s, base);
  f.Add({.name = "schedule",
         .max = 1e8,
         .help = "[at_s, replica]: failures of replicas, counted from 0",
         .columns = "at_s, replica"},
        &FailureSpec::schedule);
  f.Add({.name = "mtbf_s",
         .unit = "s",
         .min = 1,
         .max = 1e8,
         .help = "mean time between failures of a replica; default: none by chance"},
        &FailureSpec::mtbf_s);
  f.Add({.name = "restart_s",
         .unit = "s",
         .max = 1e8,
         .help = "from a failure until the replica serves again"},
        &FailureSpec::restart_s);
  f.Add({.name = "detect_s",
         .unit = "s",
         .max = 1e8,
         .help = "from a failure until the router knows"},
        &FailureSpec::detect_s);
  f.Add({.name = "domain_replicas",
         .min = 1,
         .max = 1024,
         .help = "replicas that fail together, as those of a node or a zone, in their order"},
        &FailureSpec::domain_replicas);
}

void Describe(FieldVisitor& v, SlowdownSpec& s, const SlowdownSpec& base) {
  Fields<SlowdownSpec> f(v, s, base);
  f.Add({.name = "schedule",
         .max = 1e8,
         .help = "[at_s, replica]: when replicas, counted from 0, become slow",
         .columns = "at_s, replica"},
        &SlowdownSpec::schedule);
  f.Add({.name = "mean_gap_s",
         .unit = "s",
         .min = 1,
         .max = 1e8,
         .help = "mean time until a replica is slow, at first and again; default: none by chance"},
        &SlowdownSpec::mean_gap_s);
  f.Add({.name = "for_s",
         .unit = "s",
         .min = 1e-3,
         .max = 1e8,
         .help = "how long a replica stays slow; default: to the end of the run"},
        &SlowdownSpec::for_s);
  f.Add({.name = "factor",
         .min = 1,
         .max = 1000,
         .help = "how many times as long a step lasts that a slow replica begins"},
        &SlowdownSpec::factor);
}

void Describe(FieldVisitor& v, RollingUpdateSpec& s, const RollingUpdateSpec& base) {
  Fields<RollingUpdateSpec> f(v, s, base);
  f.Add({.name = "at_s",
         .unit = "s",
         .max = 1e8,
         .help = "when all replicas begin to be replaced; default: never"},
        &RollingUpdateSpec::at_s);
  f.Add({.name = "max_surge",
         .max = 1024,
         .help = "replicas beside the pool's, as others drain, too; default: 25 %, rounded up"},
        &RollingUpdateSpec::max_surge);
  f.Add({.name = "max_unavailable",
         .max = 1024,
         .help = "replicas of the pool that may be down; default: 25 %, rounded down"},
        &RollingUpdateSpec::max_unavailable);
  f.Add({.name = "start_s",
         .unit = "s",
         .min = 0.1,
         .max = 86400,
         .help = "until a new replica serves"},
        &RollingUpdateSpec::start_s);
  f.Add({.name = "termination_grace_period_s", .unit = "s", .max = 1e8, .help = kGraceHelp},
        &RollingUpdateSpec::termination_grace_period_s);
}

void Describe(FieldVisitor& v, SloSpec& s, const SloSpec& base) {
  Fields<SloSpec> f(v, s, base);
  f.Enum({.name = "metric",
          .help = "which latency has a limit: TTFT, TPOT, ITL or E2E; attainment: a share of the "
                  "requests, "
                  "each within several limits",
          .required = true},
         &SloSpec::metric, {"ttft", "tpot", "itl", "e2e", "attainment"});
  f.Add({.name = "percentile",
         .unit = "%",
         .min = 0,
         .max = 100,
         .help = "share of the samples that must stay within the limit"},
        &SloSpec::percentile);
  const bool attainment = s.metric == SloMetric::kAttainment;
  FieldsWhen<SloSpec>(v, "metric", {"ttft", "tpot", "itl", "e2e"}, !attainment, s, base,
                      [](Fields<SloSpec>& of) {
                        of.Add({.name = "limit_ms",
                                .unit = "ms",
                                .min = 1e-6,
                                .max = 1e9,
                                .help = "highest latency allowed",
                                .required = true},
                               &SloSpec::limit_ms);
                      });
  FieldsWhen<SloSpec>(v, "metric", {"attainment"}, attainment, s, base, [](Fields<SloSpec>& of) {
    const auto add = [&of](const char* name, const char* help,
                           std::optional<double> SloSpec::*limit) {
      of.Add({.name = name, .unit = "ms", .min = 1e-6, .max = 1e9, .help = help}, limit);
    };
    add("ttft_ms", "TTFT that a request must be within; default: any", &SloSpec::ttft_ms);
    add("tpot_ms", "its TPOT, likewise", &SloSpec::tpot_ms);
    add("e2e_ms", "its E2E, likewise", &SloSpec::e2e_ms);
  });
  f.Add({.name = "class", .help = "class of the workload that the target is for; default: all"},
        &SloSpec::of_class);
}

void Describe(FieldVisitor& v, MeasureSpec& m, const MeasureSpec& base) {
  Fields<MeasureSpec> f(v, m, base);
  f.Add({.name = "warmup_s",
         .unit = "s",
         .min = 0,
         .max = 1e8,
         .help = "warm-up time: latencies leave out requests that arrive in it, rates leave out "
                 "what is done in it"},
        &MeasureSpec::warmup_s);
  f.Add({.name = "horizon_s",
         .unit = "s",
         .min = 1e-9,
         .max = 1e8,
         .help = "simulated time at which the run stops; requests not finished by then count as "
                 "unfinished"},
        &MeasureSpec::horizon_s);
}

}  // namespace

void DescribeCompared(FieldVisitor& v, Scenario& s, const Scenario& base) {
  v.Object({.name = "hardware"},
           [&](FieldVisitor& inner) { Describe(inner, s.hardware, base.hardware); });
  v.Object({.name = "engine"},
           [&](FieldVisitor& inner) { Describe(inner, s.engine, base.engine); });
}

void DescribeScenario(FieldVisitor& v, Scenario& s, const Scenario& base) {
  Fields<Scenario> f(v, s, base);
  f.Add({.name = "name", .help = "title of the scenario", .label = true}, &Scenario::name);
  f.Add({.name = "description", .help = "what the scenario shows", .label = true},
        &Scenario::description);
  f.Add({.name = "seed", .min = 0, .max = 9007199254740991.0, .help = "seed of all random draws"},
        &Scenario::seed);
  v.Object({.name = "model"}, [&](FieldVisitor& inner) { Describe(inner, s.model, base.model); });
  DescribeCompared(v, s, base);
  v.Object({.name = "scheduler"},
           [&](FieldVisitor& inner) { Describe(inner, s.scheduler, base.scheduler); });
  v.Object({.name = "cluster"}, [&](FieldVisitor& inner) {
    const auto scaling = [&] {
      inner.Object({.name = "scaling", .idle = !s.cluster.scaling.On()},
                   [&](FieldVisitor& w) { Describe(w, s.cluster.scaling, base.cluster.scaling); });
    };
    if (inner.reads()) scaling();  // pools may have their own instead
    ListOf pools(s.cluster.pools, base.cluster.pools,
                 [&s](FieldVisitor& w, PoolSpec& p, const PoolSpec& b) { Describe(w, p, b, s); });
    inner.List({.name = "pools", .min = 1, .max = 16, .help = "groups of equal replicas"}, pools);
    Choices routers, of_encoders;
    for (const RouterEntry& entry : Routers()) routers.push_back(entry.name);
    const std::vector<RouterEntry> encoders = RoutersOfEncoders();
    for (const RouterEntry& entry : encoders) of_encoders.push_back(entry.name);
    inner.Object({.name = "router"}, [&](FieldVisitor& router) {
      Fields<ClusterSpec>(router, s.cluster, base.cluster)
          .Policy({.name = "policy", .help = "how the replica that serves a request is chosen"},
                  &ClusterSpec::router, routers);
      DescribeParams("policy", Routers(), s.cluster.router, router, s.cluster.router_params,
                     base.cluster.router_params);
      Describe(router, s.cluster.epp, base.cluster.epp, s.cluster.router == "epp");
    });
    const bool idle = !s.cluster.Has(PoolRole::kPrefill);
    inner.Object({.name = "decode_router", .idle = idle}, [&](FieldVisitor& router) {
      Fields<ClusterSpec>(router, s.cluster, base.cluster)
          .Policy({.name = "policy",
                   .help = "how the replica that decodes is chosen, after the prefill"},
                  &ClusterSpec::decode_router, routers);
      DescribeParams("policy", Routers(), s.cluster.decode_router, router,
                     s.cluster.decode_router_params, base.cluster.decode_router_params);
    });
    const bool no_encoders = !s.cluster.Has(PoolRole::kEncode);
    inner.Object({.name = "encode_router", .idle = no_encoders}, [&](FieldVisitor& router) {
      Fields<ClusterSpec>(router, s.cluster, base.cluster)
          .Policy({.name = "policy",
                   .help = "how the replica that encodes a request's images is chosen"},
                  &ClusterSpec::encode_router, of_encoders);
      DescribeParams<RouterEntry>("policy", encoders, s.cluster.encode_router, router,
                                  s.cluster.encode_router_params,
                                  base.cluster.encode_router_params);
    });
    inner.Object({.name = "disaggregation", .idle = idle && no_encoders}, [&](FieldVisitor& d) {
      Describe(d, s.cluster.disaggregation, base.cluster.disaggregation);
    });
    if (!inner.reads()) scaling();
    inner.Object({.name = "failures", .nullable = true, .idle = !s.cluster.failures.On()},
                 [&](FieldVisitor& w) { Describe(w, s.cluster.failures, base.cluster.failures); });
    inner.Object(
        {.name = "slowdowns", .nullable = true, .idle = !s.cluster.slowdowns.On()},
        [&](FieldVisitor& w) { Describe(w, s.cluster.slowdowns, base.cluster.slowdowns); });
    inner.Object(
        {.name = "rolling_update", .nullable = true, .idle = !s.cluster.rolling_update.On()},
        [&](FieldVisitor& w) {
          Describe(w, s.cluster.rolling_update, base.cluster.rolling_update);
        });
  });
  v.Object({.name = "latency"},
           [&](FieldVisitor& inner) { Describe(inner, s.latency, base.latency); });
  v.Object({.name = "calibration", .nullable = true, .idle = !s.calibration.On()},
           [&](FieldVisitor& inner) { Describe(inner, s.calibration, base.calibration); });
  v.Object({.name = "workload"},
           [&](FieldVisitor& inner) { Describe(inner, *s.workload, *base.workload); });
  ListOf slo(s.slo, base.slo,
             [](FieldVisitor& w, SloSpec& item, const SloSpec& b) { Describe(w, item, b); });
  v.List({.name = "slo", .min = 0, .max = 32, .help = "latency targets"}, slo);
  v.Object({.name = "measure"},
           [&](FieldVisitor& inner) { Describe(inner, s.measure, base.measure); });
}

}  // namespace servecast
