// From a workload's description, or a trace, to the requests of a run.
#pragma once

#include <memory>

#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"
#include "workload/request_table.h"

namespace servecast {

struct LengthSpec;

// Of a prompt or an output, everywhere.
inline constexpr std::int64_t kMostTokens = 1'000'000'000;

// Arrivals of a trace bring its rows; lengths alone are taken from its rows in turn. The rows of a
// session stand together, the last session may be cut short, and sessions start in order, but for
// the first ones of a closed loop's clients. Draws are keyed by stream and by row, or session, of
// the arrivals that it is of (a class with a rate or with turns of its own counts its own):
// changing one part leaves the others' draws as they were. A prompt that adds up to more than
// kMostTokens tokens has that many. Requires: no sessions with a trace. Issues: a trace that is
// asked for and missing, times beyond what a run can hold, a prefix before, or a class with other,
// prompts than those that a trace's hash ids tell already. O(requests * classes with a rate of
// their own).
Result<RequestTable> MakeRequests(const Scenario& scenario, const Trace& trace);

// The same, a part at a time: millions take seconds. The table does not depend on the parts.
class RequestDrawing {
 public:
  // `scenario` and `trace` outlive it. Issues: those of MakeRequests that are known before drawing.
  static Result<RequestDrawing> Begin(const Scenario& scenario, const Trace& trace);
  RequestDrawing(RequestDrawing&&) noexcept;
  RequestDrawing& operator=(RequestDrawing&&) noexcept;
  ~RequestDrawing();

  // About `rows` more requests, whole sessions; true when there are no more to draw.
  bool Draw(std::int64_t rows);
  // 0..1, never falls.
  double Progress() const;
  // Requires: Draw was true. Once. Issues: times beyond what a run can hold.
  Result<RequestTable> Take();

 private:
  struct State;
  explicit RequestDrawing(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One length, for draw `u` in (0, 1), at least 1 token. Requires: fixed, uniform, normal, lognormal
// or empirical.
std::int64_t DrawLength(const LengthSpec& spec, double u);

// Whose draws a length is made of.
struct LengthKey {
  std::int64_t seed = 0;
  bool output = false;
  std::int64_t row = 0;
};

// Lengths of one kind, whatever their distribution; for many draws.
class LengthDrawer {
 public:
  // `spec` outlives it.
  explicit LengthDrawer(const LengthSpec& spec);
  // `traced`: of the row of the trace, `prompt`: what was drawn for it; where these matter.
  std::int64_t Draw(const LengthKey& key, std::int64_t traced, std::int64_t prompt) const;

 private:
  double OneDraw(const LengthKey& key) const;
  std::int64_t Rank(const LengthKey& key) const;
  double Area(double x) const;
  double Inverse(double area) const;
  std::int64_t Spread(std::int64_t rank) const;

  const LengthSpec* spec_;
  double sigma_ = 0;  // lognormal
  // zipf, by rejection-inversion (lengths.cpp).
  double count_ = 1, first_area_ = 0, last_area_ = 0, sure_ = 0;
};

}  // namespace servecast
