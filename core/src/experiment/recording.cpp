#include "experiment/recording.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "io/time_line.h"
#include "metrics/records.h"
#include "metrics/time_split.h"
#include "metrics/work.h"
#include "serving/cluster/deployment.h"
#include "serving/hooks.h"

namespace servecast {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double InMs(TimeNs ns) { return static_cast<double>(ns) / 1e6; }

// What a step's shares of the GPU's peaks need to be known.
struct PoolPeaks {
  ModelCost cost;
  HardwareSpec hardware;
  std::vector<std::int64_t> experts_read;
  bool known = false;  // of one stage, and not by rules that price steps otherwise
};

enum StepField : std::size_t {
  kReplica,
  kPool,
  kStart,
  kEnd,
  kPrefillTokens,
  kDecodeTokens,
  kPrefills,
  kDecodes,
  kRunning,
  kWaiting,
  kKvUsage,
  kBound,
  kPreempted,
  kFinished,
  kComputeShare,
  kBandwidthShare,
  kStepFields
};

}  // namespace

const std::vector<Column>& StepColumns() {
  static const std::vector<Column> kColumns = {
      {"step_replica", "", "step", "replica that ran it, counted from 0"},
      {"step_pool", "", "step", "pool of that replica, counted from 0"},
      {"step_start_s", "s", "step", "when it began"},
      {"step_end_s", "s", "step", "when its tokens were available"},
      {"step_prefill_tokens", "tokens", "step", "tokens of prompts"},
      {"step_decode_tokens", "tokens", "step", "tokens of decodes"},
      {"step_prefills", "requests", "step", "requests whose prompt it computed, or a part of it"},
      {"step_decodes", "requests", "step", "requests that decode in it"},
      {"step_running", "requests", "step", "requests in the running list when it was formed"},
      {"step_waiting", "requests", "step", "requests in the queue when it was formed"},
      {"step_kv_usage", "1", "step", "share of the replica's KV blocks in use when it was formed"},
      {"step_bound", "", "step", "most of its time: overhead 0, compute 1, bandwidth 2"},
      {"step_preempted", "requests", "step", "requests preempted when it was formed"},
      {"step_finished", "requests", "step", "requests that made their last token in it"},
      {"step_compute_share", "1", "step", "FLOPs that it needs, of the GPU's peak over its time"},
      {"step_bandwidth_share", "1", "step", "bytes that it needs, of the GPU's peak over its time"},
  };
  return kColumns;
}

struct Recording::State : StepObserver {
  std::vector<PoolPeaks> peaks;
  std::vector<std::size_t> pool_of;  // by replica
  std::int64_t from = 0, most = 0;
  const RequestTable* requests = nullptr;
  std::array<std::vector<double>, kStepFields> columns;
  std::vector<std::int32_t> chosen;
  std::int64_t complete = 0;
  bool splits = false;
  std::string text;  // of the time line
  TimeNs last_end = 0;
  std::optional<TimeLine> time_line;
  std::optional<Simulation> simulation;

  bool IsFull() const { return static_cast<std::int64_t>(columns[kReplica].size()) >= most; }

