// See design_plan.h.
#include "plan/design_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "cost/own_models.h"
#include "experiment/advise.h"
#include "metrics/power.h"
#include "metrics/words.h"
#include "plan/answers.h"
#include "plan/checks.h"
#include "plan/design_bounds.h"
#include "plan/design_requests.h"
#include "plan/frontier.h"
#include "plan/line.h"
#include "plan/strain.h"
#include "servecast/plan.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"
#include "serving/cluster/deployment.h"
#include "serving/policy.h"

namespace servecast {
namespace {

// Engine steps and requests of all runs of a task.
constexpr std::int64_t kCoarseWork = 1'000'000, kCertainWork = 1'500'000;
// The same of all questions about a prefill and a decode pool.
constexpr std::int64_t kTimesOfPools = 3;
// The closed form is near: a scout beside it is more likely to be the other side than twice it.
constexpr double kFirstStep = 1.25;
constexpr std::int64_t kDrawn = 2000;  // requests that bounds are means of

bool IsMissing(const Issue& issue) { return issue.kind == "missing_file"; }

std::optional<double> Known(double strain) {
  return std::isfinite(strain) ? std::optional(strain) : std::nullopt;
}

// With as many replicas as a task says to begin with.
void Begin(const DesignTask& task, Scenario& scenario) {
  std::vector<PoolSpec>& pools = scenario.cluster.pools;
  if (task.fixed || task.start.size() != pools.size()) return;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const std::int64_t group = pools[i].attention_data_parallel;
    const std::int64_t replicas = std::clamp<std::int64_t>(task.start[i], 1, 1024);
    pools[i].replicas = CeilDiv(replicas, group) * group;
  }
}

}  // namespace

struct DesignPlan::State {
  State(const DesignTask& task, Trace t) : trace(std::move(t)), fixed(task.fixed) {
    point.id = task.id;
    point.rung = task.rung;
    asks_energy = task.energy;
  }

  // ---- Before runs ------------------------------------------------------------------------------

  // Issues: missing files.
  Issues Start(const DesignTask& task) {
    Result<Scenario> read = ParseToRun(task.document);
    if (!read.ok()) return Refuse(read.issues());
    scenario = std::move(read.value());
    if (Issues missing = MissingFiles(scenario); !missing.empty()) return missing;
    // Which of several alike should have fewer replicas is no question of capacity.
    const std::vector<PoolSpec>& pools = scenario.cluster.pools;
    const bool roles = pools.size() == 2 && scenario.cluster.Has(PoolRole::kPrefill) &&
                       scenario.cluster.Has(PoolRole::kDecode);
    fixed = fixed || (pools.size() > 1 && !roles) || IsBlis(scenario.engine.compat);
    if (!fixed && pools.size() == 1) most_replicas = MostReplicas(task.most);
    Begin(task, scenario);
    if (most_replicas > 0) {
      scenario.cluster.pool().replicas = std::min(scenario.cluster.pool().replicas, most_replicas);
    }
    return task.rung == Rung::kBound ? Bound() : Plans(roles);
  }

  // For so much, $ an hour or GPUs; 0: any number. Two groups are always tried.
  std::int64_t MostReplicas(double cost) const {
    if (cost <= 0) return 0;
    const PoolSpec& pool = scenario.cluster.pool();
    const HardwareSpec& hardware = pool.hardware ? *pool.hardware : scenario.hardware;
    const auto gpus = static_cast<double>(pool.GpusOfReplica());
    const double each = gpus * hardware.price_per_gpu_hour.value_or(1);
    const std::int64_t group = pool.attention_data_parallel;
    const auto groups = each > 0 ? cost / each / static_cast<double>(group) : 1e6;
    return group * std::clamp<std::int64_t>(static_cast<std::int64_t>(groups), 2, 1'000'000);
  }

  Issues Refuse(const Issues& issues) {
    if (std::any_of(issues.begin(), issues.end(), IsMissing)) return issues;
    const bool unfit = issues[0].kind == "does_not_fit";
    point.state = unfit ? DesignState::kDoesNotFit : DesignState::kRefused;
    point.issues = issues;
    point.reason = issues[0].path.empty() || unfit ? issues[0].message
                                                   : issues[0].path + ": " + issues[0].message;
    finished = true;
    return {};
  }

