// See step_trace.h. Lines are parsed one at a time, so that memory follows what is kept of them.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/text.h"
#include "calibrate/step_trace.h"
#include "io/issues.h"
#include "io/json_document.h"

namespace servecast {

using Json = nlohmann::json;

namespace {

constexpr double kMostTokens = 1e9;
constexpr std::int64_t kLatest = INT64_MAX / 2;  // ns: sums of times and durations stay whole
constexpr std::size_t kLookAhead = std::size_t{1} << 16;

const Json* Member(const Json& of, const char* key) {
  if (!of.is_object()) return nullptr;
  const auto at = of.find(key);
  return at == of.end() ? nullptr : &*at;
}

// Of {"intValue": "12"} and the like what is inside.
const Json* ValueOf(const Json& attribute) {
  const Json* value = Member(attribute, "value");
  if (value == nullptr) return nullptr;
  for (const char* kind : {"intValue", "doubleValue", "stringValue", "boolValue"}) {
    if (const Json* inside = Member(*value, kind)) return inside;
  }
  return nullptr;
}

std::optional<std::int64_t> WholeOf(const Json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number() && std::fabs(value.get<double>()) < 9e15 &&
      std::floor(value.get<double>()) == value.get<double>()) {
    return static_cast<std::int64_t>(value.get<double>());
  }
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string TextIn(const Json& list, std::initializer_list<const char*> keys) {
  if (!list.is_array()) return "";
  for (const char* key : keys) {
    for (const Json& attribute : list) {
      const Json* name = Member(attribute, "key");
      const Json* value = ValueOf(attribute);
      if (name == nullptr || value == nullptr || *name != key) continue;
      return value->is_string() ? value->get<std::string>() : CompactJson(*value);
    }
  }
  return "";
}

// The attributes of an event; those that cannot be are issues.
class Event {
 public:
  Event(const Json& json, std::string where, Issues& issues)
      : json_(json), where_(std::move(where)), issues_(issues) {}

  std::string Text(std::initializer_list<const char*> keys) const {
    const Json* list = Member(json_, "attributes");
    return list == nullptr ? "" : TextIn(*list, keys);
  }
  double Number(const char* key, double most, double fallback) {
    const Json* value = Find(key);
    if (value == nullptr) return fallback;
    const auto whole = WholeOf(*value);
    const double number = value->is_number() ? value->get<double>()
                          : whole            ? static_cast<double>(*whole)
                                             : -1;
    if (number >= 0 && number <= most) return number;
    Refuse(key, value, Format("a number from 0 to {}", NumberText(most)));
    return fallback;
  }
  double Needed(const char* key, double most = kMostTokens) {
    if (Find(key) == nullptr) Refuse(key, nullptr, "a number");
    return Number(key, most, 0);
  }
  std::int64_t Whole(const char* key, std::int64_t fallback) {
    const Json* value = Find(key);
    if (value == nullptr) return fallback;
    const auto whole = WholeOf(*value);
    if (whole && *whole >= 0 && *whole <= kLatest) return *whole;
    Refuse(key, value, Format("a whole number from 0 to {}", kLatest));
    return fallback;
  }
  std::int64_t NeededWhole(const char* key) {
    if (Find(key) == nullptr) Refuse(key, nullptr, "a whole number from 0 up");
    return Whole(key, 0);
  }
  // By the monotonic clock, else by that of the span.
  TimeNs Time() {
    if (Find("ts.monotonic") != nullptr) return Whole("ts.monotonic", 0);
    const Json* value = Member(json_, "timeUnixNano");
    const auto whole = value == nullptr ? std::nullopt : WholeOf(*value);
    if (whole && *whole >= 0 && *whole <= kLatest) return *whole;
    Refuse("timeUnixNano", value, "ns, or ts.monotonic");
    return 0;
  }
  void Refuse(const char* key, const Json* found, std::string_view allowed) {
    issues_.push_back(
        {where_ + ", " + key,
         Format("{}, allowed {}", found == nullptr ? "missing" : "found " + ShortJson(*found),
                allowed)});
  }

 private:
  const Json* Find(const char* key) const {
    const Json* list = Member(json_, "attributes");
    if (list == nullptr || !list->is_array()) return nullptr;
    for (const Json& attribute : *list) {
      const Json* name = Member(attribute, "key");
      if (name != nullptr && name->is_string() && *name == key) return ValueOf(attribute);
    }
    return nullptr;
  }