  void OnStep(const StepRecord& step) override {
    if (step.start < from || IsFull()) return;
    if (time_line) time_line->OnStep(step);
    last_end = std::max(last_end, step.end);
    const auto replica = static_cast<std::size_t>(step.replica);
    const std::size_t pool = replica < pool_of.size() ? pool_of[replica] : 0;
    Work work;
    work.steps = kStepUnit;
    std::int64_t prefills = 0, sampled = 0, tokens = 0;
    for (const StepMember& member : step.members) {
      const std::int64_t prompt = requests->prompt_tokens[static_cast<std::size_t>(member.id)];
      const bool decodes = member.computed_before >= prompt && member.tokens == 1;
      prefills += decodes ? 0 : 1;
      sampled += member.sampled ? 1 : 0;
      tokens += member.tokens;
      if (decodes) {
        work.decode_keys += member.computed_before + 1;
      } else {
        work.prefill_keys += member.computed_before + member.tokens;
        work.prefill_pairs += WideInt{member.tokens} * member.computed_before +
                              WideInt{member.tokens} * (member.tokens + 1) / 2;
      }
    }
    work.tokens = tokens;
    work.without_head = sampled == 0 ? kStepUnit : 0;
    const PoolPeaks& peak = peaks[pool];
    const double seconds = Seconds(step.end - step.start);
    PeakUse use{kNan, kNan};
    if (peak.known && seconds > 0) {
      if (!peak.experts_read.empty()) {
        const auto at = static_cast<std::size_t>(tokens);
        work.experts = peak.experts_read[std::min(at, peak.experts_read.size() - 1)];
      }
      use = UseOf(work, sampled, seconds, peak.cost, peak.hardware);
    }
    const auto members = static_cast<std::int64_t>(step.members.size());
    const std::array<double, kStepFields> row = {
        static_cast<double>(step.replica),
        static_cast<double>(pool),
        Seconds(step.start),
        Seconds(step.end),
        static_cast<double>(step.prefill_tokens),
        static_cast<double>(tokens - step.prefill_tokens),
        static_cast<double>(prefills),
        static_cast<double>(members - prefills),
        static_cast<double>(step.running_after_schedule),
        static_cast<double>(step.waiting_after_schedule),
        peak.cost.pool_blocks > 0 ? static_cast<double>(step.used_after_schedule) /
                                        static_cast<double>(peak.cost.pool_blocks)
                                  : kNan,
        static_cast<double>(step.bound),
        static_cast<double>(step.preempted.size()),
        static_cast<double>(step.finished.size()),
        use.mfu,
        use.bandwidth};
    for (std::size_t field = 0; field < row.size(); ++field) columns[field].push_back(row[field]);
  }
};

Recording::Recording(std::unique_ptr<State> state) : state_(std::move(state)) {}
Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;
Recording::~Recording() = default;

Result<Recording> Recording::Create(Scenario scenario, Trace trace, RecordingWindow window) {
  auto state = std::make_unique<State>();
  state->from = static_cast<TimeNs>(std::nearbyint(window.from_s * 1e9));
  state->most = window.most_steps;
  state->splits = !IsBlis(scenario.engine.compat);
  Result<Deployment> deployment = Deploy(scenario);
  if (!deployment.ok()) return deployment.issues();
  for (const Pool& pool : deployment.value().pools) {
    for (std::int64_t i = 0; i < pool.spec().replicas; ++i) {
      state->pool_of.push_back(state->peaks.size());
    }
    state->peaks.push_back(
        {.cost = pool.cost,
         .hardware = pool.scenario.hardware,
         .experts_read = ExpertsRead(pool.cost, pool.scenario.engine.max_num_batched_tokens),
         .known = pool.stages.empty() && state->splits});
  }
  SimulationHooks hooks;
  hooks.observer = state.get();
  Result<Simulation> made =
      Simulation::Create(std::move(scenario), std::move(trace), std::move(hooks));
  if (!made.ok()) return made.issues();
  state->simulation.emplace(std::move(made.value()));
  state->requests = &state->simulation->Attempts().requests;
  return Recording(std::move(state));
}

bool Recording::Advance(std::int64_t max_steps) { return state_->simulation->Advance(max_steps); }
double Recording::Progress() const { return state_->simulation->Progress(); }
void Recording::KeepTimeLine() {
  State& state = *state_;
  state.time_line.emplace([&state](std::string_view text) { state.text += text; });
}

std::string Recording::TakeTimeLine(bool ends) {
  State& state = *state_;
  if (ends && state.time_line) {
    state.time_line->Finish(state.simulation->Snapshot(), state.last_end);
    state.time_line.reset();
  }
  return std::exchange(state.text, {});
}

bool Recording::WindowIsFull() const { return state_->IsFull(); }

