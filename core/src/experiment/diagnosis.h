// What is wrong with this server? What was measured on it beside its forecast, and what would
// explain the difference: each cause of causes.h is run, alone and then on top of those that
// explain most. Resumable like an experiment (docs/decisions/076).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/causes.h"
#include "experiment/server_figures.h"
#include "servecast/import.h"
#include "servecast/result.h"
#include "servecast/trace.h"

namespace servecast {

// kNotJudged: no error of such forecasts is known. kNothingMeasured: the texts have no latency and
// no rate, and what else they say is compared alone.
enum class DiagnosisState { kAgrees, kDiffers, kNotJudged, kNothingMeasured };
const char* WordOf(DiagnosisState state);  // "nothing_measured"

// A figure of the forecast, and where measurements lie with 90 % probability: the forecast's error
// and the scatter of one run. No band: its error is not known. No high: it may grow without bound.
struct ForecastFigure {
  std::optional<double> value, low, high;
};

// A change that was run: all figures with it, in the order of the measured ones, and how far they
// are from these (DistanceOf). With issues: it cannot run.
struct TriedCause {
  Cause cause;
  std::string document;  // with the cause, and with those before it in a chain
  std::vector<std::optional<double>> figures;
  double distance = 0;
  Issues issues;
};

// What a text says of the server beside what the scenario plans.
struct PlanCheck {
  std::string name, words;  // "kv_tokens", "KV cache"
  double said = 0, planned = 0;
  bool differs = false;
  std::string sentence;
};

struct DiagnosisFindings {
  DiagnosisState state = DiagnosisState::kNothingMeasured;
  double distance = 0, slowness = 0;
  std::int64_t runs = 0, requests_per_run = 0;
  std::vector<ServerFigure> figures;
  std::vector<ForecastFigure> forecasts;  // as many
  std::vector<PlanCheck> checks;
  // Those that explain it together, each run with all before it; then each alone, by distance.
  std::vector<TriedCause> chain, alone;

  // Whether a figure that counts lies outside its band.
  bool IsOutside(std::size_t figure) const;
};

class Diagnosis {
 public:
  // `document`: the scenario that the texts tell. Issues: those of running it.
  static Result<Diagnosis> Create(std::string document, ServerFacts facts, Trace trace = {});

  Diagnosis(Diagnosis&&) noexcept;
  Diagnosis& operator=(Diagnosis&&) noexcept;
  ~Diagnosis();

  // At most about `max_steps` engine steps of one run; true when finished. With issues of missing
  // files it stands still until they are provided.
  bool Advance(std::int64_t max_steps);

  // 0..1, never falls; 1 only when finished.
  double Progress() const;

  // Files that a cause needs and that are not here.
  const Issues& Problems() const;

  // Requires: finished.
  const DiagnosisFindings& Findings() const;

  // The findings in words and as JSON (Diagnosis in wasm/servecast.d.ts). With documents, each
  // cause has the document that it makes: one line, no white space; without, it is laid out for
  // people. Requires: finished.
  std::string Json(bool with_documents) const;

 private:
  struct State;
  explicit Diagnosis(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Json of the findings.
std::string DiagnosisJson(const DiagnosisFindings& findings, const Scenario& scenario,
                          bool with_documents);

// A cause counts that takes away at least this share of the whole distance.
inline constexpr double kExplains = 0.1;

}  // namespace servecast
