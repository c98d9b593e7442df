#include "io/time_line.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace servecast {
namespace {

// Exactly, in a unit of 10^digits ns.
std::string In(TimeNs ns, std::size_t digits) {
  std::string text = std::to_string(ns);
  if (text.size() <= digits) text.insert(0, digits + 1 - text.size(), '0');
  return text.insert(text.size() - digits, 1, '.');
}
std::string Ms(TimeNs ns) { return In(ns, 6); }
std::string Us(TimeNs ns) { return In(ns, 3); }

constexpr int kRequestsProcess = 1'000'000;  // beyond all replicas
constexpr const char* kBounds[] = {"overhead", "compute", "bandwidth"};

const char* PhaseOf(const StepRecord& step, std::int64_t tokens) {
  if (step.prefill_tokens == 0) return "decode";
  return tokens == step.prefill_tokens ? "prefill" : "prefill + decode";
}

}  // namespace

TimeLine::TimeLine(Write write) : write_(std::move(write)) {
  write_("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  WriteEvent(Format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"requests"}}}})",
                    kRequestsProcess));
}

void TimeLine::WriteEvent(const std::string& event) {
  if (!first_event_) write_(",\n");
  write_(event);
  first_event_ = false;
}

// A process and its threads, once.
void TimeLine::NameReplica(std::int64_t replica, std::size_t stages) {
  const auto number = static_cast<std::size_t>(replica);
  if (number >= named_.size()) named_.resize(number + 1, false);
  if (named_[number]) return;
  named_[number] = true;
  WriteEvent(Format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"replica {}"}}}})",
                    replica, replica));
  for (std::size_t stage = 0; stage < stages; ++stage) {
    NameThread(replica, stage, Format("stage {}", stage));
  }
}

void TimeLine::NameThread(std::int64_t replica, std::size_t thread, const std::string& name) {
  WriteEvent(Format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
                    replica, thread, name));
}

void TimeLine::OnStep(const StepRecord& step) {
  std::int64_t tokens = 0;
  for (const StepMember& member : step.members) tokens += member.tokens;
  const std::string at = Us(step.start);
  std::vector<StageSpan> stages = step.stages;
  if (stages.empty()) stages.push_back({step.start, step.end});
  NameReplica(step.replica, stages.size());
  const std::size_t first = step.stages.empty() ? LaneOf(step) : 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const StageSpan& span = stages[stage];
    WriteEvent(Format(
        R"({{"ph":"X","pid":{},"tid":{},"name":"{}","cat":"step","ts":{},"dur":{},"args":{{"batch":{},"batch_size":{},"prefill_tokens":{},"decode_tokens":{},"bound":"{}","interference_ms":{}}}}})",
        step.replica, first + stage, PhaseOf(step, tokens), Us(span.start),
        Us(span.end - span.start), step.index, step.members.size(), step.prefill_tokens,
        tokens - step.prefill_tokens, kBounds[static_cast<std::size_t>(step.bound)],
        Ms(step.interference)));
  }
  WriteEvent(Format(
      R"({{"ph":"C","pid":{},"name":"requests","ts":{},"args":{{"running":{},"waiting":{}}}}})",
      step.replica, at, step.running_after_schedule, step.waiting_after_schedule));
  WriteEvent(Format(R"({{"ph":"C","pid":{},"name":"kv_blocks","ts":{},"args":{{"used":{}}}}})",
                    step.replica, at, step.used_after_schedule));
  WriteEvent(Format(R"({{"ph":"C","pid":{},"name":"batch_tokens","ts":{},"args":{{"tokens":{}}}}})",
                    step.replica, at, tokens));
  for (const RequestId request : step.preempted) Mark("preempted", request, step.start);
  for (const StepMember& member : step.members) {
    if (member.kind != MemberKind::kContinued) Mark("scheduled", member.id, step.start);
  }
  for (const RequestId request : step.finished) Mark("left", request, step.end);
}

// An instant on a request's track.
void TimeLine::Mark(const char* name, RequestId request, TimeNs time) {
  WriteEvent(Format(R"({{"ph":"n","pid":{},"cat":"request","id":{},"name":"{}","ts":{}}})",
                    kRequestsProcess, request, name, Us(time)));
}

// The thread of a step without stages. Steps of BLIS's rules may overlap: then the second one has a
// thread of its own.
std::size_t TimeLine::LaneOf(const StepRecord& step) {
  const auto number = static_cast<std::size_t>(step.replica);
  if (number >= lanes_.size()) lanes_.resize(number + 1);
  std::vector<TimeNs>& ends = lanes_[number];
  std::size_t lane = 0;
  while (lane < ends.size() && ends[lane] > step.start) ++lane;
  if (lane == ends.size()) {
    ends.push_back(0);
    if (lane > 0) NameThread(step.replica, lane, Format("overlapping steps {}", lane));
  }
  ends[lane] = step.end;
  return lane;
}

// On a track of its own: its phases, one after the other.
void TimeLine::WriteRequest(const Report& report, std::size_t request) {
  const auto of = [&](std::string_view name) { return report.ColumnOf(name)[request]; };
  const double arrival_s = of("arrival_s"), prefilled_s = of("prefilled_s");
  double from = 0;
  const auto phase = [&](const char* name, double until) {
    if (std::isnan(until) || std::isnan(from)) return;
    const auto mark = [&](const char* kind, double ms) {
      const double ns = arrival_s * 1e9 + ms * 1e6;
      WriteEvent(Format(R"({{"ph":"{}","pid":{},"cat":"request","id":{},"name":"{}","ts":{}}})",
                        kind, kRequestsProcess, request, name,
                        Us(static_cast<TimeNs>(std::nearbyint(ns)))));
    };
    mark("b", from);
    mark("e", until);
    from = until;
  };
  phase("queue", of("scheduling_delay_ms"));
  if (std::isnan(prefilled_s)) {
    phase("prefill", of("ttft_ms"));
  } else {  // one replica prefills, another decodes
    const double done = (prefilled_s - arrival_s) * 1e3;
    const double starts = (of("transfer_start_s") - arrival_s) * 1e3;
    const double transfer = of("transfer_ms");
    phase("prefill", done);
    phase("hand-over", starts);
    phase("KV transfer", starts + transfer);
    phase("hand-over", done + of("handover_ms") + transfer);
  }
  phase("decode", of("e2e_ms"));
}

void TimeLine::Finish(const Report& report, TimeNs until) {
  const std::vector<double>& arrival = report.ColumnOf("arrival_s");
  const double last = static_cast<double>(until) / 1e9;
  for (std::size_t i = 0; i < arrival.size(); ++i) {
    if (arrival[i] <= last) WriteRequest(report, i);
  }
  write_("\n]}\n");
}

}  // namespace servecast
