// See trace_writer.h.
#include "calibrate/trace_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace servecast {
namespace {

constexpr std::int64_t kEventsOfLine = 256;

// Attributes of an event or a span, as the exporter writes them.
class Attributes {
 public:
  Attributes& Whole(const char* key, std::int64_t value) {
    return Put(key, Format("{{\"intValue\":\"{}\"}}", value));
  }
  Attributes& Number(const char* key, double value) {
    return Put(key, Format("{{\"doubleValue\":{}}}", NumberText(value)));
  }
  Attributes& Text(const char* key, const std::string& value) {
    return Put(key, Format("{{\"stringValue\":{}}}", nlohmann::json(value).dump()));
  }
  std::string List() const { return "[" + text_ + "]"; }

 private:
  Attributes& Put(const char* key, const std::string& value) {
    text_ += Format("{}{{\"key\":\"{}\",\"value\":{}}}", text_.empty() ? "" : ",", key, value);
    return *this;
  }
  std::string text_;
};

std::string EventText(const char* name, TimeNs at, const Attributes& attributes) {
  return Format("{{\"timeUnixNano\":\"{}\",\"name\":\"{}\",\"attributes\":{}}}", at, name,
                attributes.List());
}

}  // namespace

StepTraceWriter::StepTraceWriter(Write write, std::string scenario, std::int64_t kv_blocks,
                                 std::int64_t block_size, std::int64_t rich_every)
    : write_(std::move(write)),
      scenario_(std::move(scenario)),
      blocks_(kv_blocks),
      block_size_(block_size),
      rich_every_(rich_every) {}

void StepTraceWriter::Watch(const RequestTable& requests, const RequestResults& results) {
  requests_ = &requests;
  results_ = &results;
  paths_.resize(static_cast<std::size_t>(requests.size()));
}

void StepTraceWriter::OnStep(const StepRecord& step) {
  std::int64_t prefills = 0, prefill_tokens = 0, tokens = 0;
  std::vector<bool> is_prefill;
  for (const StepMember& member : step.members) {
    const auto r = static_cast<std::size_t>(member.id);
    Path& path = paths_[r];
    if (path.first_step < 0) path.first_step = step.index;
    if (std::exchange(path.out, false)) path.resumed.push_back(step.start);
    // All that is known of it but the last token is computed: it decodes.
    const std::int64_t known = requests_->prompt_tokens[r] + path.sampled;
    const bool decodes = path.sampled > 0 && member.computed_before + 1 >= known;
    is_prefill.push_back(!decodes);
    prefills += decodes ? 0 : 1;
    prefill_tokens += decodes ? 0 : member.tokens;
    tokens += member.tokens;
  }
  for (const RequestId id : step.preempted) {
    Path& path = paths_[static_cast<std::size_t>(id)];
    path.out = true;
    path.preempted.push_back(step.scheduled);
  }
  const auto members = static_cast<std::int64_t>(step.members.size());
  Attributes of;
  of.Whole("step.id", step.index)
      .Whole("step.ts_formed_ns", step.scheduled)
      .Whole("step.ts_start_ns", step.start)
      .Whole("step.ts_end_ns", step.end)
      .Number("step.duration_us", static_cast<double>(step.end - step.start) * 1e-3)
      .Whole("queue.running_depth", step.running_after_schedule)
      .Whole("queue.waiting_depth", step.waiting_after_schedule)
      .Whole("batch.num_prefill_reqs", prefills)
      .Whole("batch.num_decode_reqs", members - prefills)
      .Whole("batch.scheduled_tokens", tokens)
      .Whole("batch.prefill_tokens", prefill_tokens)
      .Whole("batch.decode_tokens", tokens - prefill_tokens)
      .Whole("batch.num_finished", static_cast<std::int64_t>(step.finished.size()))
      .Whole("batch.num_preempted", static_cast<std::int64_t>(step.preempted.size()))
      .Number("kv.usage_gpu_ratio", static_cast<double>(step.used_after_schedule) /
                                        static_cast<double>(std::max<std::int64_t>(1, blocks_)))
      .Whole("kv.blocks_total_gpu", blocks_)
      .Whole("kv.blocks_free_gpu", blocks_ - step.used_after_schedule);
  events_ += (events_.empty() ? "" : ",") + EventText("step.BATCH_SUMMARY", step.start, of);
  ++pending_;
  for (std::size_t i = 0; i < step.members.size(); ++i) {
    if (step.index % rich_every_ == 0) WriteSnapshot(step, step.members[i], is_prefill[i]);
    paths_[static_cast<std::size_t>(step.members[i].id)].sampled += step.members[i].sampled;
  }
  if (pending_ >= kEventsOfLine) Flush("vllm.scheduler.step", "scheduler_steps", "[]");
}

