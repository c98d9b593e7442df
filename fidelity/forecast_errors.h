// Errors of forecasts as they were made, before anything was fitted to what they are of: the only
// rows that the model of the error is built from.
#pragma once

#include <string>
#include <vector>

#include "evidence/error_field.h"
#include "servecast/result.h"

namespace servecast {

struct ForecastError {
  FieldPoint of;                       // its error is ln(measured / predicted)
  std::string set, row;                // as in `servecast fidelity --rows`
  std::string metric;                  // tpot, ttft, ttft_p99, e2e
  double measured = 0, predicted = 0;  // ms
  bool fitted = false;                 // constants had been fitted to rows of its release
};

// A CSV file with the columns of ../shared/reference/error-model (part, release, set, row, metric,
// kind, lab, model, ...). Left out: rows with a reason in `excluded`, prefill and decode apart, and
// kinds of runs that the model of the error does not know. Issues: of the file.
Result<std::vector<ForecastError>> ReadForecastErrors(const std::string& path);

}  // namespace servecast