const std::vector<double>& Recording::StepColumn(std::string_view name) const {
  static const std::vector<double> kEmpty;
  for (std::size_t i = 0; i < StepColumns().size(); ++i) {
    if (StepColumns()[i].name == name) return state_->columns[i];
  }
  return kEmpty;
}

void Recording::Choose(std::string_view order, std::int64_t first, std::int64_t count) {
  const RunRecords run = state_->simulation->Attempts();
  std::vector<std::int32_t>& chosen = state_->chosen;
  chosen.clear();
  for (std::size_t i = 0; i < run.results.state.size(); ++i) {
    if (run.results.state[i] == RequestState::kCompleted) {
      chosen.push_back(static_cast<std::int32_t>(i));
    }
  }
  state_->complete = static_cast<std::int64_t>(chosen.size());
  const std::vector<TimeNs>& arrival = run.requests.arrival;
  // Smallest first; of equal ones in the order of their numbers.
  const auto key = [&](std::int32_t request) {
    const auto i = static_cast<std::size_t>(request);
    if (order == "ttft") return arrival[i] - run.results.first_token[i];
    if (order == "e2e") return arrival[i] - run.results.completion[i];
    return arrival[i];
  };
  const std::int64_t passed = std::clamp<std::int64_t>(first, 0, state_->complete);
  const std::int64_t taken = std::clamp<std::int64_t>(count, 0, state_->complete - passed);
  const auto begin = static_cast<std::ptrdiff_t>(passed);
  const auto end = static_cast<std::ptrdiff_t>(passed + taken);
  std::partial_sort(
      chosen.begin(), chosen.begin() + end, chosen.end(),
      [&](std::int32_t a, std::int32_t b) { return key(a) != key(b) ? key(a) < key(b) : a < b; });
  chosen.resize(static_cast<std::size_t>(end));
  chosen.erase(chosen.begin(), chosen.begin() + begin);
  chosen.shrink_to_fit();
}

std::int64_t Recording::Complete() const { return state_->complete; }

std::vector<double> Recording::RequestColumn(std::string_view name) const {
  const RunRecords run = state_->simulation->Attempts();
  const RequestResults& results = run.results;
  const auto value = [&](std::size_t i) -> double {
    const auto since = [&](TimeNs time) {
      return time >= 0 ? InMs(time - run.requests.arrival[i]) : kNan;
    };
    if (name == "request") return run.requests.RequestOf(static_cast<RequestId>(i));
    if (name == "arrival_s") return Seconds(run.requests.arrival[i]);
    if (name == "replica") return results.ReplicaOf(i);
    if (name == "prompt_tokens") return run.requests.prompt_tokens[i];
    if (name == "cached_tokens") return results.cached_tokens[i];
    if (name == "output_tokens") return results.generated[i];
    if (name == "preemptions") return results.preemptions[i];
    if (name == "scheduling_delay_ms") return since(results.first_scheduled[i]);
    if (name == "ttft_ms") return since(results.first_token[i]);
    if (name == "e2e_ms") return since(results.completion[i]);
    if (name == "prefill_replica" || name == "prefilled_s" || name == "transfer_start_s") {
      if (!results.HandedOver(i)) return kNan;
      const HandOver& over = results.hand_overs[i];
      if (name == "prefill_replica") return over.prefill_replica;
      if (name == "prefilled_s") return Seconds(over.prefilled);
      return over.reserved >= 0 ? Seconds(over.reserved) : kNan;
    }
    if (!state_->splits) return kNan;
    for (std::size_t part = 0; part < kTimeParts.size(); ++part) {
      if (name != std::string(TimeSplitReport::kNames[part]) + "_ms") continue;
      return InMs(TimesOf(run.requests, results, run.token_delay, i).e2e.*kTimeParts[part]);
    }
    return kNan;
  };
  std::vector<double> column;
  column.reserve(state_->chosen.size());
  for (const std::int32_t request : state_->chosen) {
    column.push_back(value(static_cast<std::size_t>(request)));
  }
  return column;
}

}  // namespace servecast
