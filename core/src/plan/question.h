// The questions of plan.h by name, each with its answer as JSON and as a sentence: what the command
// prints and the page draws.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/drill.h"
#include "plan/token_prices.h"
#include "servecast/plan.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

struct QuestionOptions {
  double percent = 10;       // growth a month
  std::int64_t months = 24;  // of growth, to look ahead
  std::optional<std::int64_t> from =
      {};  // its first month, 12 times the year and 0 to 11; for dates
  DrillOptions drill = {};
  TokenPrices api = {};  // of cost
  // Of day and autoscale: the load of each, times the scenario's own.
  std::vector<double> hours = {};
  // Of autoscale: runs of a policy, and the share of five-minute windows to be kept.
  std::int64_t days = 5;
  double windows = 0;
};

// "max-rate", "min-gpus", "growth", "day", "autoscale", "drill", "tornado", "cost" or
// "speculation". Resumable like a plan, which it is.
class Question {
 public:
  // Issues: another name; options beyond their ranges; those of the plan.
  static Result<Question> Create(std::string_view name, Scenario scenario, Trace trace = {},
                                 const QuestionOptions& options = {});

  Question(Question&&) noexcept;
  Question& operator=(Question&&) noexcept;
  ~Question();

  bool Advance(std::int64_t max_steps);  // as of Plan
  double Progress() const;

  // As far as it is known; `docs/model.md`, "Plans". `for_people`: laid out; else one line.
  std::string Json(bool for_people) const;
  // Requires: finished.
  std::string Sentence() const;

  // What stopped it on the way; a plan that has its issues at once has none.
  const Issues& Problems() const;

  class Answerer;

 private:
  explicit Question(std::unique_ptr<Answerer> answerer);
  std::unique_ptr<Answerer> answerer_;
};

}  // namespace servecast
