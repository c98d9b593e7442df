#include "io/vidur_names.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.h"

namespace servecast {
namespace {

// What Vidur's definitions are made of; times in s.
struct Request {
  double e2e, delay, ttft, executed, preempted, prompt, output, restarts, since_last;
};

struct Maker {
  std::string_view name;
  double (*value)(const Request&);
};

constexpr Maker kRequest[] = {
    {"request_e2e_time", [](const Request& r) { return r.e2e; }},
    {"request_e2e_time_normalized", [](const Request& r) { return r.e2e / r.output; }},
    {"request_execution_time", [](const Request& r) { return r.executed; }},
    {"request_execution_time_normalized", [](const Request& r) { return r.executed / r.output; }},
    {"request_preemption_time", [](const Request& r) { return r.preempted; }},
    {"request_scheduling_delay", [](const Request& r) { return r.delay; }},
    {"request_execution_plus_preemption_time",
     [](const Request& r) { return r.executed + r.preempted; }},
    {"request_execution_plus_preemption_time_normalized",
     [](const Request& r) { return (r.executed + r.preempted) / r.output; }},
    {"prefill_e2e_time", [](const Request& r) { return r.ttft; }},
    {"prefill_time_execution_plus_preemption", [](const Request& r) { return r.ttft - r.delay; }},
    {"prefill_time_execution_plus_preemption_normalized",
     [](const Request& r) { return (r.ttft - r.delay) / r.prompt; }},
    {"decode_time_execution_plus_preemption_normalized",
     [](const Request& r) { return (r.e2e - r.ttft) / r.output; }},
    {"request_inter_arrival_delay", [](const Request& r) { return r.since_last; }},
    {"request_num_tokens", [](const Request& r) { return r.prompt + r.output; }},
    {"request_num_prefill_tokens", [](const Request& r) { return r.prompt; }},
    {"request_num_decode_tokens", [](const Request& r) { return r.output; }},
    {"request_pd_ratio", [](const Request& r) { return r.prompt / r.output; }},
    {"request_num_restarts", [](const Request& r) { return r.restarts; }},
};

void Count(const StageSpan& span, VidurTimes::Of& of) {
  if (of.until >= 0) of.between += std::max<TimeNs>(0, span.start - of.until);
  of.executed += std::max<TimeNs>(0, span.end - std::max(span.start, of.until));
  of.until = std::max(of.until, span.end);
}

}  // namespace

void VidurTimes::OnStep(const StepRecord& step) {
  for (const StepMember& member : step.members) {
    const auto r = static_cast<std::size_t>(member.id);
    if (r >= all_.size()) all_.resize(std::max(r + 1, 2 * all_.size()));
    Of& of = all_[r];
    if (step.stages.empty()) {
      Count({step.start, step.end}, of);
      continue;
    }
    if (of.until < 0) of.for_stage = step.start - step.scheduled;
    for (const StageSpan& span : step.stages) Count(span, of);
  }
}

std::string VidurRequestHeader() {
  std::string header = "Request Id";
  for (const Maker& maker : kRequest) header += "," + std::string(maker.name);
  return header + "\n";
}

std::string VidurRequestRow(const Report& report, const VidurTimes& times, std::size_t i) {
  const auto of = [&](std::string_view name) { return report.ColumnOf(name)[i]; };
  if (std::isnan(of("e2e_ms"))) return "";
  const VidurTimes::Of& of_steps = times.OfRequest(i);
  Request r{};
  r.e2e = of("e2e_ms") / 1e3;
  r.delay = of("scheduling_delay_ms") / 1e3 - static_cast<double>(of_steps.for_stage) / 1e9;
  r.ttft = of("ttft_ms") / 1e3;
  r.executed = static_cast<double>(of_steps.executed) / 1e9;
  r.preempted = static_cast<double>(of_steps.between) / 1e9;
  r.prompt = of("prompt_tokens");
  r.output = of("output_tokens");
  r.restarts = of("preemptions");
  r.since_last = i == 0 ? of("arrival_s") : of("arrival_s") - report.ColumnOf("arrival_s")[i - 1];
  std::string row = std::to_string(i);
  for (const Maker& maker : kRequest) {
    const double value = maker.value(r);
    row += "," + (std::isnan(value) ? std::string() : NumberText(value));
  }
  return row + "\n";
}

std::string VidurBatchHeader() {
  return "Batch Id,batch_num_tokens,batch_num_prefill_tokens,batch_num_decode_tokens,batch_size,"
         "batch_execution_time\n";
}

std::string VidurBatchRow(std::int64_t batch, const StepRecord& step, std::int64_t tokens) {
  return Format("{},{},{},{},{},{}\n", batch, tokens, step.prefill_tokens,
                tokens - step.prefill_tokens, step.members.size(),
                NumberText(static_cast<double>(step.end - step.start) / 1e9));
}

}  // namespace servecast
