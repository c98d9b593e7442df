// Errors as values. A Result holds a value or every issue that was found: a caller that fixes all
// of them once does not meet a second round. No exceptions cross the surface of the engine.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace servecast {

// Something wrong with an input. `path` is a JSON pointer into the scenario document ("" = the
// whole), or "line 12, column 3" in a trace; `message` says what was found and what is allowed.
struct Issue {
  std::string path;
  std::string message;
  // What a program may tell apart: "does_not_fit", "trace_missing"; else empty.
  std::string kind = {};

  friend bool operator==(const Issue&, const Issue&) = default;
};

using Issues = std::vector<Issue>;

// A value or a non-empty list of issues.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit by intent
  Result(Issues issues) : state_(std::move(issues)) { assert(!this->issues().empty()); }  // NOLINT
  Result(Issue issue) : state_(Issues{std::move(issue)}) {}                               // NOLINT

  bool ok() const { return std::holds_alternative<T>(state_); }
  // Requires: ok().
  T& value() { return *std::get_if<T>(&state_); }
  const T& value() const { return *std::get_if<T>(&state_); }
  // Requires: !ok().
  const Issues& issues() const { return *std::get_if<Issues>(&state_); }

 private:
  std::variant<T, Issues> state_;
};

}  // namespace servecast
