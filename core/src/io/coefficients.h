// Coefficients of latency models as the command and the page take them: sets of "blackbox" that
// were published (presets/coefficients/blis-blackbox.json), files of the same form, and files of
// "physics". A document holds the numbers themselves, in its section "latency".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

struct CoefficientSet {
  std::string id;
  std::string latency;                // the section "latency" of a document, JSON
  double prefill_time_over_peak = 0;  // 0: not known

  // No GPU can be so fast.
  bool FasterThanLight() const { return prefill_time_over_peak > 0 && prefill_time_over_peak < 1; }
};

// All sets of a file of that form, as they stand there.
Result<std::vector<CoefficientSet>> ReadCoefficientSets(std::string_view file);

// Those that were published. On the page an issue until their file was fetched (io/presets.h).
Result<std::vector<CoefficientSet>> PublishedCoefficientSets();
// The published set of that id; an issue names the nearest.
Result<CoefficientSet> FindCoefficientSet(std::string_view id);

// Whether a published set is of the scenario's model, GPU and tensor parallelism.
bool IsSetOf(const CoefficientSet& set, const Scenario& scenario);

// What a user of the set must know; "" when there is nothing.
std::string WarningOf(const CoefficientSet& set);

// Coefficients of wasm/servecast.d.ts: the sets of a file of either form, those for the scenario
// first; the published ones when there is no file. A document that cannot be read is no scenario's.
std::string CoefficientsJson(std::string_view document, std::string_view file);

}  // namespace servecast
