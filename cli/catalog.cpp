// servecast catalog and coefficients: what there is to choose from.
#include <fmt/format.h>

#include "arguments.h"
#include "commands.h"
#include "io/coefficients.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

constexpr const char* kCatalogHelp =
    "servecast catalog [--json]\n"
    "\n"
    "Lists presets, policies, every field of a scenario with unit, range, default and help, and "
    "the\n"
    "columns of the files that run writes.\n";

constexpr const char* kCoefficientsHelp =
    "servecast coefficients [WORD]\n"
    "\n"
    "Lists the coefficient sets of the latency model blackbox that BLIS published, those whose id\n"
    "contains WORD: id, and the time per prefill token as a multiple of the time at the GPU's\n"
    "peak. No GPU can be faster than that: sets below 1 are marked.\n";

}  // namespace

int CatalogCommand(const Words& arguments) {
  bool json = false;
  for (const std::string& arg : arguments) {
    if (arg == "--help" || arg == "-h") {
      fmt::print("{}", kCatalogHelp);
      return 0;
    }
    if (arg != "--json") return Usage("unknown option " + arg);
    json = true;
  }
  fmt::print("{}\n", json ? CommandCatalogJson() : CatalogText());
  return 0;
}

int CoefficientsCommand(const Words& arguments) {
  if (arguments.size() > 1) return Usage("more than one word: " + arguments[1]);
  const std::string word = arguments.empty() ? "" : arguments[0];
  if (word == "--help" || word == "-h") {
    fmt::print("{}", kCoefficientsHelp);
    return 0;
  }
  const Result<std::vector<CoefficientSet>> sets = PublishedCoefficientSets();
  if (!sets.ok()) return PrintIssues(sets.issues());
  bool found = false;
  for (const CoefficientSet& set : sets.value()) {
    if (set.id.find(word) == std::string::npos) continue;
    found = true;
    const double multiple = set.prefill_time_over_peak;
    fmt::print("{:<70} {:>7}{}\n", set.id, multiple > 0 ? fmt::format("{:.3g}", multiple) : "",
               set.FasterThanLight() ? "  faster than light" : "");
  }
  if (!found) return PrintIssues({{word, "is in the name of no set"}});
  return 0;
}

}  // namespace servecast
