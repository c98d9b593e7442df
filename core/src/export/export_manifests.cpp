// Kubernetes Deployments and values of llm-d's chart.
#include <cmath>
#include <optional>

#include "base/text.h"
#include "export/targets.h"

namespace servecast {
namespace {

const char* RoleOf(const PoolSpec& pool) {
  return pool.role == PoolRole::kPrefill  ? "prefill"
         : pool.role == PoolRole::kDecode ? "decode"
                                          : "server";
}

// "- \"--max-num-seqs=128\"", a line each.
std::string ArgumentLines(const FlagWords& words, const std::string& indent) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (i + 1 < words.size() && words[i + 1].substr(0, 2) != "--") word += "=" + words[++i];
    text += indent + "- " + QuotedText(word) + "\n";
  }
  return text;
}

// The member "env" of a container; "" without variables.
std::string EnvironmentLines(const FlagWords& variables, const std::string& indent) {
  std::string text = variables.empty() ? "" : indent + "env:\n";
  for (const std::string& variable : variables) {
    const std::size_t end = variable.find('=');
    text += Format("{}- name: {}\n{}  value: {}\n", indent, variable.substr(0, end), indent,
                   QuotedText(variable.substr(end + 1)));
  }
  return text;
}

std::string Selector(ExportJob& job, std::size_t pool) {
  const std::string_view product = job.GpuProduct(pool);
  if (product.empty()) {
    job.LeaveOut(job.SectionAt(pool, "hardware"), "no label of nodes is known for this GPU");
    return "";
  }
  return Format("      nodeSelector:\n        nvidia.com/gpu.product: {}\n", product);
}

std::string Strategy(const RollingUpdateSpec& update, std::int64_t replicas) {
  if (!update.On()) return "";
  return Format("  strategy:\n    rollingUpdate:\n      maxSurge: {}\n      maxUnavailable: {}\n",
                update.Surge(replicas), update.Unavailable(replicas));
}

// As whole seconds, which Kubernetes asks for.
std::string GracePeriod(const ClusterSpec& cluster, const PoolSpec& pool) {
  const std::optional<double> seconds = cluster.TerminationGraceS(pool);
  if (!seconds) return "";
  return Format("      terminationGracePeriodSeconds: {}\n",
                static_cast<std::int64_t>(std::ceil(*seconds)));
}

}  // namespace

std::string DeploymentName(const std::vector<PoolSpec>& pools, std::size_t i) {
  return pools.size() == 1 ? "vllm" : Format("vllm-{}-{}", RoleOf(pools[i]), i);
}

std::string WriteKubernetes(ExportJob& job) {
  std::string text;
  const ClusterSpec& cluster = job.scenario().cluster;
  const auto& pools = cluster.pools;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const std::string name = DeploymentName(pools, i);
    FlagWords words = VllmFlags(job, i);
    words.insert(words.begin(), {"--model", job.model()});
    text += Format(
        "{}apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {}\nspec:\n  replicas: {}\n{}"
        "  selector:\n    matchLabels:\n      app: {}\n  template:\n    metadata:\n      labels:\n "
        "       app: {}\n",
        i == 0 ? "" : "---\n", name, pools[i].replicas / pools[i].attention_data_parallel,
        Strategy(cluster.rolling_update, pools[i].replicas), name, name);
    if (pools[i].role != PoolRole::kMixed)
      text += Format("        llm-d.ai/role: {}\n", RoleOf(pools[i]));
    text += "    spec:\n" + GracePeriod(cluster, pools[i]) + Selector(job, i);
    text += Format(
        "      containers:\n      - name: vllm\n        image: vllm/vllm-openai:{}\n        "
        "args:\n{}{}"
        "        ports:\n        - containerPort: 8000\n        resources:\n          limits:\n"
        "            nvidia.com/gpu: \"{}\"\n        volumeMounts:\n        - name: shm\n          "
        "mountPath: /dev/shm\n"
        "      volumes:\n      - name: shm\n        emptyDir:\n          medium: Memory\n",
        job.VersionTag(i), ArgumentLines(words, "        "),
        EnvironmentLines(LinkVariables(job, i), "        "), job.GpusOfServer(i));
  }
  LeaveOutBesideServers(job, true, true);
  return text;
}

std::string WriteLlmd(ExportJob& job) {
  const auto& pools = job.scenario().cluster.pools;
  std::string text = Format("modelArtifacts:\n  name: {}\n  uri: {}\n", QuotedText(job.model()),
                            QuotedText("hf://" + job.model()));
  bool prefill = false, decode = false;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const bool first = pools[i].role == PoolRole::kPrefill;
    bool& there = first ? prefill : decode;
    if (there) {
      job.LeaveOut(Format("cluster.pools.{}", i), "the chart has one pool of each role");
      continue;
    }
    there = true;
    text += Format(
        "{}:\n  create: true\n  replicas: {}\n  parallelism:\n    tensor: {}\n    data: {}\n",
        first ? "prefill" : "decode", pools[i].replicas / pools[i].attention_data_parallel,
        pools[i].tensor_parallel, pools[i].attention_data_parallel);
    const std::string_view product = job.GpuProduct(i);
    if (!product.empty()) {
      text += Format(
          "  acceleratorTypes:\n    labelKey: nvidia.com/gpu.product\n    labelValues:\n    - {}\n",
          product);
    }
    if (const std::string tag = job.VersionTag(i); tag != "latest") {
      job.LeaveOut(job.SectionAt(i, "engine") + ".preset",
                   "the chart's image has to be of vLLM " + tag);
    }
    // The chart makes these two of the parallelism above.
    FlagWords words = VllmFlags(job, i);
    words.erase(words.begin(), words.begin() + 2);
    text += Format(
        "  containers:\n  - name: vllm\n    modelCommand: vllmServe\n    args:\n{}{}    "
        "resources:\n "
        "     limits:\n"
        "        nvidia.com/gpu: \"{}\"\n",
        ArgumentLines(words, "    "), EnvironmentLines(LinkVariables(job, i), "    "),
        job.GpusOfServer(i));
  }
  if (!prefill) text += "prefill:\n  create: false\n";
  LeaveOutBesideServers(job, true);
  return text;
}

}  // namespace servecast
