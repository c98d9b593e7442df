// The changes of advise.h, each run on the same requests, with its bands where the forecast's error
// is known, and ranked: those that meet all targets as surely as a verdict says it first, the
// cheapest of them before the others. The scenario as it is has the verdict of its own run; changes
// have a fifth of its work, but for the first: that is run as a run of it would be, and so on while
// another one comes first by it, three at most. Resumable like an experiment.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "servecast/result.h"
#include "servecast/trace.h"

namespace servecast {

class Advice {
 public:
  // Issues: those of the document, and of running it as it is.
  static Result<Advice> Create(std::string document, Trace trace = {});

  Advice(Advice&&) noexcept;
  Advice& operator=(Advice&&) noexcept;
  ~Advice();

  // At most about `max_steps` engine steps of one run; true when finished, or when there is no
  // advice to be had. With issues of missing files it stands still until they are provided.
  bool Advance(std::int64_t max_steps);

  // 0..1, never falls; 1 only when finished.
  double Progress() const;

  // Files that a change needs and that are not here; or why there is no advice.
  const Issues& Problems() const;

  // What was tried so far. With documents, each change has the document that it makes: one line, no
  // white space; without, it is laid out for people.
  std::string Json(bool with_documents) const;

 private:
  struct State;
  explicit Advice(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace servecast
