// Parameters of a plugin, with their defaults and limits said once, in the plugin's file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "servecast/epp.h"

namespace servecast::epp {

struct SettingSpec {
  enum class Kind { kReal, kWhole, kFlag, kText, kDuration };

  // The parameter's path. A part "*" is the number of a list's item.
  std::string_view path;
  Kind kind = Kind::kReal;
  double fallback = 0;            // kFlag: 1 is true; kDuration: ns
  std::string_view words = {};    // kText: allowed values, separated by spaces; the first is the
                                  // default; empty: any
  double least = 0, most = 1e15;  // of numbers
};

// "1s", "1m30s", "200ms" in ns, as Go reads durations; nullopt: not a duration.
std::optional<TimeNs> DurationNs(std::string_view text);

// Why `parameters` are not ones of `specs`; each "path: reason".
std::vector<std::string> WrongSettings(std::span<const SettingSpec> specs,
                                       const EppParameters& parameters);

// Parameters by path, defaults of `specs` where absent. Requires: WrongSettings() finds none.
class Settings {
 public:
  Settings(std::span<const SettingSpec> specs, const EppParameters& given)
      : specs_(specs), given_(given) {}

  double Real(std::string_view path) const;
  std::int64_t Whole(std::string_view path) const { return static_cast<std::int64_t>(Real(path)); }
  bool Flag(std::string_view path) const { return Real(path) != 0; }
  TimeNs Duration(std::string_view path) const;
  std::string_view Text(std::string_view path) const;
  bool Has(std::string_view path) const { return given_.find(path) != given_.end(); }

 private:
  std::span<const SettingSpec> specs_;
  const EppParameters& given_;
};

}  // namespace servecast::epp
