#include "testing/encode_cases.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "cost/model_bytes.h"
#include "metrics/records.h"
#include "metrics/time_split.h"
#include "servecast/simulation.h"
#include "serving/cluster/deployment.h"
#include "serving/hooks.h"
#include "testing/dice.h"
#include "testing/encode_reference.h"

namespace servecast::testing {
namespace {

using Overrides = std::vector<std::string>;

constexpr std::int64_t kMostTokens = 800;  // of an image

const std::vector<std::string> kRouters = {"round_robin", "random", "least_outstanding",
                                           "power_of_two", "session_affinity"};

template <class T>
T Good(Result<T> result) {
  SERVECAST_CHECK(result.ok(), "a case is a scenario that runs");
  return std::move(result.value());
}

std::string Changed(const Overrides& overrides) {
  return Good(ApplyOverrides(
      R"({"schema": 1, "model": {"preset": "qwen3-vl-8b"}, "hardware": {"preset": "h100-sxm"},
          "workload": {"arrivals": {"process": "poisson"}, "requests": 50}})",
      overrides));
}

struct EncodeCase {
  Overrides common;             // of both runs
  std::string pools, encoders;  // of the others, of those that encode; lists' insides
  std::int64_t encode_replicas = 1;
  std::string encode_router;
  std::string images, classes;
  bool turns = false;
};

EncodeCase MakeCase(std::uint64_t seed) {
  Dice dice(seed);
  const auto number = [&dice](const std::vector<std::int64_t>& values) {
    return std::to_string(dice.Pick(values));
  };
  const auto router = [&dice] { return dice.Pick<std::string>(kRouters); };
  EncodeCase c;
  const std::string replicas = R"("replicas":)" + std::to_string(dice.Between(1, 2));
  c.pools = dice.Percent(50) ? R"({"role":"prefill",)" + replicas + R"(},{"role":"decode"})"
                             : "{" + replicas + "}";
  c.encode_replicas = dice.Between(1, 3);
  c.encoders = R"({"role":"encode","replicas":)" + std::to_string(c.encode_replicas) +
               R"(,"tensor_parallel":)" + number({1, 1, 2}) + "}";
  c.encode_router = router();
  c.images = R"({"per_request":)" + std::to_string(dice.Between(1, 3)) + R"(,"width":)" +
             number({64, 500, 1024}) + R"(,"height":)" + number({96, 768}) + R"(,"distinct":)" +
             number({0, 0, 3, 8}) + "}";
  if (dice.Percent(50)) {
    c.classes = R"([{"name":"seen","share":2},{"name":"read","share":1,"images_per_request":0}])";
  }
  c.turns = dice.Percent(25);
  const char* tokens = R"({"distribution":"uniform","min":1,"max":)";
  c.common = {
      "model.vision.max_image_tokens=" + std::to_string(kMostTokens),
      "engine.max_num_batched_tokens=" + number({256, 900, 8192}),
      "engine.max_num_seqs=" + number({1, 3, 64}),
      "engine.async_scheduling=" + dice.Pick<std::string>({"true", "false"}),
      "engine.step_overhead_us=" + number({0, 700}),
      "engine.mm_encoder_tp_mode=" + dice.Pick<std::string>({"data", "weights"}),
      "cluster.router.policy=" + router(),
      "cluster.disaggregation.base_latency_us=" + number({0, 50, 2500}),
      "cluster.disaggregation.bandwidth_gb_s=" + dice.Pick<std::string>({"0.02", "0.4", "34"}),
      "workload.arrivals.rate_per_s=" + number({3, 20, 200}),
      std::string("workload.prompt_tokens=") + tokens + "700}",
      std::string("workload.output_tokens=") + tokens + "40}",
      "seed=" + std::to_string(seed)};
  return c;
}

std::string WithEncoders(const EncodeCase& c) {
  Overrides all = c.common;
  all.push_back("cluster.pools=[" + c.pools + "," + c.encoders + "]");
  all.push_back("cluster.encode_router.policy=" + c.encode_router);
  all.push_back("workload.images=" + c.images);
  if (!c.classes.empty()) all.push_back("workload.classes=" + c.classes);
  if (c.turns) all.push_back(R"(workload.sessions={"turns":3,"think_time_s":0.2})");
  return Changed(all);
}

// Prompts of text, which came when they were at the gateway of the others.
std::string WithoutEncoders(const EncodeCase& c) {
  Overrides all = c.common;
  all.push_back("cluster.pools=[" + c.pools + "]");
  all.push_back("engine.request_overhead_ms=0");
  all.push_back("engine.prompt_token_overhead_us=0");
  if (c.pools.find("role") == std::string::npos) {
    all.push_back("cluster.disaggregation={}");
  }
  return Changed(all);
}

Simulation RunOf(const std::string& document, SimulationHooks hooks = {}) {
  Simulation simulation =
      Good(Simulation::Create(Good(ParseScenario(document)), {}, std::move(hooks)));
  while (!simulation.Advance(INT64_MAX)) {
  }
  return simulation;
}

// Of a request's two accounts the first figure that differs.
struct Difference {
  std::string found;

  template <class T>
  void Of(const char* name, std::size_t request, T one, T other) {
    if (found.empty() && one != other) {
      found = Format("request {}: {} is {}, not {}", request, name, one, other);
    }
  }
};

