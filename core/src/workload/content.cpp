// See content.h.
#include "workload/content.h"

#include <algorithm>

#include "base/base.h"
#include "base/random.h"

namespace servecast {

void FillContent(const WorkloadSpec& w, std::int64_t seed, RequestTable& table) {
  const std::int64_t groups = w.prefix.groups;
  const std::int64_t sessions = CeilDiv(table.size(), w.sessions.turns);
  table.segments.assign(static_cast<std::size_t>(groups + sessions), ContentSegment{});
  for (std::int64_t session = 0; groups > 0 && session < sessions; ++session) {
    const double u = Uniform(seed, Stream::kPrefixGroup, session);
    const std::int64_t group =
        std::min(static_cast<std::int64_t>(u * static_cast<double>(groups)), groups - 1);
    table.segments[static_cast<std::size_t>(groups + session)] = {
        static_cast<std::int32_t>(group), static_cast<std::int32_t>(w.prefix.tokens)};
  }
  table.content.resize(table.arrival.size());
  for (std::int64_t i = 0; i < table.size(); ++i) {
    table.content[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(groups + i / w.sessions.turns);
  }
}

void FillContent(const Trace& trace, RequestTable& table) {
  const std::size_t rows = trace.prefixes.size();
  table.segments.resize(table.arrival.size());
  table.content.resize(table.arrival.size());
  for (std::size_t i = 0; i < table.content.size(); ++i) {
    table.content[i] = static_cast<std::int32_t>(i);
    if (i < rows) {
      table.segments[i] = {trace.prefixes[i].row, trace.prefixes[i].tokens};
    } else {
      table.segments[i] = {static_cast<std::int32_t>(i % rows), table.prompt_tokens[i]};
    }
  }
}

}  // namespace servecast
