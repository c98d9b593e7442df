#include "outputs.h"

#include <fmt/format.h>

#include <limits>
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

constexpr const char* kBounds[] = {"overhead", "compute", "bandwidth"};

std::int64_t TokensOf(const StepRecord& step) {
  std::int64_t tokens = 0;
  for (const StepMember& member : step.members) tokens += member.tokens;
  return tokens;
}

}  // namespace

// ---- Steps ---------------------------------------------------------------------------------

StepWriter::StepWriter(OutputFile* batches, OutputFile* trace, Names names)
    : batches_(batches), names_(names) {
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
  if (trace == nullptr) return;
  time_line_.emplace([trace](std::string_view text) { trace->Write(text); });
}

void StepWriter::OnStep(const StepRecord& step) {
  if (names_ == Names::kVidur) vidur_times_.OnStep(step);
  if (batches_ != nullptr) WriteBatch(step);
  if (time_line_) time_line_->OnStep(step);
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

void StepWriter::Finish(const Report& report) {
  if (time_line_) time_line_->Finish(report, std::numeric_limits<TimeNs>::max());
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
    takes_stdout_ = takes_stdout_ || path == "-";
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

bool Outputs::Write(const Report& report, const Banded* banded) {
  if (json_) json_->Write(ReportJson(report, banded, ReportParts::kWithSeries) + "\n");
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
