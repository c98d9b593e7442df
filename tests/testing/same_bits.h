// Two scenarios of which one asks for what never happens: their runs are the same.
#pragma once

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "servecast/report.h"

namespace servecast::testing {

// Every figure, but for what names the scenario, and every column to its last bit.
inline void ExpectSameBits(const Report& without, Report with) {
  EXPECT_NE(with.fingerprint, without.fingerprint);  // that of another scenario
  with.fingerprint = without.fingerprint;
  with.scenario_id = without.scenario_id;
  with.resolved_scenario = without.resolved_scenario;
  EXPECT_EQ(ReportJson(without, ReportParts::kWithSeries),
            ReportJson(with, ReportParts::kWithSeries));
  ASSERT_EQ(without.columns.size(), with.columns.size());
  for (std::size_t c = 0; c < with.columns.size(); ++c) {
    const std::vector<double>&a = without.columns[c], &b = with.columns[c];
    ASSERT_EQ(a.size(), b.size());
    EXPECT_TRUE(a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0) << c;
  }
}

}  // namespace servecast::testing