void StepTraceWriter::WriteSnapshot(const StepRecord& step, const StepMember& member,
                                    bool prefill) {
  const auto r = static_cast<std::size_t>(member.id);
  const std::int64_t prompt = requests_->prompt_tokens[r];
  const std::int64_t cached = results_->cached_tokens[r];
  Attributes of;
  of.Whole("step.id", step.index)
      .Text("request.id", Format("{}", member.id))
      .Text("request.phase", prefill ? "PREFILL" : "DECODE")
      .Whole("request.num_prompt_tokens", prompt)
      .Whole("request.num_computed_tokens", member.computed_before)
      .Whole("request.num_output_tokens", paths_[r].sampled)
      .Whole("request.num_preemptions", static_cast<std::int64_t>(paths_[r].preempted.size()))
      .Whole("request.scheduled_tokens_this_step", member.tokens)
      .Whole("kv.blocks_allocated_gpu",
             (member.computed_before + member.tokens + block_size_ - 1) / block_size_)
      .Whole("kv.blocks_cached_gpu", cached / block_size_)
      .Whole("request.effective_prompt_len", prompt - cached);
  events_ += "," + EventText("step.REQUEST_SNAPSHOT", step.start, of);
  ++pending_;
}

void StepTraceWriter::WriteJourney(std::size_t r) {
  const Path& path = paths_[r];
  const auto event = [this](const char* name, TimeNs at, Attributes of) {
    if (at < 0) return;
    events_ += (events_.empty() ? "" : ",") + EventText(name, at, of.Whole("ts.monotonic", at));
  };
  const std::string id = Attributes().Text("request.id", Format("{}", r)).List();
  const RequestResults& results = *results_;
  const bool complete = results.state[r] == RequestState::kCompleted;
  const auto prompt = [this, r] {
    return Attributes().Whole("prefill_total_tokens", requests_->prompt_tokens[r]);
  };
  event("ARRIVED", requests_->arrival[r], prompt());
  event("FIRST_RESPONSE", results.first_token[r], {});
  if (complete) event("DEPARTED", results.completion[r], {});
  Flush("vllm.api", "llm_request", id);
  event("QUEUED", results.enqueue[r], prompt());
  event("SCHEDULED", results.first_scheduled[r],
        Attributes().Text("schedule.kind", "FIRST").Whole("scheduler.step", path.first_step));
  for (const TimeNs at : path.preempted) event("PREEMPTED", at, {});
  for (const TimeNs at : path.resumed) {
    event("SCHEDULED", at, Attributes().Text("schedule.kind", "RESUME"));
  }
  event("FIRST_TOKEN", results.first_token[r], {});
  if (complete) {
    event("FINISHED", results.completion[r],
          Attributes()
              .Text("finish.status", "length")
              .Whole("decode_done_tokens", results.generated[r]));
  }
  Flush("vllm.scheduler", "llm_core", id);
}

void StepTraceWriter::Finish() {
  Flush("vllm.scheduler.step", "scheduler_steps", "[]");
  for (std::size_t r = 0; r < paths_.size(); ++r) {
    // Of a request that never came there is nothing to say.
    if (requests_->arrival[r] >= 0 && results_->state[r] != RequestState::kPending) {
      WriteJourney(r);
    }
  }
}

void StepTraceWriter::Flush(const char* scope, const char* span, const std::string& attributes) {
  pending_ = 0;
  if (events_.empty()) return;
  const std::string resource =
      Attributes().Text("service.name", "servecast").Text("servecast.scenario", scenario_).List();
  write_(
      Format("{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":{}}},\"scopeSpans\":[{{"
             "\"scope\":{{\"name\":\"{}\"}},\"spans\":[{{\"name\":\"{}\",\"attributes\":{},"
             "\"events\":[{}]}}]}}]}}]}}\n",
             resource, scope, span, attributes, events_));
  events_.clear();
}

}  // namespace servecast
