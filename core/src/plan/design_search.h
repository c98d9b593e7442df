// The cheapest design that keeps its targets, among many (docs/model.md, "Search"). Runs nothing
// itself: it hands out tasks in rounds, takes what DesignPlan found, in any order, and decides what
// is worth asking next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/designs.h"
#include "plan/frontier.h"
#include "servecast/design.h"
#include "servecast/result.h"

namespace servecast {

struct SearchOptions {
  Least least = Least::kCost;  // kEnergy: an answer that holds has its energy, where it is known
  bool all_certain = false;    // certain answers of all designs, for tests: what it saves is known
};

class DesignSearch {
 public:
  // Without axes the default ones. Issues: those of DesignsOf; a document without targets.
  static Result<DesignSearch> Create(const std::string& document, std::vector<Axis> axes,
                                     SearchOptions options = {});

  DesignSearch(DesignSearch&&) noexcept;
  DesignSearch& operator=(DesignSearch&&) noexcept;
  ~DesignSearch();

  // Those of this round that have no point yet. Empty: the search is finished.
  std::vector<DesignTask> Tasks() const;
  // What came of one of them. With the last of a round the next begins. A point that nobody asked
  // for changes nothing.
  void Take(DesignPoint point);

  bool finished() const;
  double Progress() const;  // 0..1, never falls; 1 only when finished

  const std::vector<Design>& designs() const;
  const std::vector<DesignPoint>& points() const;  // by id; so far
  Conclusion Conclude() const;

  // All of it, so far: see docs/model.md.
  std::string Json(bool indented) const;
  // For a person.
  std::string Sentence() const;

 private:
  struct State;
  explicit DesignSearch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace servecast
