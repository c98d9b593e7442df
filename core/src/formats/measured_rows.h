// Rows of measured tables that calibrate and fidelity both take.
#pragma once

#include <cstdint>

#include "formats/measured_table.h"

namespace servecast {

inline constexpr NumberRange kTokenRange = {1, 1e7};

enum class MeasuredTableForm { kOther, kPrompts, kDecodeSteps, kRated };
// `rates`: columns of which one says that the rows are runs at a rate.
MeasuredTableForm FormOf(const MeasuredTable& table, ColumnNames rates);

// Prompts that come alone, one output token each.
struct PromptRow {
  std::int64_t tokens = 0;
  double ttft_ms = 0;
};
PromptRow ReadPromptRow(MeasuredRow& row);

// A step of decodes with so many tokens each, on average.
struct DecodeStepRow {
  std::int64_t batch = 0, context = 0;
  double itl_ms = 0;
};
DecodeStepRow ReadDecodeStepRow(MeasuredRow& row);

// Tokens: all of `mean`, or a clipped lognormal of that mean.
struct RunLengths {
  double mean = 1;
  double sigma = 0;
  double least = 1, most = 1e7;
};
// "lognormal(median=256,sigma=0.8,[16,4096])", "fixed(128)", "128"; with nothing in `distribution`
// the mean, which must then be there. A mean that was counted is nearer than the distribution's.
RunLengths ReadLengthsOfRow(MeasuredRow& row, ColumnNames distribution, ColumnNames mean);

}  // namespace servecast