void CompareImages(const EncodeCase& c, const Scenario& scenario, const Simulation& simulation,
                   Difference& difference, EncodersCompared& compared) {
  const RunRecords run = simulation.Records();
  const Deployment deployment = Good(Deploy(scenario));
  RouterChoice router;
  router.name = c.encode_router;
  router.seed = static_cast<std::int64_t>(Mix64(Mix64(static_cast<std::uint64_t>(scenario.seed))));
  const EngineSpec& engine = scenario.engine;
  const EncodeOutput expected =
      EncodeReference({run.requests, run.results.enqueue, *deployment.pools.back().latency, router,
                       c.encode_replicas, engine.max_num_seqs,
                       std::max(engine.max_num_batched_tokens, kMostTokens),
                       scenario.cluster.disaggregation, EmbedBytes(scenario.model)})
          .Run();
  const auto first = static_cast<std::int32_t>(scenario.cluster.Replicas() - c.encode_replicas);
  for (std::size_t r = 0; r < run.results.encodings.size(); ++r) {
    const Encoding &one = run.results.encodings[r], &other = expected.encodings[r];
    difference.Of("started", r, one.started, other.started);
    difference.Of("encoded", r, one.encoded, other.encoded);
    difference.Of("bytes", r, one.bytes, other.bytes);
    difference.Of("arrived", r, one.arrived, other.arrived);
    difference.Of("replica", r, one.replica, other.replica < 0 ? -1 : first + other.replica);
    compared.texts += one.started < 0 ? 1 : 0;
  }
  const Report report = simulation.Snapshot();
  difference.Of("encoded images", 0, report.counts.encoded_images, expected.images);
  difference.Of("hits", 0, report.counts.image_hits, expected.hits);
  difference.Of("steps", 0, report.pools.back().steps, expected.steps);
  compared.images = expected.images;
  compared.hits = expected.hits;
  compared.cut = expected.cut;
  compared.waited = expected.waited;
  compared.shared = expected.shared;
}

void CompareBehind(const EncodeCase& c, const Simulation& simulation, Difference& difference,
                   EncodersCompared& compared) {
  const RunRecords run = simulation.Records();
  SimulationHooks hooks;
  hooks.requests = run.requests;
  for (std::size_t r = 0; r < run.results.encodings.size(); ++r) {
    const TimeNs there = run.results.encodings[r].arrived;
    hooks.requests->arrival[r] = there >= 0 ? there : run.results.enqueue[r];
  }
  hooks.requests->images.clear();
  hooks.requests->images_until.clear();
  const Simulation plain = RunOf(WithoutEncoders(c), std::move(hooks));
  const RunRecords other = plain.Records();
  const RequestResults &one = run.results, &two = other.results;
  for (std::size_t r = 0; r < one.state.size(); ++r) {
    difference.Of("first_scheduled", r, one.first_scheduled[r], two.first_scheduled[r]);
    difference.Of("first_token", r, one.first_token[r], two.first_token[r]);
    difference.Of("completion", r, one.completion[r], two.completion[r]);
    difference.Of("generated", r, one.generated[r], two.generated[r]);
    difference.Of("preemptions", r, one.preemptions[r], two.preemptions[r]);
    difference.Of("cached_tokens", r, one.cached_tokens[r], two.cached_tokens[r]);
    if (!two.replica.empty()) difference.Of("replica", r, one.replica[r], two.replica[r]);
    ++compared.requests;
    if (one.state[r] != RequestState::kCompleted || two.state[r] != one.state[r]) {
      difference.Of("state", r, static_cast<int>(one.state[r]), static_cast<int>(two.state[r]));
      continue;
    }
    compared.handed_over += one.HandedOver(r) ? 1 : 0;
    const RequestTimes times = TimesOf(run.requests, one, run.token_delay, r);
    const RequestTimes behind = TimesOf(other.requests, two, other.token_delay, r);
    const TimeNs arrival = run.requests.arrival[r];
    const Encoding& e = one.encodings[r];
    difference.Of("TTFT", r, times.ttft.Sum(), one.first_token[r] - arrival);
    difference.Of("E2E", r, times.e2e.Sum(), one.completion[r] - arrival);
    difference.Of("transfer", r, times.e2e.transfer, behind.e2e.transfer + e.arrived - e.encoded);
    difference.Of("prefill", r, times.e2e.prefill, behind.e2e.prefill + e.encoded - e.started);
    difference.Of("decode", r, times.e2e.decode, behind.e2e.decode);
    difference.Of("encode", r, one.Encode(r), e.encoded - e.started);
  }
}

}  // namespace

std::string EncodersDocument(std::uint64_t seed) { return WithEncoders(MakeCase(seed)); }

EncodersCompared CompareEncoders(std::uint64_t seed) {
  const EncodeCase c = MakeCase(seed);
  const std::string document = WithEncoders(c);
  const Simulation simulation = RunOf(document);
  EncodersCompared compared;
  Difference difference;
  CompareImages(c, Good(ParseScenario(document)), simulation, difference, compared);
  // Of a conversation arrivals hang on answers.
  if (!c.turns) CompareBehind(c, simulation, difference, compared);
  compared.mismatch = difference.found;
  return compared;
}

}  // namespace servecast::testing
