// See measured_rows.h.
#include "formats/measured_rows.h"

#include <cmath>

#include "base/math.h"
#include "io/json_document.h"

namespace servecast {
namespace {

const ColumnNames kTtft = {"ttft_p50_ms", "ttft_mean_ms"}, kItl = {"itl_p50_ms", "itl_mean_ms"},
                  kBatch = {"batch", "decode_batch"};

// A sign or a point before a number, which NumbersIn does not read: "-1", ".5", but not "16-4096".
bool HasSignedNumber(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const bool mark = text[i] == '-' || text[i] == '.';
    if (mark && text[i + 1] != ' ' && (i == 0 || !IsDigit(text[i - 1]))) return true;
  }
  return false;
}

// nullopt: neither of the two.
std::optional<RunLengths> LengthsIn(std::string_view cell, std::optional<double> counted_mean) {
  const std::string text = LowerCase(cell);
  const std::vector<double> n = NumbersIn(text);
  if (HasSignedNumber(text) || n.empty() || n[0] < 1 || n[0] > kTokenRange.most) {
    return std::nullopt;
  }
  if (!text.starts_with("lognormal")) {
    const bool fixed = NumberOf(text) || text.starts_with("fixed") || text.starts_with("constant");
    if (!fixed || n.size() != 1) return std::nullopt;
    return RunLengths{.mean = counted_mean.value_or(n[0])};
  }
  if ((n.size() != 2 && n.size() != 4) || n[1] > 5) return std::nullopt;
  RunLengths lengths = {counted_mean.value_or(n[0] * Exp(n[1] * n[1] / 2)), n[1]};
  if (n.size() == 4) lengths.least = n[2], lengths.most = n[3];
  const bool right = lengths.least <= lengths.most && lengths.most <= kTokenRange.most;
  return right ? std::optional(lengths) : std::nullopt;
}

}  // namespace

MeasuredTableForm FormOf(const MeasuredTable& table, ColumnNames rates) {
  if (table.HasAny(rates)) return MeasuredTableForm::kRated;
  if (table.Has("prompt_tokens") && table.HasAny(kTtft)) return MeasuredTableForm::kPrompts;
  const bool steps = table.HasAny(kBatch) && table.HasAny(kItl);
  return steps ? MeasuredTableForm::kDecodeSteps : MeasuredTableForm::kOther;
}

PromptRow ReadPromptRow(MeasuredRow& row) {
  PromptRow prompt = {row.NeededWhole({"prompt_tokens"}, kTokenRange)};
  if (row.Whole({"concurrency"}, {1, 1e5}).value_or(1) > 1) {
    row.Complain({"concurrency"}, "1: prompts that come alone");
  }
  prompt.ttft_ms = row.NeededNumber(kTtft);
  return prompt;
}

DecodeStepRow ReadDecodeStepRow(MeasuredRow& row) {
  DecodeStepRow step = {row.NeededWhole(kBatch, {1, 1e5})};
  const ColumnNames context = {"mean_context_tokens", "context_tokens"};
  if (row.Text(context).empty()) row.NeededNumber(context);
  step.context = std::llround(row.NumberOrRange(context, kTokenRange).value_or(0));
  step.itl_ms = row.NeededNumber(kItl);
  return step;
}

RunLengths ReadLengthsOfRow(MeasuredRow& row, ColumnNames distribution, ColumnNames mean) {
  const std::string_view text = row.Text(distribution);
  if (text.empty()) return {.mean = row.NeededNumber(mean, kTokenRange)};
  const auto lengths = LengthsIn(text, row.Number(mean, kTokenRange));
  if (!lengths) row.Complain(distribution, "fixed(N) or lognormal(median=N,sigma=X,[MIN,MAX])");
  return lengths.value_or(RunLengths());
}

}  // namespace servecast
