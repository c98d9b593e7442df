// See named_axes.h.
#include "plan/named_axes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "io/axes.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

using AxisValues = std::vector<std::string>;

struct NamedAxis {
  std::string_view name, path;
  AxisValues (*values)(const std::string& document);
};

AxisValues Gpus(const std::string& document) {
  AxisValues gpus = PricedGpus();
  const std::string own = PresetOf(document, "hardware");
  if (!own.empty() && std::find(gpus.begin(), gpus.end(), own) == gpus.end()) gpus.push_back(own);
  return gpus;
}

AxisValues Weights(const std::string& document) {
  const Result<Scenario> scenario = ParseScenario(document);
  AxisValues weights = {"none", "fp8", "int4", "nvfp4"};
  if (scenario.ok() && scenario.value().model.num_local_experts > 0) weights.push_back("mxfp4");
  return weights;
}

// In the order in which values are put in: a pool that is made of another has its parallelism.
constexpr NamedAxis kNamed[] = {
    {"gpu", "hardware.preset", Gpus},
    {"roles", kRolesPath,
     [](const std::string&) {
       return AxisValues{"aggregated", "disaggregated"};
     }},
    {"tp", "cluster.pools.*.tensor_parallel",
     [](const std::string&) {
       return AxisValues{"1", "2", "4", "8"};
     }},
    {"pp", "cluster.pools.*.pipeline_parallel",
     [](const std::string&) {
       return AxisValues{"1", "2", "4"};
     }},
    {"dp", "cluster.pools.*.attention_data_parallel",
     [](const std::string&) {
       return AxisValues{"1", "2", "4", "8"};
     }},
    {"ep", "engine.enable_expert_parallel",
     [](const std::string&) {
       return AxisValues{"false", "true"};
     }},
    {"quantization", "model.quantization", Weights},
    {"max_num_seqs", "engine.max_num_seqs",
     [](const std::string&) {
       return AxisValues{"64", "128", "256"};
     }},
    {"max_num_batched_tokens", "engine.max_num_batched_tokens",
     [](const std::string&) {
       return AxisValues{"2048", "4096", "8192"};
     }},
};

Issues WrongNames(const std::vector<std::string>& names) {
  Issues issues;
  std::string allowed;
  for (const NamedAxis& axis : kNamed) {
    allowed += (allowed.empty() ? "" : ", ") + std::string(axis.name);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool known = std::any_of(std::begin(kNamed), std::end(kNamed),
                                   [&](const NamedAxis& axis) { return axis.name == names[i]; });
    const auto before = names.begin() + static_cast<std::ptrdiff_t>(i);
    const bool twice = std::find(names.begin(), before, names[i]) != before;
    if (!known) {
      issues.push_back(
          {"", Format("axes: found {}, allowed {}", ShownText(names[i]), std::move(allowed))});
      break;
    }
    if (twice) {
      issues.push_back({"", Format("axes: found {} twice, allowed each once", names[i])});
      break;
    }
  }
  return issues;
}

std::vector<std::string> NamesIn(std::string_view names) {
  std::vector<std::string> parts = {""};
  for (const char c : names) c == ',' ? void(parts.emplace_back()) : parts.back().push_back(c);
  return parts;
}

}  // namespace

Result<std::vector<Axis>> AxesAsked(const std::string& document, std::string_view names,
                                    std::vector<Axis> over) {
  if (names.empty() && !over.empty()) return over;
  const std::vector<std::string> asked = NamesIn(names.empty() ? kUsualAxes : names);
  if (Issues issues = WrongNames(asked); !issues.empty()) return issues;
  std::vector<Axis> axes;
  for (const NamedAxis& named : kNamed) {
    if (std::find(asked.begin(), asked.end(), named.name) == asked.end()) continue;
    const auto given = std::find_if(over.begin(), over.end(),
                                    [&](const Axis& axis) { return axis.path == named.path; });
    if (given == over.end()) {
      axes.push_back({std::string(named.path), named.values(document)});
    } else {
      axes.push_back(std::move(*given));
      over.erase(given);
    }
  }
  std::move(over.begin(), over.end(), std::back_inserter(axes));
  return axes;
}

}  // namespace servecast