  Issues Bound() {
    finished = true;
    Scenario drawn = scenario;
    drawn.workload->requests = std::min(drawn.workload->requests, kDrawn);
    if (drawn.cluster.pools.size() == 1) drawn.UsePool(0);
    const Result<Deployment> deployment = Deploy(drawn);
    if (!deployment.ok()) return Refuse(deployment.issues());
    const Result<RequestTable> requests = DrawnRequests(drawn, trace);
    if (!requests.ok()) return Refuse(requests.issues());
    Judge(deployment.value().label.evidence);
    if (requests.value().size() == 0) return {};
    const BeforeRuns known = KnownBeforeRuns(scenario, deployment.value(), requests.value());
    point.least_strains = known.strains;
    point.start = known.start;
    AddPools();
    for (std::size_t i = 0; i < point.pools.size(); ++i) {
      DesignPoint::Pool& pool = point.pools[i];
      const double least = fixed ? static_cast<double>(pool.replicas) : known.least[i];
      point.least_gpus += least * static_cast<double>(pool.gpus_per_replica);
    }
    point.least_dollars = PriceOf(fixed ? std::vector<double>() : known.least);
    std::vector<double> start(known.start.begin(), known.start.end());
    for (std::size_t i = 0; i < start.size(); ++i) {
      if (fixed) start[i] = static_cast<double>(point.pools[i].replicas);
      point.start_gpus += start[i] * static_cast<double>(point.pools[i].gpus_per_replica);
    }
    point.start_dollars = PriceOf(start);
    if (asks_energy) point.least_j_per_output_token = known.j_per_output_token;
    if (!fixed) point.pools.clear();
    MissesAlone();
    return {};
  }

  void Judge(const Evidence& evidence) {
    point.evidence = evidence.of;
    point.warnings = evidence.warnings;
    if (evidence.of != EvidenceClass::kKnownBad) return;
    point.state = DesignState::kNotJudged;
    point.reason = evidence.bad;
  }

  // A target that even a lone request of one token is beyond.
  void MissesAlone() {
    for (std::size_t k = 0; k < point.least_strains.size(); ++k) {
      const double least = point.least_strains[k];
      if (least <= 1 || point.state != DesignState::kUnknown) continue;
      point.state = DesignState::kMisses;
      point.closest.reset();
      point.reason = Format("misses {} at any load: requests that are alone take {} of it",
                            Target(scenario.slo[k]), Percent(least));
    }
  }

  void AddPools() {
    for (const PoolSpec& spec : scenario.cluster.pools) {
      DesignPoint::Pool& pool = point.pools.emplace_back();
      pool.name = spec.name;
      pool.role = spec.role;
      pool.replicas = pool.low = pool.high = spec.replicas;
      pool.gpus_per_replica = spec.GpusOfReplica();
      pool.price = (spec.hardware ? *spec.hardware : scenario.hardware).price_per_gpu_hour;
    }
  }

  // Of so many replicas by pool; of none, of those that there are.
  std::optional<double> PriceOf(const std::vector<double>& replicas) const {
    double dollars = 0;
    for (std::size_t i = 0; i < point.pools.size(); ++i) {
      const DesignPoint::Pool& pool = point.pools[i];
      if (!pool.price) return std::nullopt;
      const double count = replicas.empty() ? static_cast<double>(pool.replicas) : replicas[i];
      dollars += count * static_cast<double>(pool.gpus_per_replica) * *pool.price;
    }
    return dollars;
  }

  // ---- Runs -------------------------------------------------------------------------------------

  Issues Plans(bool roles) {
    PlanOptions options;
    options.line = PlanLine::kReplicas;
    options.fixed = fixed;
    options.scouts_only = point.rung == Rung::kCoarse;
    options.most_work = point.rung == Rung::kCoarse ? kCoarseWork : kCertainWork;
    options.most_work_in_all = kTimesOfPools * options.most_work;
    options.first_step = kFirstStep;
    options.most_replicas = most_replicas;
    if (roles && !fixed) {
      Result<FleetPlan> made = FleetPlan::Create(scenario, trace, options);
      if (!made.ok()) return Refuse(made.issues());
      fleet.emplace(std::move(made.value()));
    } else {
      Result<Plan> made = Plan::Create(scenario, trace, options);
      if (!made.ok()) return Refuse(made.issues());
      plan.emplace(std::move(made.value()));
    }
    return {};
  }

  bool Step(std::int64_t max_steps) {
    if (finished) return true;
    if (checks) {
      if (!checks->Advance(max_steps)) return false;
      if (std::string said = checks->Sentence(); !said.empty()) {
        point.state = DesignState::kNear;
        point.warnings.push_back(said.substr(1));
      }
      checks.reset();
      return finished = !BeginEnergy();
    }
    if (powered) {
      if (!powered->Advance(max_steps)) return false;
      ReadEnergy(powered->Snapshot(ReportDetail::kTotals));
      return finished = true;
    }
    if (!(plan ? plan->Advance(max_steps) : fleet->Advance(max_steps))) return false;
    AddPools();
    plan ? ReadPlan(plan->Answer()) : ReadFleet(fleet->Answer());
    point.seats_to_spare = plan && plan->Answer().seats_to_spare && SeatsAreOnlyACap();
    plan.reset(), fleet.reset();
    return finished = !BeginCheck() && !BeginEnergy();
  }

