// servecast import: what other programs say of a deployment, as a scenario document.
#include "servecast/import.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "commands.h"
#include "host/files.h"
#include "import_texts.h"

namespace servecast {
namespace {

constexpr const char* kImportHelp =
    "servecast import FILE|TEXT... [--scenario FILE|PRESET]\n"
    "\n"
    "Prints a scenario document of what the files say together; - reads stdin. An argument with a\n"
    "blank in it that is no file is a text itself: servecast import 'vllm serve MODEL'. What "
    "texts\n"
    "are is recognised from them:\n"
    "  config.json and generation_config.json of Hugging Face   the model\n"
    "  vllm serve ..., python -m vllm.entrypoints.openai.api_server ..., docker run of vLLM,\n"
    "  Kubernetes, Compose or llm-d YAML that holds one         engine, parallelism, GPU\n"
    "  KServe, Dynamo, Ray Serve, production-stack YAML         the same, a pool for each role\n"
    "  HPA and KEDA objects beside one                          the scaler\n"
    "  a log of vLLM or SGLang                                  its arguments\n"
    "  python -m sglang.launch_server ...                       the same\n"
    "  trtllm-serve ..., python3 -m dynamo.trtllm, their YAML   the same\n"
    "  python -m sglang_router.launch_router or launch_server,\n"
    "  smg launch, vllm-router, python -m dynamo.frontend       the router, and how many servers\n"
    "                                                           are behind it\n"
    "  blis run ..., python -m vidur.main ...                   all that these simulate\n"
    "  vllm bench serve ..., python -m sglang.bench_serving,\n"
    "  guidellm, aiperf, their results                          the traffic\n"
    "  Prometheus text of a vLLM server                         settings and traffic\n"
    "  nvidia-smi, nvidia-smi -L                                the GPUs\n"
    "\n"
    "Of two files that differ the later wins. On stderr: warnings, of what changes the answer most "
    "and\n"
    "is not as its text has it; what was taken, and from where; what was left out, and why; what "
    "was\n"
    "assumed or measured; what is wrong with the document.\n"
    "\n"
    "  --scenario FILE|PRESET  source of what no file says; default llama-3.1-8b-h100-chat\n"
    "\n"
    "Exit 2 when nothing was understood, or the document is not valid; 3 when it needs one more "
    "answer,\n"
    "a model or a GPU that the texts name and that is no preset.\n";

}  // namespace

int ImportCommand(const std::vector<std::string>& arguments) {
  TextArguments args;
  if (const auto done = ReadTextArguments(arguments, "import", kImportHelp, args)) return *done;
  const Result<Imported> read = ImportTexts(args);
  if (!read.ok()) return PrintIssues(read.issues());
  const Imported& imported = read.value();
  PrintNotes(imported);
  fmt::print("{}", imported.document);
  return CodeOf(imported);
}

}  // namespace servecast
