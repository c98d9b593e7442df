// What the readers of BLIS's golden runs share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "servecast/scenario.h"
#include "testing/blis_golden.h"
#include "workload/request_table.h"

namespace servecast::testing {

inline constexpr TimeNs kUs = 1000;
inline constexpr double kMostOfAnything = 0x1p40;
inline constexpr std::int64_t kMostUs = 366LL * 24 * 3600 * 1'000'000;

// Without empty ones and the ends of lines.
std::vector<std::string> LinesOf(const std::string& text);

// What BLIS's goldens have in common: an H100 by BLIS's table, a model as BLIS reads it, memory
// that never says no, as the number of blocks is given.
Scenario BaseScenario();

void SetModel(ModelSpec& m, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
              std::int64_t kv_heads, std::int64_t width);

// The host of `blocks` blocks, as BLIS's command line has it: a bandwidth of tokens per us, a base
// latency in us per block. The scenario's fields are in bytes of the model, which is set before.
void SetHost(BlisCase& golden, std::int64_t blocks, double threshold, double bandwidth,
             double base_us);

// Requests whose prompts begin with `shared` tokens of their group; the rest of each is its own.
void AddContent(RequestTable& table, const std::vector<std::int32_t>& groups,
                const std::vector<std::int32_t>& shared);

}  // namespace servecast::testing
