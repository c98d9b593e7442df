// What a scenario can be written as: one writer a target. A target is a line in targets.cpp and a
// function.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/export.h"
#include "servecast/scenario.h"

namespace servecast {

// What a writer is given, and what it leaves out.
class ExportJob {
 public:
  explicit ExportJob(const Scenario& scenario);

  const Scenario& scenario() const { return scenario_; }
  // The model by its name on Hugging Face; "MODEL", and a note, where nobody knows it.
  const std::string& model() const { return model_; }
  // The preset of the scenario's engine or GPU; "" without one.
  std::string Preset(const char* section) const;
  // That of a pool, and the section's name for a note: "engine", "cluster.pools.1.engine".
  std::string PresetAt(std::size_t pool, const char* section) const;
  std::string SectionAt(std::size_t pool, const char* section) const;
  const EngineSpec& Engine(std::size_t pool) const;
  const SchedulerSpec& Scheduler(std::size_t pool) const;
  const HardwareSpec& Hardware(std::size_t pool) const;
  std::int64_t GpusOfServer(std::size_t pool) const;
  // "nvidia.com/gpu.product" of a pool's GPU; "" where it is not known.
  std::string_view GpuProduct(std::size_t pool) const;
  // The tag of an image of vLLM with the rules of the engine's preset.
  std::string VersionTag(std::size_t pool);

  void LeaveOut(std::string what, std::string why);
  // Members of a section that the document sets and nobody wrote: names them. `written` are paths
  // below it.
  void LeaveOutRest(const char* section, const std::set<std::string>& written, const char* why);
  void LeaveOutSections(const std::vector<const char*>& sections, const char* why);

  std::vector<ImportNote> left_out;
  std::set<std::string> hardware_written;  // members of that section that a target says

 private:
  const Scenario& scenario_;
  nlohmann::json canonical_;
  std::string model_;
};

// As a shell takes it for one word.
std::string ShellWord(const std::string& word);
// As YAML and JSON take it for a text.
std::string QuotedText(const std::string& text);
// Members and items, each on a line of its own.
std::string YamlText(const nlohmann::json& value);
// A command on lines of its own options.
std::string CommandText(const std::string& program, const std::vector<std::string>& words);

// Options of the servers of a pool ("--max-num-seqs", "128"), without the model.
using FlagWords = std::vector<std::string>;
FlagWords VllmFlags(ExportJob& job, std::size_t pool);
// "NAME=1", of their environment: what NCCL is told of links, and SGLang of its scheduler.
FlagWords LinkVariables(ExportJob& job, std::size_t pool);
FlagWords SglangVariables(const ExportJob& job, std::size_t pool);
FlagWords SglangFlags(ExportJob& job, std::size_t pool);
// Says that weights other than those of the model's files need a checkpoint of their own.
void LeaveOutWeights(ExportJob& job);
// A pool's Deployment, as the target kubernetes names it.
std::string DeploymentName(const std::vector<PoolSpec>& pools, std::size_t pool);
// What stands above the command of a pool; "" with one.
std::string PoolHeading(ExportJob& job, std::size_t pool);
// What no server's options say.
void LeaveOutBesideServers(ExportJob& job, bool knows_gpu, bool rolls = false);

std::string WriteVllm(ExportJob&);
std::string WriteDocker(ExportJob&);
std::string WriteSglang(ExportJob&);
// The YAML that trtllm-serve reads, of a pool.
std::string TrtllmYaml(ExportJob& job, std::size_t pool);
std::string WriteTrtllm(ExportJob&);
std::string WriteKubernetes(ExportJob&);
std::string WriteLlmd(ExportJob&);
std::string WriteEndpointPicker(ExportJob&);
std::string WriteAutoscaler(ExportJob&);
std::string WriteBench(ExportJob&);

}  // namespace servecast
