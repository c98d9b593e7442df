// Words of the verdict: the command and the page show the same.
#pragma once

#include <cstdint>
#include <string>

#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

// A time that somebody gave ("20 ms"), in the unit that keeps what is shown below 1,000, as
// everywhere on the page.
std::string Ms(double value);

// What was measured: three digits, also where the last are zeros ("12.0", "9.00", "15,900"), as the
// page's tiles have it.
std::string ThreeDigits(double value);
std::string MeasuredMs(double value);

// How far a value lies beyond a limit, of which it is `ratio`: "34 % over", from twice the limit on
// "2.3 times the limit", as the page's tiles say it.
std::string Beyond(double ratio);

std::string Percent(double share);

// "$7.50", "$1,230".
std::string Dollars(double value);

const char* MetricName(SloMetric metric);

// As reports and links name it: "does_not_fit".
const char* StateName(VerdictState state);

// Of attainment: "TTFT 200 ms and TPOT 20 ms".
std::string Limits(const SloSpec& slo);

// "TTFT p99 <= 200 ms of chat", "99 % of requests of chat within TTFT 200 ms and TPOT 20 ms".
std::string Target(const SloSpec& slo);

// "12.0 % of the requests were dropped, timed out or got no token", of a target's unserved share.
std::string LossText(const SloResult& result, const Report& report);

// "1 request", "2,000 requests".
std::string Count(std::int64_t n, const char* one);

}  // namespace servecast