  const Json& json_;
  std::string where_;
  Issues& issues_;
};

struct Transfer {
  TimeNs at = 0;
  std::int64_t step = -1;
  double blocks = 0;
};

class TraceFile {
 public:
  explicit TraceFile(const std::string& name) { trace_.name = name; }

  void Add(const Json& document, const std::string& where) {
    const Json* resources = Member(document, "resourceSpans");
    if (resources == nullptr) {
      // Logs and metrics of the same collector.
      for (const char* other : {"resourceLogs", "resourceMetrics"}) {
        if (Member(document, other) != nullptr) return;
      }
      issues_.push_back({where, "found no resourceSpans, allowed a line of the OTLP exporter"});
      return;
    }
    Each(*resources, where + "/resourceSpans", [this](const Json& resource, const std::string& at) {
      if (const Json* of = Member(resource, "resource")) ReadResource(*of);
      const Json* scopes = Member(resource, "scopeSpans");
      if (scopes == nullptr) return;
      Each(*scopes, at + "/scopeSpans", [this](const Json& scope, const std::string& in) {
        const Json* spans = Member(scope, "spans");
        if (spans == nullptr) return;
        Each(*spans, in + "/spans",
             [this](const Json& span, const std::string& path) { ReadSpan(span, path); });
      });
    });
  }

  Issues& issues() { return issues_; }

  Result<StepTrace> Finish() {
    if (trace_.steps.empty() && issues_.empty()) {
      issues_.push_back({trace_.name,
                         "found no event step.BATCH_SUMMARY, allowed traces of a server with "
                         "--step-tracing-enabled"});
    }
    SortSteps();
    if (!issues_.empty()) return Bounded(std::move(issues_));
    PlaceMembers();
    PlaceTransfers();
    SortJourneys();
    return std::move(trace_);
  }

 private:
  template <class Use>
  void Each(const Json& list, const std::string& path, const Use& use) {
    if (!list.is_array()) {
      issues_.push_back({path, Format("found {}, allowed a list", ShortJson(list))});
      return;
    }
    std::size_t i = 0;
    for (const Json& item : list) {
      if (issues_.size() > kMostIssues) return;
      use(item, Format("{}/{}", path, i++));
    }
  }

  void ReadResource(const Json& resource) {
    const Json* list = Member(resource, "attributes");
    if (list != nullptr && trace_.scenario.empty()) {
      trace_.scenario = TextIn(*list, {"servecast.scenario"});
    }
  }

  void ReadSpan(const Json& span, const std::string& path) {
    const Json* events = Member(span, "events");
    if (events == nullptr) return;
    const Json* list = Member(span, "attributes");
    const std::string request =
        list == nullptr ? "" : TextIn(*list, {"request.id", "gen_ai.request.id"});
    Each(*events, path + "/events", [&](const Json& event, const std::string& at) {
      const Json* name = Member(event, "name");
      if (name == nullptr || !name->is_string()) return;
      const auto& full = name->get_ref<const std::string&>();
      ReadEvent(full.substr(full.rfind('.') + 1), request, Event(event, at, issues_));
    });
  }

  void ReadEvent(const std::string& kind, const std::string& span_request, Event event) {
    if (kind == "BATCH_SUMMARY") return ReadStep(event);
    if (kind == "REQUEST_SNAPSHOT") return ReadSnapshot(event, span_request);
    if (kind == "TransferCompleted") return ReadTransfer(event);
    if (kind == "CacheStoreCommitted" || kind == "TransferInitiated") {
      ++trace_.kv_events;
      return;
    }
    for (const char* known : {"ARRIVED", "HANDOFF_TO_CORE", "QUEUED", "SCHEDULED", "FIRST_TOKEN",
                              "FIRST_RESPONSE", "PREEMPTED", "FINISHED", "DEPARTED"}) {
      if (kind == known) return ReadJourney(kind, event, span_request);
    }
  }