  Scenario Found() const {
    Scenario found = scenario;
    for (std::size_t i = 0; i < point.pools.size(); ++i) {
      found.cluster.pools[i].replicas = point.pools[i].replicas;
    }
    return found;
  }

  // False: it is not asked for, there is no design to ask it of, or its GPUs' power is not known.
  bool BeginEnergy() {
    if (!asks_energy || !point.Holds()) return false;
    for (const PoolSpec& pool : scenario.cluster.pools) {
      if (!KnowsPower(pool.hardware ? *pool.hardware : scenario.hardware)) return false;
    }
    Result<Simulation> made = Simulation::Create(Found(), trace);
    if (made.ok()) powered.emplace(std::move(made.value()));
    return powered.has_value();
  }

  void ReadEnergy(const Report& report) {
    ++point.runs;
    point.requests += report.arrived;
    const std::optional<PowerReport>& power = report.power;
    if (!power || !power->j_per_output_token) return;
    point.energy = {power->mean_w, *power->j_per_output_token, power->j_per_output_token_low,
                    power->j_per_output_token_high};
  }

  // A certain answer is run once more as `servecast run` would. False: it is none.
  bool BeginCheck() {
    if (point.rung != Rung::kCertain || !point.Holds()) return false;
    Check check{Count(point.pools[0].replicas, "replica"), Found()};
    if (point.pools.size() > 1) check.of = Replicas();
    checks.emplace(std::vector<Check>{std::move(check)}, trace);
    return true;
  }

  void ReadPlan(const PlanAnswer& answer) {
    point.runs = answer.runs;
    point.requests = answer.requests;
    const bool found =
        answer.outcome == PlanOutcome::kFound || answer.outcome == PlanOutcome::kUnbounded;
    const PlanPoint* place = nullptr;
    for (const PlanPoint& tried : answer.curve) {
      // The answer; if there is none, what comes nearest to one.
      const bool better = found ? Whole(tried.at) == Whole(answer.value)
                                : place == nullptr || tried.strain < place->strain;
      if (better) place = &tried;
    }
    if (place == nullptr || answer.outcome == PlanOutcome::kUnknown) return SayUnknown();
    if (answer.never) return SayNever(answer, *place);
    if (answer.outcome == PlanOutcome::kNone && most_replicas > 0 && place->low > 1)
      return GiveUp();
    DesignPoint::Pool& pool = point.pools[0];
    if (!fixed) {
      pool.replicas = pool.low = pool.high = Whole(place->at);
      Ends(answer, found, pool);
    }
    const bool least = pool.replicas <= scenario.cluster.pool().attention_data_parallel;
    if (found && !fixed && !least) point.binding = BindingOf(answer.binding);
    Read(*place);
  }

  void SayNever(const PlanAnswer& answer, const PlanPoint& place) {
    Read(place);
    point.state = DesignState::kMisses;
    point.reason = NeverSentence(scenario, answer.never, "no number of replicas");
    point.reason.pop_back();  // a reason is no sentence
  }

  // Nothing but who may run reads how many seats there are.
  bool SeatsAreOnlyACap() const {
    const EngineSpec& e = scenario.engine;
    const std::string& router = scenario.cluster.router;
    return scenario.cluster.pools.size() == 1 && !scenario.cluster.pool().engine &&
           FindScheduler(scenario.scheduler.policy).as_vllm && e.compat == Compat::kNone &&
           !e.speculative.On() && !e.kv_offload.On() && !MayReuse(*scenario.workload) &&
           IsOwnModel(ChosenLatencyModel(scenario).name) &&
           (router == "round_robin" || router == "random" || router == "least_outstanding");
  }

  // Of one run a place the ends are those of the places that were tried.
  void Ends(const PlanAnswer& answer, bool found, DesignPoint::Pool& pool) const {
    if (point.rung == Rung::kCertain && found) {
      pool.low = std::min(pool.replicas, Whole(answer.low));
      pool.high = std::max(pool.replicas, Whole(answer.high));
      return;
    }
    for (const PlanPoint& tried : answer.curve) {
      if (tried.low <= 1) pool.low = std::min(pool.low, Whole(tried.at));
      if (Whole(tried.at) >= pool.replicas && pool.high == pool.replicas && tried.high <= 1) {
        pool.high = Whole(tried.at);
      }
    }
  }

