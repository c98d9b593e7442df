// GPUs that a job of Slurm asks for: options of sbatch in the script ("#SBATCH --gres=gpu:a100:4"),
// and of srun and salloc before a command. Names as sbatch(1) has them, of 20.11 to 25.05.
#include <algorithm>
#include <optional>

#include "base/printable.h"
#include "base/text.h"
#include "import/kinds.h"
#include "import/names.h"

namespace servecast {
namespace {

// What one line asks for: the job's ("#SBATCH") or a step's ("srun").
struct SlurmRequest {
  std::string type, from;  // "a100" and "#SBATCH --gres=gpu:a100:4"; "": no type
  std::int64_t gpus = 0;   // of a node, or of the job; 0: not said
  bool of_node = true;
  std::int64_t nodes = 1;
  std::string shared;      // "--gres=shard:4", "--gres=mps:50": parts of GPUs
  std::string constraint;  // features of nodes, and the partition's name
  std::string constraint_from;
};

// "gpu:a100:4", "gpu:4", "gres/gpu:a100:4" of a list of resources.
void TakeResourceList(const std::string& list, const std::string& words, SlurmRequest& request) {
  for (const std::string_view each : Split(list, ",")) {
    std::vector<std::string_view> parts = Split(each, ":/=");
    if (!parts.empty() && parts[0] == "gres") parts.erase(parts.begin());
    if (parts.empty()) continue;
    if (parts[0] == "shard" || parts[0] == "mps") request.shared = words;
    if (parts[0] != "gpu") continue;
    const auto count = ParseCount(parts.back());
    request.gpus = count ? std::min<std::int64_t>(*count, 1'000'000) : 1;
    if (parts.size() > 2 || (parts.size() == 2 && !count)) request.type = parts[1];
    request.from = words;
  }
}

// Takes an option of sbatch; `words` are as they are written.
void TakeSlurmOption(const std::string& name, const std::string& value, const std::string& words,
                     SlurmRequest& request) {
  if (name == "gres" || name == "tres-per-node") {
    TakeResourceList(value, words, request);
  } else if (name == "gpus" || name == "G" || name == "gpus-per-node" || name == "gpus-per-task") {
    TakeResourceList("gpu:" + value, words, request);
    request.of_node = name == "gpus-per-node";
    // How many tasks there are hangs on the cluster.
    if (name == "gpus-per-task") request.gpus = 0;
  } else if (name == "nodes" || name == "N") {
    const auto nodes = ParseCount(value.substr(0, value.find('-')));
    request.nodes = std::clamp<std::int64_t>(nodes.value_or(1), 1, 100'000);
  } else if (name == "constraint" || name == "C") {
    request.constraint = value;
    request.constraint_from = words;
  } else if ((name == "partition" || name == "p") && request.constraint.empty()) {
    request.constraint = value;
    request.constraint_from = words;
  }
}

// Options from `begin` on, up to the first word that is neither one nor its value.
SlurmRequest RequestIn(const CommandWords& words, std::size_t begin, const std::string& program) {
  SlurmRequest request;
  for (std::size_t i = begin; i < words.size() && words[i].size() > 1 && words[i][0] == '-'; ++i) {
    const std::string& word = words[i];
    const bool is_long = word[1] == '-';
    const std::size_t equals = word.find('=');
    std::string name = PlainName(word.substr(0, equals)), value;
    if (!is_long && word.size() > 2) {
      value = word.substr(2);  // "-N2"
      name = word.substr(1, 1);
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < words.size() && !words[i + 1].empty() && words[i + 1][0] != '-') {
      // An option without a value is followed by the program.
      static constexpr std::string_view kValued[] = {"gres",
                                                     "tres-per-node",
                                                     "gpus",
                                                     "G",
                                                     "gpus-per-node",
                                                     "gpus-per-task",
                                                     "nodes",
                                                     "N",
                                                     "ntasks",
                                                     "n",
                                                     "constraint",
                                                     "C",
                                                     "partition",
                                                     "p",
                                                     "time",
                                                     "t",
                                                     "cpus-per-task",
                                                     "c",
                                                     "mem",
                                                     "job-name",
                                                     "J",
                                                     "account",
                                                     "A",
                                                     "output",
                                                     "o",
                                                     "qos",
                                                     "ntasks-per-node",
                                                     "nodelist",
                                                     "w",
                                                     "error",
                                                     "e",
                                                     "container-image",
                                                     "container-name"};
      if (std::find(std::begin(kValued), std::end(kValued), name) == std::end(kValued)) continue;
      value = words[++i];
    }
    const std::string option = word.substr(0, equals);
    const std::string joined =
        is_long ? Format("{}={}", option, value) : Format("-{} {}", name, value);
    TakeSlurmOption(name, value, program + " " + ShownText(joined, 80), request);
  }
  return request;
}

// The job's own options, and those of each step.
SlurmRequest JobRequest(std::string_view text) {
  SlurmRequest job;
  CommandWords words;
  for (const std::string_view line : LinesIn(text)) {
    constexpr std::string_view kMark = "#SBATCH ";
    if (line.substr(0, kMark.size()) != kMark || words.size() > 200) continue;
    std::string_view options = line.substr(kMark.size());
    options = options.substr(0, options.find(" #"));
    for (const CommandWords& each : CommandsIn("x " + std::string(options))) {
      words.insert(words.end(), each.begin() + 1, each.end());
    }
  }
  return RequestIn(words, 0, "#SBATCH");
}

std::vector<SlurmRequest> StepRequests(const std::vector<CommandWords>& commands) {
  std::vector<SlurmRequest> steps;
  for (const CommandWords& words : commands) {
    for (const char* program : {"srun", "salloc", "sbatch"}) {
      const auto at = std::find_if(words.begin(), words.end(), [program](const std::string& word) {
        return BaseName(word) == program;
      });
      const auto begin = static_cast<std::size_t>(at - words.begin());
      if (at == words.end() || steps.size() == 64) continue;
      steps.push_back(RequestIn(words, begin + 1, program));
    }
  }
  return steps;
}

// The type that features of nodes or a partition's name say: "a100", "gpu&a100", "h100|a100".
void TakeConstraint(const SlurmRequest& request, Draft& draft) {
  std::vector<std::string> types;
  for (const std::string_view part : Split(request.constraint, "&|,[]()*")) {
    const std::string preset = HardwarePresetOf(part);
    if (preset.empty()) continue;
    const bool known = std::any_of(types.begin(), types.end(), [&](const std::string& type) {
      return HardwarePresetOf(type) == preset;
    });
    if (!known) types.emplace_back(part);
  }
  if (types.empty()) return;
  draft.TakeGpu(types[0], request.constraint_from);
  if (types.size() > 1) {
    draft.Warn(Format("{} allows several GPUs: the forecast is of {}, the first",
                      request.constraint_from, ShownText(types[0], 40)));
  }
}

// How many GPUs the job has, where it or its only step says so.
void TakeJobSize(const SlurmRequest& request, Draft& draft) {
  if (request.gpus == 0) return;
  const bool several = request.of_node && request.nodes > 1;
  const std::int64_t nodes = several ? request.nodes : 1;
  draft.TakeGpuCount(std::min<std::int64_t>(request.gpus * nodes, 1'000'000),
                     request.from + (several ? Format(" on {} nodes", nodes) : std::string()));
}

}  // namespace

void ReadSlurm(const ImportSource& source, Draft& draft) {
  if (draft.servers() == 0 || source.commands.empty()) return;
  const SlurmRequest job = JobRequest(source.text);
  std::vector<SlurmRequest> all = StepRequests(source.commands);
  all.insert(all.begin(), job);
  const SlurmRequest *typed = nullptr, *sized = nullptr, *constrained = nullptr;
  for (const SlurmRequest& each : all) {
    if (!each.shared.empty()) draft.TakeGpuShare(each.shared);
    if (each.gpus > 0 && sized == nullptr) sized = &each;
    if (!each.constraint.empty() && constrained == nullptr) constrained = &each;
    if (each.type.empty()) continue;
    if (typed == nullptr) {
      typed = &each;
      continue;
    }
    if (LowerCase(each.type) == LowerCase(typed->type)) continue;
    draft.Warn(Format("{} is another GPU than that of {}: the forecast is of {}", each.from,
                      typed->from, ShownText(typed->type, 40)));
  }
  if (typed != nullptr) {
    std::string type = typed->type;
    std::replace(type.begin(), type.end(), '_', '-');
    draft.TakeGpu(type, typed->from);
  } else if (constrained != nullptr) {
    TakeConstraint(*constrained, draft);
  }
  if (sized != nullptr && (sized == &all[0] || all.size() == 2)) TakeJobSize(*sized, draft);
}

}  // namespace servecast