  void ReadStep(Event& event) {
    TracedStep step;
    step.id = event.NeededWhole("step.id");
    step.start = event.NeededWhole("step.ts_start_ns");
    step.duration_us = event.Needed("step.duration_us", 1e12);
    step.end = event.Whole("step.ts_end_ns",
                           step.start + static_cast<TimeNs>(std::llround(step.duration_us * 1e3)));
    step.formed = event.Whole("step.ts_formed_ns", step.start);
    if (step.end < step.start) event.Refuse("step.ts_end_ns", nullptr, "no less than ts_start_ns");
    step.running = event.Needed("queue.running_depth");
    step.waiting = event.Needed("queue.waiting_depth");
    step.prefill_requests = event.Needed("batch.num_prefill_reqs");
    step.decode_requests = event.Needed("batch.num_decode_reqs");
    step.prefill_tokens = event.Needed("batch.prefill_tokens");
    step.decode_tokens = event.Needed("batch.decode_tokens");
    step.preempted = event.Number("batch.num_preempted", kMostTokens, 0);
    step.kv_usage = event.Number("kv.usage_gpu_ratio", 1, 0);
    step.kv_blocks = event.Number("kv.blocks_total_gpu", 1e12, 0);
    trace_.steps.push_back(step);
  }

  void ReadSnapshot(Event& event, const std::string& span_request) {
    TracedMember member;
    member.step = event.NeededWhole("step.id");
    const std::string phase = event.Text({"request.phase"});
    if (phase != "PREFILL" && phase != "DECODE") {
      event.Refuse("request.phase", nullptr, "PREFILL or DECODE");
    }
    member.prefill = phase == "PREFILL";
    member.prompt = event.Needed("request.num_prompt_tokens");
    member.computed = event.Needed("request.num_computed_tokens");
    member.output = event.Number("request.num_output_tokens", kMostTokens, 0);
    member.scheduled = event.Needed("request.scheduled_tokens_this_step");
    member.blocks = event.Number("kv.blocks_allocated_gpu", kMostTokens, 0);
    const double cached = event.Number("kv.blocks_cached_gpu", kMostTokens, -1);
    const double effective = event.Number("request.effective_prompt_len", kMostTokens, -1);
    if (effective >= 0 && member.prompt > 0) {
      member.hit_ratio = std::max(0.0, 1 - effective / member.prompt);
    } else if (cached >= 0) {
      member.hit_ratio = cached / std::max(1.0, member.blocks + cached);
    }
    std::string id = event.Text({"request.id"});
    if (id.empty()) id = span_request;
    if (id.empty()) event.Refuse("request.id", nullptr, "a text");
    if (member.scheduled <= 0) return;  // it was there, and not in the batch
    member.journey = JourneyOf(id);
    trace_.members.push_back(member);
  }

  void ReadTransfer(Event& event) {
    ++trace_.kv_events;
    const std::string to = LowerCase(event.Text({"kv.direction", "transfer.direction"}));
    if (to.find("gpu_to") == 0 || to.find("gpu->") == 0) return;  // hidden behind steps
    transfers_.push_back(
        {event.Time(), event.Whole("step.id", -1), event.Number("kv.num_blocks", kMostTokens, 0)});
  }

  void ReadJourney(const std::string& kind, Event& event, const std::string& span_request) {
    std::string id = event.Text({"request.id", "gen_ai.request.id"});
    if (id.empty()) id = span_request;
    if (id.empty()) return event.Refuse("request.id", nullptr, "a text");
    TracedJourney& j = trace_.journeys[static_cast<std::size_t>(JourneyOf(id))];
    const TimeNs at = event.Time();
    j.prompt = std::max(j.prompt, event.Number("prefill_total_tokens", kMostTokens, 0));
    if (kind == "ARRIVED") j.arrived = at;
    if (kind == "QUEUED" && j.queued < 0) {
      j.queued = at;
      j.queued_step = event.Whole("scheduler.step", -1);
    }
    if (kind == "SCHEDULED") {
      const bool resumes = event.Text({"schedule.kind"}) == "RESUME" || j.scheduled >= 0;
      if (resumes) {
        j.resumed.push_back(at);
      } else {
        j.scheduled = at;
        j.scheduled_step = event.Whole("scheduler.step", -1);
      }
    }
    if (kind == "PREEMPTED") j.preempted.push_back(at);
    if (kind == "FIRST_TOKEN") j.first_token = at;
    if (kind == "FIRST_RESPONSE") j.first_response = at;
    if (kind == "DEPARTED") j.departed = at;
    if (kind != "FINISHED") return;
    j.finished = at;
    j.output = event.Number("decode_done_tokens", kMostTokens, 0);
    const std::string status = event.Text({"finish.status"});
    j.aborted = status == "aborted" || status == "error" || status == "ignored";
  }