  void ReadFleet(const FleetAnswer& answer) {
    point.runs = answer.runs;
    point.requests = answer.requests;
    if (answer.outcome != PlanOutcome::kFound) {
      point.pools.clear();
      if (answer.outcome != PlanOutcome::kNone) return SayUnknown();
      point.state = DesignState::kMisses;
      point.reason = "no number of replicas that was tried keeps the targets";
      return;
    }
    const PlanPoint* place = nullptr;
    for (std::size_t i = 0; i < point.pools.size(); ++i) {
      const FleetAnswer::Pool& found = answer.pools[i];
      DesignPoint::Pool& pool = point.pools[i];
      pool.replicas = found.replicas;
      pool.low = std::min(found.low, found.replicas);
      pool.high = std::max(found.high, found.replicas);
      for (const PlanPoint& tried : found.curve) {
        if (Whole(tried.at) == found.replicas) place = &tried;
      }
    }
    point.binding = BindingOf(answer.binding);
    place == nullptr ? SayUnknown() : Read(*place);
  }

  void GiveUp() {
    point.pools.clear();
    point.given_up = true;
    point.state = DesignState::kUnknown;
    point.reason = Format("needs more than {}, which is over {} times what the cheapest costs",
                          Count(most_replicas, "replica"), ShortNumber(kNoAlternative));
  }

  void SayUnknown() {
    point.pools.clear();
    point.state = DesignState::kUnknown;
    point.reason = "too few requests have an answer to judge a target, or it takes too much work";
  }

  std::string BindingOf(const std::optional<std::size_t>& target) const {
    return target ? Target(scenario.slo[*target]) : "capacity";
  }

  void Read(const PlanPoint& place) {
    point.requests_per_s = place.requests_per_s;
    point.goodput_per_s = place.goodput_per_s;
    point.output_tokens_per_s = place.output_tokens_per_s;
    for (std::size_t k = 0; k < place.targets.size(); ++k) {
      const PlanTarget& found = place.targets[k];
      DesignPoint::Target& target = point.targets.emplace_back();
      target.metric = scenario.slo[k].metric;
      target.value = found.value;
      target.low = found.low;
      target.high = found.high;
      target.unserved_share = found.unserved_share;
      if (!found.value) continue;
      target.strain = Known(StrainOf(scenario.slo[k], *found.value, found.unserved_share));
      const std::optional<double> most =
          point.closest ? point.targets[*point.closest].strain : std::nullopt;
      if (target.strain && (!most || *target.strain > *most)) point.closest = k;
    }
    point.strain = Known(place.strain);
    point.strain_low = Known(place.low);
    point.strain_high = Known(place.high);
    SayState(place);
  }

  void SayState(const PlanPoint& place) {
    const std::string with = fixed ? "" : Format(" with {}", Replicas());
    if (place.overloaded) {
      point.state = DesignState::kOverloaded;
      point.reason = "completes less than comes" + with;
    } else if (place.low > 1) {
      point.state = DesignState::kMisses;
    } else {
      point.state = place.high <= 1 ? DesignState::kMeets : DesignState::kNear;
    }
    if (place.overloaded || place.strain <= 1 || !point.closest) return;
    const std::string target = Target(scenario.slo[*point.closest]) + ", " + Beyond(place.strain);
    point.reason = point.state == DesignState::kNear
                       ? Format("too close to call: {} in the mean of the runs{}", target, with)
                       : Format("misses {}{}", target, with);
  }

  std::string Replicas() const {
    return point.pools.size() > 1 ? InPools(point) : Count(point.pools[0].replicas, "replica");
  }

  Scenario scenario;
  Trace trace;
  bool fixed = false, asks_energy = false, finished = false;
  std::int64_t most_replicas = 0;  // that are tried; 0: any number
  DesignPoint point;
  std::optional<Plan> plan;
  std::optional<FleetPlan> fleet;
  std::optional<Checks> checks;
  std::optional<Simulation> powered;  // of the answer, for its energy
};

DesignPlan::DesignPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
DesignPlan::DesignPlan(DesignPlan&&) noexcept = default;
DesignPlan& DesignPlan::operator=(DesignPlan&&) noexcept = default;
DesignPlan::~DesignPlan() = default;

Result<DesignPlan> DesignPlan::Create(const DesignTask& task, Trace trace) {
  auto state = std::make_unique<State>(task, std::move(trace));
  if (Issues missing = state->Start(task); !missing.empty()) return missing;
  return DesignPlan(std::move(state));
}

bool DesignPlan::Advance(std::int64_t max_steps) { return state_->Step(max_steps); }

double DesignPlan::Progress() const {
  const State& s = *state_;
  if (s.finished) return 1;
  constexpr double kOfPlan = 0.8;  // the rest is the check, and the run for energy
  const double done = s.plan ? s.plan->Progress() : s.fleet ? s.fleet->Progress() : 1;
  const double checked = s.powered ? 1 : s.checks ? s.checks->Progress() : 0;
  return std::min(0.99, kOfPlan * done + (1 - kOfPlan) * checked);
}

DesignPoint DesignPlan::Point() const { return state_->point; }

}  // namespace servecast
