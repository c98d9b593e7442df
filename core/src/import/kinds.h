// What can be imported: one reader a kind. A kind is a file of its name and a line in kinds.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "import/draft.h"
#include "import/vllm_options.h"
#include "import/words.h"

namespace servecast {

// A text in the forms that readers look for.
struct ImportSource {
  std::string_view text;
  const nlohmann::json* json = nullptr;   // where it is an object or list of JSON
  std::vector<CommandWords> commands;     // of a text that is no JSON
  std::vector<nlohmann::json> manifests;  // documents of YAML, or of JSON with a kind
};

// Takes what it knows of the text, and says so by Draft::Found; else does nothing.
using ImportReader = void (*)(const ImportSource&, Draft&);
std::span<const ImportReader> ImportReaders();

void ReadHfConfig(const ImportSource&, Draft&);
void ReadGenerationConfig(const ImportSource&, Draft&);
void ReadVllmCommand(const ImportSource&, Draft&);
void ReadSglangCommand(const ImportSource&, Draft&);
void ReadTrtllmCommand(const ImportSource&, Draft&);
void ReadRouterCommand(const ImportSource&, Draft&);
void ReadManifest(const ImportSource&, Draft&);
void ReadLlmdValues(const ImportSource&, Draft&);
void ReadKserve(const ImportSource&, Draft&);
void ReadProductionStack(const ImportSource&, Draft&);
void ReadDynamo(const ImportSource&, Draft&);
void ReadKaito(const ImportSource&, Draft&);
void ReadRayServe(const ImportSource&, Draft&);
void ReadVllmConfig(const ImportSource&, Draft&);
void ReadScalers(const ImportSource&, Draft&);
void ReadEndpointPicker(const ImportSource&, Draft&);
void ReadSrtSlurm(const ImportSource&, Draft&);
void ReadUnitFile(const ImportSource&, Draft&);
void ReadSlurm(const ImportSource&, Draft&);
void ReadVllmLog(const ImportSource&, Draft&);
void ReadBenchPrinted(const ImportSource&, Draft&);
void ReadBlisCommand(const ImportSource&, Draft&);
void ReadVidurCommand(const ImportSource&, Draft&);
void ReadBenchCommand(const ImportSource&, Draft&);
void ReadBenchPrograms(const ImportSource&, Draft&);
void ReadBenchReports(const ImportSource&, Draft&);
void ReadBenchResult(const ImportSource&, Draft&);
void ReadPrometheus(const ImportSource&, Draft&);
void ReadNvidiaSmi(const ImportSource&, Draft&);

// A command that starts a server, whatever stands around it: "vllm serve ...", "docker run ...
// IMAGE ...". False: it is none.
bool ReadVllmLaunch(const CommandWords& words, ServerContext context, Draft& draft);
bool ReadSglangLaunch(const CommandWords& words, ServerContext context, Draft& draft);
bool ReadTrtllmLaunch(const CommandWords& words, ServerContext context, Draft& draft);

// Whether a command starts a router, by its program, module or image.
bool StartsRouter(const CommandWords& words);

// The module that starts SGLang's servers and the router before them, and its words for either;
// the router's are without the "router-" before their names.
inline constexpr std::string_view kRoutedServer = "sglang_router.launch_server";
struct RoutedWords {
  CommandWords server, router;
};
RoutedWords RoutedWordsIn(std::span<const std::string> words);

// What KEDA's ScaledObject, or values of a chart in its form, says of the replicas.
void TakeScaledObject(const nlohmann::json& spec, const std::string& at, Draft& draft);

// --routing-logic of production-stack's router, or routingLogic of its chart; `threshold`: its
// --kv-aware-threshold.
void TakeStackRouter(const std::string& logic, std::optional<double> threshold, Draft& draft);

// Puts the first round in place of each loop over servers or benchmarks ("for C in 1 4"), and says
// what the others vary. Requests are those of the largest round where a sweep is proposed.
void UnrollLoops(std::string_view text, std::vector<CommandWords>& commands, Draft& draft);

// Puts the server and the benchmark of the first row in place of each "vllm bench sweep serve", and
// says what the other rows vary. Files of rows are `beside`, or written by `text` itself.
void UnrollSweeps(std::string_view text, const std::vector<ImportText>& beside,
                  std::vector<CommandWords>& commands, Draft& draft);
// Whether a benchmark's command says a rate below infinity.
bool SendsAtARate(const CommandWords& words);
// The path for servecast sweep --over of an option of vllm serve or vllm bench serve; "": none.
// `open`: the benchmark sends at a rate.
std::string SweptPath(std::string_view option, bool open);
// "USERS is 1 here, the first of 1, 4 in a loop: which of these is meant?", and how all run.
std::string FirstOf(std::string_view name, const CommandWords& values, std::string_view in,
                    const std::string& path);

// Whether a manifest is of a kind that has a reader of its own, by its "kind".
bool IsOtherManifest(const nlohmann::json& document);

// Whether a text looks like the file of `vllm serve --config`: options of vLLM by their names.
bool MayBeVllmConfig(std::string_view text);

// Whether a text looks like a unit of systemd, a quadlet or a Dockerfile: no script of commands.
bool MayBeUnitFile(std::string_view text);

// Whether a text looks like the YAML of TensorRT-LLM's LLM API, and not like a script with one.
bool MayBeTrtllmYaml(std::string_view text);

// Each of the commands; those of further nodes of a server come last, when it is known whether the
// first node is among them. Whether any started a server.
bool ReadLaunches(std::span<const CommandWords> commands, const ServerContext& context,
                  Draft& draft, bool (*read)(const CommandWords&, ServerContext, Draft&));

// What each of the programs may be given; VllmOptions stands in vllm_options.h.
std::span<const Option> SglangOptions();
std::span<const Option> TrtllmOptions();
std::span<const Option> BenchOptions();
std::span<const Option> BlisOptions();
std::span<const Option> VidurOptions();
std::span<const Option> RouterOptions();
std::span<const Option> SglangBenchOptions();
std::span<const Option> GuidellmOptions();
std::span<const Option> AiperfOptions();

// Words behind "vllm serve" or "-m vllm.entrypoints.openai.api_server"; nullopt: none of these.
std::optional<CommandWords> VllmArguments(const CommandWords& words);

// Of "docker run ... IMAGE ARGUMENT ...": no image where it is no such command.
struct Contained {
  std::string_view image;
  std::size_t arguments = 0;  // the first of them
  std::int64_t gpus = 0;      // of --gpus; 0: all, or not said
  std::string_view entrypoint, port;
};
Contained ContainedIn(const CommandWords& words);

}  // namespace servecast