  std::int32_t JourneyOf(const std::string& id) {
    const auto [at, is_new] = by_id_.emplace(id, static_cast<std::int32_t>(trace_.journeys.size()));
    if (is_new) {
      trace_.journeys.emplace_back();
      trace_.journeys.back().id = id;
    }
    return at->second;
  }

  void SortSteps() {
    std::stable_sort(trace_.steps.begin(), trace_.steps.end(),
                     [](const TracedStep& a, const TracedStep& b) { return a.id < b.id; });
    for (std::size_t i = 1; i < trace_.steps.size(); ++i) {
      if (trace_.steps[i].id != trace_.steps[i - 1].id) continue;
      issues_.push_back({trace_.name, Format("found step {} twice, allowed the traces of one "
                                             "engine in a file",
                                             trace_.steps[i].id)});
      return;
    }
  }

  void PlaceMembers() {
    std::stable_sort(trace_.members.begin(), trace_.members.end(),
                     [](const TracedMember& a, const TracedMember& b) { return a.step < b.step; });
    std::size_t at = 0;
    for (TracedStep& step : trace_.steps) {
      while (at < trace_.members.size() && trace_.members[at].step < step.id) ++at;
      step.from = at;
      while (at < trace_.members.size() && trace_.members[at].step == step.id) ++at;
      step.to = at;
    }
    for (const TracedMember& member : trace_.members) {
      TracedJourney& j = trace_.journeys[static_cast<std::size_t>(member.journey)];
      if (j.hit_ratio < 0) j.hit_ratio = member.hit_ratio;
      j.prompt = std::max(j.prompt, member.prompt);
    }
  }

  // To the step that names it, else to the one during which it ended.
  void PlaceTransfers() {
    for (const Transfer& transfer : transfers_) {
      const auto at = std::partition_point(
          trace_.steps.begin(), trace_.steps.end(), [&transfer](const TracedStep& step) {
            return transfer.step >= 0 ? step.id < transfer.step : step.end < transfer.at;
          });
      if (at != trace_.steps.end()) at->transfer_blocks += transfer.blocks;
    }
  }

  void SortJourneys() {
    const auto first = [](const TracedJourney& j) { return j.arrived >= 0 ? j.arrived : j.queued; };
    std::vector<std::size_t> order(trace_.journeys.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return first(trace_.journeys[a]) < first(trace_.journeys[b]);
    });
    std::vector<TracedJourney> sorted;
    std::vector<std::int32_t> place(order.size());
    for (const std::size_t i : order) {
      place[i] = static_cast<std::int32_t>(sorted.size());
      sorted.push_back(std::move(trace_.journeys[i]));
    }
    trace_.journeys = std::move(sorted);
    for (TracedMember& member : trace_.members) {
      member.journey = place[static_cast<std::size_t>(member.journey)];
    }
  }

  StepTrace trace_;
  Issues issues_;
  std::unordered_map<std::string, std::int32_t> by_id_;
  std::vector<Transfer> transfers_;
};

}  // namespace

bool IsStepTrace(std::string_view text) {
  const std::string_view begin = text.substr(0, kLookAhead);
  for (const char* key : {"\"resourceSpans\"", "\"resourceLogs\"", "\"resourceMetrics\""}) {
    if (begin.find(key) != std::string_view::npos) return true;
  }
  return false;
}

Result<StepTrace> ReadStepTrace(std::string_view text, const std::string& name) {
  TraceFile file(name);
  std::int64_t line = 0;
  for (std::size_t at = 0; at < text.size() && file.issues().size() <= kMostIssues;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view piece = text.substr(at, end - at);
    at = end + 1;
    ++line;
    if (piece.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Json document = LooseJson(piece);
    std::string where = Format("{}, line {}", name, line);
    if (document.is_discarded() && line == 1) {  // one document over many lines
      document = LooseJson(text);
      where = name + ", ";
      at = text.size();
    }
    if (document.is_discarded()) {
      file.issues().push_back({where, "found no JSON, allowed a line of the OTLP exporter"});
      continue;
    }
    file.Add(document, where);
  }
  return file.Finish();
}

}  // namespace servecast
