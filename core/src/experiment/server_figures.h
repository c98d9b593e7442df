// Figures that were measured on a server, beside those of a report: by the names that reports have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/import.h"
#include "servecast/report.h"

namespace servecast {

struct ServerFigure {
  std::string name;   // "ttft_ms.p99", "requests_per_s"
  std::string words;  // "TTFT p99", "requests/s"
  double measured = 0;
  bool is_latency = false;  // more is slower; of rates less is
  bool is_tail = false;     // p90 and beyond
  bool is_first_token = false;
  bool counts = true;  // for how far forecast and measurement are apart

  // In `report`; nullopt: it has none.
  std::optional<double> In(const Report& report) const;
};

// Those of the values that reports have a figure for and that are above 0, in the order of reports.
// Gaps between tokens count where nothing else says how fast tokens come; tokens per second never,
// as requests per second do.
std::vector<ServerFigure> FiguresOf(const std::vector<MeasuredValue>& values);

// nullopt: no such value.
std::optional<double> ValueOf(const std::vector<MeasuredValue>& values, std::string_view name);

// Mean of |ln(measured / forecast)| over the figures that count; forecasts in the same order, those
// without one left out. 0 without any.
double DistanceOf(const std::vector<ServerFigure>& figures,
                  const std::vector<std::optional<double>>& forecasts);

// Mean of ln(measured / forecast) of latencies, and of its inverse of rates: above 0 where the
// server is slower.
double SlownessOf(const std::vector<ServerFigure>& figures,
                  const std::vector<std::optional<double>>& forecasts);

}  // namespace servecast
