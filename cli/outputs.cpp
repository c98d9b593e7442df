#include "outputs.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/text.h"

namespace servecast {
namespace {

// Exactly, in a unit of 10^digits ns.
std::string In(TimeNs ns, int digits) {
  TimeNs unit = 1;
  for (int i = 0; i < digits; ++i) unit *= 10;
  return fmt::format("{}.{:0{}}", ns / unit, ns % unit, digits);
}
std::string InSeconds(TimeNs ns) { return In(ns, 9); }
std::string Ms(TimeNs ns) { return In(ns, 6); }
std::string Us(TimeNs ns) { return In(ns, 3); }

constexpr int kRequestsProcess = 1'000'000;  // of the time line, beyond all replicas
constexpr const char* kBounds[] = {"overhead", "compute", "bandwidth"};

std::int64_t TokensOf(const StepRecord& step) {
  std::int64_t tokens = 0;
  for (const StepMember& member : step.members) tokens += member.tokens;
  return tokens;
}

const char* PhaseOf(const StepRecord& step) {
  if (step.prefill_tokens == 0) return "decode";
  return TokensOf(step) == step.prefill_tokens ? "prefill" : "prefill + decode";
}

}  // namespace

// ---- Steps ---------------------------------------------------------------------------------

StepWriter::StepWriter(OutputFile* batches, OutputFile* trace, Names names)
    : batches_(batches), trace_(trace), names_(names) {
  if (batches_ != nullptr) {
    std::string header;
    if (names_ == Names::kVidur) {
      header = VidurBatchHeader();
    } else {
      for (const Column& column : BatchColumns()) {
        header += (header.empty() ? "" : ",") + std::string(column.name);
      }
      header += '\n';
    }
    batches_->Write(header);
  }
  if (trace_ == nullptr) return;
  trace_->Write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  Event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"requests"}}}})",
                    kRequestsProcess));
}

// A process and its threads, once.
void StepWriter::NameReplica(std::int64_t replica, std::size_t stages) {
  const auto number = static_cast<std::size_t>(replica);
  if (number >= named_.size()) named_.resize(number + 1, false);
  if (named_[number]) return;
  named_[number] = true;
  Event(fmt::format(
      R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"replica {0}"}}}})", replica));
  for (std::size_t stage = 0; stage < stages; ++stage) {
    NameThread(replica, stage, fmt::format("stage {}", stage));
  }
}

void StepWriter::NameThread(std::int64_t replica, std::size_t thread, const std::string& name) {
  Event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
                    replica, thread, name));
}

void StepWriter::OnStep(const StepRecord& step) {
  if (names_ == Names::kVidur) vidur_times_.OnStep(step);
  if (batches_ != nullptr) WriteBatch(step);
  if (trace_ != nullptr) TraceStep(step);
}

void StepWriter::WriteBatch(const StepRecord& step) {
  const std::int64_t tokens = TokensOf(step);
  if (names_ == Names::kVidur) {
    batches_->Write(VidurBatchRow(rows_++, step, tokens));
    return;
  }
  batches_->Write(fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", step.replica, step.index,
      InSeconds(step.start), Ms(step.end - step.start), InSeconds(step.end), step.prefill_tokens,
      tokens - step.prefill_tokens, step.members.size(), step.running_after_schedule,
      step.waiting_after_schedule, step.used_after_schedule,
      kBounds[static_cast<std::size_t>(step.bound)], Ms(step.interference), Ms(step.transfer),
      step.finished.size(), step.preempted.size()));
}

// ---- Time line -----------------------------------------------------------------------------

void StepWriter::Event(const std::string& event) {
  trace_->Write(first_event_ ? event : ",\n" + event);
  first_event_ = false;
}

void StepWriter::TraceStep(const StepRecord& step) {
  const std::int64_t tokens = TokensOf(step);
  const std::string at = Us(step.start);
  std::vector<StageSpan> stages = step.stages;
  if (stages.empty()) stages.push_back({step.start, step.end});
  NameReplica(step.replica, stages.size());
  const std::size_t first = step.stages.empty() ? LaneOf(step) : 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const StageSpan& span = stages[stage];
    Event(fmt::format(
        R"({{"ph":"X","pid":{},"tid":{},"name":"{}","cat":"step","ts":{},"dur":{},"args":{{"batch":{},"batch_size":{},"prefill_tokens":{},"decode_tokens":{},"bound":"{}","interference_ms":{}}}}})",
        step.replica, first + stage, PhaseOf(step), Us(span.start), Us(span.end - span.start),
        step.index, step.members.size(), step.prefill_tokens, tokens - step.prefill_tokens,
        kBounds[static_cast<std::size_t>(step.bound)], Ms(step.interference)));
  }
  Event(fmt::format(
      R"({{"ph":"C","pid":{},"name":"requests","ts":{},"args":{{"running":{},"waiting":{}}}}})",
      step.replica, at, step.running_after_schedule, step.waiting_after_schedule));
  Event(fmt::format(R"({{"ph":"C","pid":{},"name":"kv_blocks","ts":{},"args":{{"used":{}}}}})",
                    step.replica, at, step.used_after_schedule));
  Event(fmt::format(R"({{"ph":"C","pid":{},"name":"batch_tokens","ts":{},"args":{{"tokens":{}}}}})",
                    step.replica, at, tokens));
  for (const RequestId request : step.preempted) Mark("preempted", request, step.start);
  for (const StepMember& member : step.members) {
    if (member.kind != MemberKind::kContinued) Mark("scheduled", member.id, step.start);
  }
  for (const RequestId request : step.finished) Mark("left", request, step.end);
}

