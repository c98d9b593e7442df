// See server.h.
#include "calibrate/server.h"

#include <algorithm>

#include "base/printable.h"
#include "base/text.h"
#include "import/names.h"
#include "io/physics_coefficients.h"

namespace servecast {

Result<std::string> ServerDocument(const MeasuredServer& server) {
  Issues issues;
  const auto preset = [&issues](const char* what, const std::string& name, std::string id) {
    if (!id.empty()) return id;
    issues.push_back({"", name.empty()
                              ? Format("the files do not name the {}, allowed --scenario", what)
                              : Format("found no preset for the {} {}, allowed --scenario", what,
                                       Printable(name))});
    return std::string();
  };
  const std::string model = preset("model", server.model, ModelPresetOf(server.model));
  const std::string gpu = preset("GPU", server.gpu, HardwarePresetOf(server.gpu));
  const EngineName engine = EnginePresetOf(server.engine, server.engine_version);
  preset("engine", server.engine, engine.preset);
  if (!issues.empty()) return issues;
  std::vector<std::string> settings;
  const auto set = [&settings](const char* path, std::optional<std::int64_t> value) {
    if (value) settings.push_back(Format("{}={}", path, *value));
  };
  set("engine.max_num_seqs", server.max_num_seqs);
  set("engine.max_num_batched_tokens", server.max_num_batched_tokens);
  set("engine.block_size", server.block_size);
  if (server.kv_tokens) {
    const std::int64_t block = server.block_size.value_or(16);
    set("engine.num_gpu_blocks_override", std::max<std::int64_t>(1, *server.kv_tokens / block));
  }
  return ApplyOverrides(
      Format(
          R"({{"schema": 1, "model": {{"preset": "{}"}}, "hardware": {{"preset": "{}"}}, )"
          R"("engine": {{"preset": "{}"}}, "cluster": {{"pools": [{{"tensor_parallel": {}, "replicas": {}}}]}}, )"
          R"("workload": {{"requests": 1}}}})",
          model, gpu, engine.preset, server.tensor_parallel.value_or(1),
          server.replicas.value_or(1)),
      settings);
}

std::vector<std::string> ServerMismatches(const MeasuredServer& server, const Scenario& scenario) {
  std::vector<std::string> lines;
  const auto name = [&lines](const char* what, const std::string& measured, const std::string& ours,
                             bool same) {
    if (measured.empty() || same) return;
    lines.push_back(
        Format("measured on {} {}, the scenario has {}", what, Printable(measured), ours));
  };
  const std::string model = ModelPresetOf(server.model);
  name("model", server.model, scenario.model.name,
       SameName(server.model, scenario.model.name) || SameName(model, scenario.model.name) ||
           SameModel(server.model, scenario.model.name));
  name("GPU", server.gpu, scenario.hardware.name,
       SameName(server.gpu, scenario.hardware.name) ||
           HardwarePresetOf(server.gpu) == HardwarePresetOf(scenario.hardware.name));
  const auto count = [&lines](const char* what, std::optional<std::int64_t> measured,
                              std::int64_t ours) {
    if (!measured || *measured == ours) return;
    lines.push_back(Format("measured with {} {}, the scenario has {}", what, *measured, ours));
  };
  count("tensor_parallel", server.tensor_parallel, scenario.cluster.pool().tensor_parallel);
  count("replicas", server.replicas, scenario.cluster.Replicas());
  count("max_num_seqs", server.max_num_seqs, scenario.engine.max_num_seqs);
  count("max_num_batched_tokens", server.max_num_batched_tokens,
        scenario.engine.max_num_batched_tokens);
  return lines;
}

}  // namespace servecast
