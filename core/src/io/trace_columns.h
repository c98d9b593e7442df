// Which columns of a CSV, or members of a JSON object, tell a request's arrival and lengths.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "io/trace_lines.h"

namespace servecast {

// A value as it stands in the file; `column` as in TraceLines::Add.
struct TraceField {
  std::string_view text;
  std::size_t column = 1;
};

class TraceColumns {
 public:
  enum Role : std::size_t { kArrival, kPrompt, kOutput, kStatus };
  static constexpr std::size_t kRoles = 4;

  // Chooses by name: the formats that have theirs, then common synonyms, whatever their case.
  // Requires: no name twice. False: prompt or output is missing, and `missing` says which.
  bool Choose(const std::vector<std::string_view>& names);
  // Arrivals in seconds, whatever the names.
  void ChooseNamed(std::string arrival, std::string prompt, std::string output);
  const std::string& missing() const { return missing_; }

  // Where in `names`; nullopt when the file does not tell it.
  std::optional<std::size_t> at(Role role) const { return at_[role]; }
  const std::string& name(Role role) const { return names_[role]; }

  // What stands in a request's columns, by role; adds the request, or issues. False: too many.
  bool AddRow(const std::array<TraceField, kRoles>& fields, TraceLines& lines,
              std::span<const std::uint64_t> hash_ids = {});
  // Its prompt, while it is being read: what `AddRow` would find. nullopt: malformed.
  static std::optional<std::int64_t> PromptOf(std::string_view text);

  // Of a trace, as Trace has them.
  const char* format() const { return format_; }
  std::string Reading() const;
  std::string Reading(const char* label) const;
  bool has_arrivals() const { return at_[kArrival].has_value(); }

 private:
  bool ChooseKnown(const std::vector<std::string_view>& names);
  bool Failed(std::string_view status) const;
  std::optional<TimeNs> Arrival(const TraceField& field, TraceLines& lines);

  std::array<std::optional<std::size_t>, kRoles> at_;
  std::array<std::string, kRoles> names_;
  std::string missing_;
  const char* format_ = "csv";
  const char* label_ = "CSV with named columns: columns";
  std::int64_t unit_ns_ = kNsPerS;
  bool failed_have_none_ = false;  // BurstGPT's failed requests have an output of 0 tokens
  // Calendar times rather than numbers; where the name does not tell, the first row does.
  std::optional<bool> calendar_;
};

// What the header of a CSV may be, in words.
std::string KnownHeaders();

}  // namespace servecast