// An instant on a request's track.
void StepWriter::Mark(const char* name, RequestId request, TimeNs time) {
  Event(fmt::format(R"({{"ph":"n","pid":{},"cat":"request","id":{},"name":"{}","ts":{}}})",
                    kRequestsProcess, request, name, Us(time)));
}

// The thread of a step without stages. Steps of BLIS's rules may overlap: then the second one has a
// thread of its own.
std::size_t StepWriter::LaneOf(const StepRecord& step) {
  const auto number = static_cast<std::size_t>(step.replica);
  if (number >= lanes_.size()) lanes_.resize(number + 1);
  std::vector<TimeNs>& ends = lanes_[number];
  std::size_t lane = 0;
  while (lane < ends.size() && ends[lane] > step.start) ++lane;
  if (lane == ends.size()) {
    ends.push_back(0);
    if (lane > 0) NameThread(step.replica, lane, fmt::format("overlapping steps {}", lane));
  }
  ends[lane] = step.end;
  return lane;
}

// Each on a track of its own: its phases, one after the other.
void StepWriter::TraceRequests(const Report& report) {
  const std::vector<double>& arrival = report.ColumnOf("arrival_s");
  const std::vector<double>& scheduled = report.ColumnOf("scheduling_delay_ms");
  const std::vector<double>& first = report.ColumnOf("ttft_ms");
  const std::vector<double>& end = report.ColumnOf("e2e_ms");
  const std::vector<double>& prefilled = report.ColumnOf("prefilled_s");
  const std::vector<double>& sent = report.ColumnOf("transfer_start_s");
  const std::vector<double>& transfer = report.ColumnOf("transfer_ms");
  const std::vector<double>& wait = report.ColumnOf("handover_ms");
  for (std::size_t i = 0; i < arrival.size(); ++i) {
    double from = 0;
    const auto phase = [&](const char* name, double until) {
      if (std::isnan(until) || std::isnan(from)) return;
      const auto mark = [&](char kind, double ms) {
        Event(
            fmt::format(R"({{"ph":"{}","pid":{},"cat":"request","id":{},"name":"{}","ts":{:.3f}}})",
                        kind, kRequestsProcess, i, name, arrival[i] * 1e6 + ms * 1e3));
      };
      mark('b', from);
      mark('e', until);
      from = until;
    };
    phase("queue", scheduled[i]);
    if (std::isnan(prefilled[i])) {
      phase("prefill", first[i]);
    } else {  // one replica prefills, another decodes
      const double done = (prefilled[i] - arrival[i]) * 1e3, starts = (sent[i] - arrival[i]) * 1e3;
      phase("prefill", done);
      phase("hand-over", starts);
      phase("KV transfer", starts + transfer[i]);
      phase("hand-over", done + wait[i] + transfer[i]);
    }
    phase("decode", end[i]);
  }
}

void StepWriter::Finish(const Report& report) {
  if (trace_ == nullptr) return;
  TraceRequests(report);
  trace_->Write("\n]}\n");
}

namespace {

// ---- Tables --------------------------------------------------------------------------------

// `times`, by Vidur's names only.
void WriteRequests(const Report& report, const VidurTimes* times, OutputFile& file) {
  if (times != nullptr) {
    file.Write(VidurRequestHeader());
    for (std::size_t i = 0; i < report.ColumnOf("arrival_s").size(); ++i) {
      file.Write(VidurRequestRow(report, *times, i));
    }
    return;
  }
  WriteRequestsCsv(report, [&file](std::string_view text) { file.Write(text); });
}

void WriteSeries(const Report& report, OutputFile& file) {
  std::string line;
  std::vector<const std::vector<double>*> columns;
  for (std::size_t i = 0; i < Columns().size(); ++i) {
    if (Columns()[i].kind != "series" || report.columns[i].empty()) continue;
    line += (line.empty() ? "" : ",") + std::string(Columns()[i].name);
    columns.push_back(&report.columns[i]);
  }
  file.Write(line + "\n");
  for (std::size_t row = 0; !columns.empty() && row < columns[0]->size(); ++row) {
    line.clear();
    for (const std::vector<double>* column : columns) {
      line += (line.empty() ? "" : ",") + NumberText((*column)[row]);
    }
    file.Write(line + "\n");
  }
}

}  // namespace

// ---- All of them ---------------------------------------------------------------------------

Outputs::Outputs(const OutputPaths& paths, Names names) : names_(names) {
  const auto open = [this](const std::string& path, std::optional<OutputFile>& file) {
    if (!path.empty()) ok_ &= file.emplace(path).ok();
    return file ? &*file : nullptr;
  };
  open(paths.json, json_);
  open(paths.requests, requests_);
  open(paths.series, series_);
  OutputFile* batches = open(paths.batches, batches_);
  OutputFile* trace = open(paths.chrome_trace, trace_);
  const bool requests_by_steps = requests_ && names_ == Names::kVidur;
  if (ok_ && (batches_ || trace_ || requests_by_steps)) steps_.emplace(batches, trace, names_);
}

ReportDetail Outputs::detail() const {
  return requests_ || trace_ ? ReportDetail::kRequests : ReportDetail::kSummary;
}

bool Outputs::Write(const Report& report) {
  if (json_) json_->Write(ReportJson(report, ReportParts::kWithSeries) + "\n");
  const bool vidur = names_ == Names::kVidur;
  if (requests_) WriteRequests(report, vidur ? &steps_->vidur_times() : nullptr, *requests_);
  if (series_) WriteSeries(report, *series_);
  if (steps_) steps_->Finish(report);
  bool written = true;
  for (auto* file : {&json_, &requests_, &batches_, &series_, &trace_}) {
    if (*file) written &= (*file)->Close();
  }
  for (auto* file : {&json_, &requests_, &batches_, &series_, &trace_}) {
    if (*file) written = written && (*file)->Place();
  }
  return written;
}

}  // namespace servecast
