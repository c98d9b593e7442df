// Tables of measurements, recognised by their columns: prompts, decode steps and runs at a rate.
#include <cmath>

#include "base/text.h"
#include "calibrate/readers.h"
#include "calibrate/runs.h"
#include "io/issues.h"

namespace servecast {
namespace {

// Draws of a run that only its rate and lengths tell: their mean is what is fitted.
constexpr std::int64_t kDraws = 3;
constexpr double kMostRequests = 200'000;  // of a file
const ColumnNames kRate = {"request_rate_rps", "target_rate_rps", "request_rate", "rate_per_s"};
constexpr const char* kTableForms =
    "not a known table; allowed: prompt_tokens and ttft_p50_ms or ttft_mean_ms; batch (or "
    "decode_batch), mean_context_tokens (or context_tokens) and itl_p50_ms or itl_mean_ms; "
    "request_rate_rps (or target_rate_rps) with input_tokens_mean, output_tokens_mean and "
    "ttft_mean_ms, tpot_mean_ms, e2e_mean_ms";

struct TableRow {
  MeasuredRow& row;
  const std::string& label;
  std::vector<CalibrationPoint>& points;
  double& requests;  // of the runs so far

  void Add(CalibrationPoint point) const {
    point.label = label;
    if (row.problem().empty()) points.push_back(std::move(point));
  }
};

void AddPrompt(const TableRow& r) {
  const PromptRow prompt = ReadPromptRow(r.row);
  CalibrationPoint point;
  point.prompt = prompt.tokens;
  point.figures = {{Figure::kTtft, prompt.ttft_ms}};
  r.Add(std::move(point));
}

void AddStep(const TableRow& r) {
  const DecodeStepRow step = ReadDecodeStepRow(r.row);
  CalibrationPoint point;
  point.form = PointForm::kDecodeStep;
  point.batch = step.batch;
  point.context = step.context;
  point.figures = {{Figure::kTpot, step.itl_ms}};
  r.Add(std::move(point));
}

void AddRun(const TableRow& r) {
  CalibrationPoint point;
  point.form = PointForm::kRun;
  RunLoad run;
  run.rate_per_s = r.row.NeededNumber(kRate, {1e-3, 1e5});
  const double requests =
      r.row.Number({"num_prompts", "n_requests", "n_ok"}, {1, kMostRequests}).value_or(1000);
  r.requests += requests;
  if (r.requests > kMostRequests) {
    r.row.Complain(Format("found {} requests up to this row, allowed {} in a file",
                          NumberText(r.requests), NumberText(kMostRequests)));
  }
  const RunLengths prompt =
      ReadLengthsOfRow(r.row, {"input_dist"}, {"input_tokens_mean", "input_tokens_server_mean"});
  const RunLengths output =
      ReadLengthsOfRow(r.row, {"output_dist"}, {"output_tokens_configured", "output_tokens_mean"});
  if (r.row.Number({"max_concurrency"})) {
    r.row.Complain({"max_concurrency"},
                   "nothing: a limit of requests beside a rate is not modelled");
  }
  const auto add = [&](Figure figure, ColumnNames columns) {
    const auto ms = r.row.Number(columns, kPositive);
    if (ms) point.figures.push_back({figure, *ms});
  };
  add(Figure::kTtft, {"ttft_mean_ms", "mean_ttft_ms"});
  add(Figure::kTpot, {"tpot_mean_ms", "mean_tpot_ms"});
  add(Figure::kE2e, {"e2e_mean_ms", "mean_e2el_ms"});
  if (point.figures.empty()) {
    r.row.Complain("nothing in ttft_mean_ms, tpot_mean_ms and e2e_mean_ms, allowed one at least");
  }
  if (!r.row.problem().empty()) return;
  run.draws = DrawRuns(std::llround(requests), run.rate_per_s, prompt, output, kDraws);
  point.run = std::make_shared<const RunLoad>(std::move(run));
  r.Add(std::move(point));
}

struct TableForm {
  void (*read)(const TableRow&);
  const char* found;
};

std::optional<TableForm> KnownForm(const MeasuredTable& table) {
  switch (FormOf(table, kRate)) {
    case MeasuredTableForm::kPrompts:
      return TableForm{AddPrompt,
                       "single prompts: arithmetic, attention over long prompts, time per request"};
    case MeasuredTableForm::kDecodeSteps:
      return TableForm{AddStep,
                       "decode steps: bandwidth, reads of the KV cache, time per sequence"};
    case MeasuredTableForm::kRated:
      return TableForm{AddRun,
                       "runs at a rate: prompts among decodes, delivery, all of it under load"};
    case MeasuredTableForm::kOther:
      break;
  }
  return std::nullopt;
}

MeasuredServer ServerOfRow(MeasuredRow& row) {
  MeasuredServer server;
  server.model = row.Text({"model"});
  server.gpu = row.Text({"gpu"});
  server.engine = row.Text({"engine"});
  server.engine_version = row.Text({"engine_version"});
  const auto whole = [&row](ColumnNames columns) { return row.Whole(columns, {1, 1e9}); };
  server.tensor_parallel = whole({"tp", "tensor_parallel"});
  server.replicas = whole({"replicas"});
  server.max_num_seqs = whole({"max_num_seqs"});
  server.max_num_batched_tokens = whole({"max_num_batched_tokens"});
  server.kv_tokens = whole({"kv_tokens"});
  server.block_size = whole({"block_size"});
  return server;
}

}  // namespace

Result<Measurements> ReadTable(std::string_view text, const std::string& name) {
  const MeasuredTable table(text);
  const auto form = KnownForm(table);
  if (!form) return Issue{name, kTableForms};
  if (table.Rows() == 0) return Issue{name, "found no row below the header, allowed one at least"};
  Measurements read;
  Issues issues;
  double requests = 0;
  for (std::size_t i = 0; i < table.Rows(); ++i) {
    MeasuredRow row(table, name, i);
    const MeasuredServer server = ServerOfRow(row);
    const std::string label = Format("{}, row {}", name, i + 1);
    form->read({row, label, read.points, requests});
    if (!row.problem().empty()) issues.push_back({"", row.problem()});
    if (i == 0) read.server = server;
    const bool same = server.model == read.server.model && server.gpu == read.server.gpu &&
                      server.tensor_parallel == read.server.tensor_parallel &&
                      server.replicas == read.server.replicas;
    if (!same) {
      issues.push_back(
          {label, "found another model, GPU, tp or replicas than row 1 has, allowed one server"});
    }
  }
  if (!issues.empty()) return Bounded(std::move(issues));
  read.found.push_back(Format("{}: {} {}", name, table.Rows(), form->found));
  return read;
}

}  // namespace servecast
