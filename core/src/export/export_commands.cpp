// vllm serve, docker run and SGLang's launch_server: one command a pool.
#include "base/text.h"
#include "export/targets.h"

namespace servecast {
namespace {

// Servers of a pool: ranks of data parallelism are one server.
std::int64_t ServersOf(const PoolSpec& pool) {
  return pool.replicas / pool.attention_data_parallel;
}

std::string Before(const FlagWords& variables) {
  std::string text;
  for (const std::string& variable : variables) text += variable + " ";
  return text;
}

void NameVersion(ExportJob& job, std::size_t pool) {
  const std::string tag = job.VersionTag(pool);
  if (tag != "latest")
    job.LeaveOut(job.SectionAt(pool, "engine") + ".preset " + job.PresetAt(pool, "engine"),
                 "install that version: vllm==" + tag.substr(1));
}

}  // namespace

// Which pool a command is of, and how many there are, where it is not one server alone.
std::string PoolHeading(ExportJob& job, std::size_t pool) {
  const auto& pools = job.scenario().cluster.pools;
  const std::int64_t servers = ServersOf(pools[pool]);
  if (servers > 1) {
    job.LeaveOut(
        Format("cluster.pools.{}.replicas = {}", pool, pools[pool].replicas),
        Format("a command starts one: run it {} times, on GPUs of its own, behind a router",
               servers));
  }
  if (pools.size() == 1) return "";
  const char* role = pools[pool].role == PoolRole::kPrefill  ? "prefill"
                     : pools[pool].role == PoolRole::kDecode ? "decode"
                                                             : "whole requests";
  return Format("{}# pool {}: {}, {} server{}\n", pool == 0 ? "" : "\n", pool, role, servers,
                servers == 1 ? "" : "s");
}

std::string WriteVllm(ExportJob& job) {
  std::string text;
  for (std::size_t i = 0; i < job.scenario().cluster.pools.size(); ++i) {
    text += PoolHeading(job, i);
    NameVersion(job, i);
    text +=
        CommandText(Before(LinkVariables(job, i)) + "vllm serve " + job.model(), VllmFlags(job, i));
  }
  LeaveOutBesideServers(job, false);
  return text;
}

std::string WriteDocker(ExportJob& job) {
  std::string text;
  for (std::size_t i = 0; i < job.scenario().cluster.pools.size(); ++i) {
    text += PoolHeading(job, i);
    FlagWords words = VllmFlags(job, i);
    words.insert(words.begin(), {"--model", job.model()});
    std::string variables;
    for (const std::string& variable : LinkVariables(job, i)) variables += " -e " + variable;
    text += CommandText(
        Format("docker run --gpus {}{} --ipc=host -p 8000:8000 \\\n"
               "  -v ~/.cache/huggingface:/root/.cache/huggingface \\\n  vllm/vllm-openai:{}",
               job.GpusOfServer(i), variables, job.VersionTag(i)),
        words);
  }
  LeaveOutBesideServers(job, false);
  return text;
}

std::string WriteSglang(ExportJob& job) {
  std::string text;
  for (std::size_t i = 0; i < job.scenario().cluster.pools.size(); ++i) {
    text += PoolHeading(job, i);
    if (const std::string engine = job.PresetAt(i, "engine"); engine.find("sglang") != 0) {
      job.LeaveOut(job.SectionAt(i, "engine") + ".preset " + engine,
                   "the forecast is of that engine, not of SGLang");
    }
    FlagWords words = SglangFlags(job, i);
    words.insert(words.begin(), {"--model-path", job.model()});
    text += CommandText(Before(LinkVariables(job, i)) + Before(SglangVariables(job, i)) +
                            "python -m sglang.launch_server",
                        words);
  }
  LeaveOutBesideServers(job, false);
  return text;
}

}  // namespace servecast
