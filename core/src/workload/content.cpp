// See content.h.
#include "workload/content.h"

#include <algorithm>
#include <cmath>

#include "base/base.h"

namespace servecast {

void FillContent(const Trace& trace, const std::vector<std::int64_t>& positions, double scale,
                 RequestTable& table) {
  const auto rows = static_cast<std::int64_t>(trace.prefixes.size());
  const std::int64_t played = positions.empty() ? table.size() : positions.back() + 1;
  for (std::int64_t row = 0; row < std::min(rows, played); ++row) {
    TracePrefix prefix = trace.prefixes[static_cast<std::size_t>(row)];
    // Rounded as the prompts are, so no longer than either of the two.
    if (prefix.row >= 0) {
      const double tokens = std::nearbyint(static_cast<double>(prefix.tokens) * scale);
      prefix.tokens = static_cast<std::int32_t>(std::min(tokens, 1e9));
    }
    table.segments.push_back({prefix.row, prefix.tokens});
  }
  table.content.resize(table.arrival.size());
  for (std::size_t i = 0; i < table.content.size(); ++i) {
    const std::int64_t position = positions.empty() ? static_cast<std::int64_t>(i) : positions[i];
    if (position < rows) {
      table.content[i] = static_cast<std::int32_t>(position);
      continue;
    }
    table.content[i] = static_cast<std::int32_t>(table.segments.size());
    table.segments.push_back({static_cast<std::int32_t>(position % rows), table.prompt_tokens[i]});
  }
}

}  // namespace servecast
