// vllm bench serve with the scenario's traffic: what would check its forecast on a server.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/math.h"
#include "base/text.h"
#include "export/targets.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

// What the data set "random" can say of lengths: a mean, and how far around it they are uniform.
struct Around {
  double mean = 0, share = 0;
  bool exact = true;
};

double EmpiricalMean(const NumberTable& quantiles) {
  double mean = 0;
  for (std::size_t i = 1; i < quantiles.size(); ++i) {
    mean += (quantiles[i][0] - quantiles[i - 1][0]) * (quantiles[i][1] + quantiles[i - 1][1]) / 2;
  }
  return mean;
}

Around AroundOf(const LengthSpec& length, double prompt_mean) {
  switch (length.distribution) {
    case LengthDistribution::kFixed:
      return {static_cast<double>(length.value)};
    case LengthDistribution::kUniform: {
      const auto low = static_cast<double>(length.min), high = static_cast<double>(*length.max);
      return {(low + high) / 2, (high - low) / (high + low)};
    }
    case LengthDistribution::kNormal:
      return {length.mean, 0, false};
    case LengthDistribution::kLognormal: {
      const double sigma = Log(length.p99 / length.median) / NormalQuantile(0.99);
      return {length.median * Exp(std::min(sigma * sigma / 2, 20.0)), 0, false};
    }
    case LengthDistribution::kEmpirical:
      return {EmpiricalMean(length.quantiles), 0, false};
    case LengthDistribution::kRatio:
      return {std::max(1.0, prompt_mean / length.ratio), 0, false};
    case LengthDistribution::kZipf:
      return {(static_cast<double>(length.min) + static_cast<double>(*length.max)) / 2, 0, false};
    default:
      return {512, 0, false};
  }
}

class Bench {
 public:
  explicit Bench(ExportJob& job) : job_(job), w_(*job.scenario().workload) {}

  std::string Write() {
    const bool images = SendsImages();
    Add("--backend", images ? "openai-chat" : "vllm");
    if (images) Add("--endpoint", "/v1/chat/completions");
    Add("--model", job_.model());
    Lengths();
    Images();
    Arrivals();
    Add("--num-prompts", Format("{}", w_.requests));
    Add("--seed", Format("{}", job_.scenario().seed));
    words_.emplace_back("--ignore-eos");
    // It asks for temperature 0 unless told otherwise, and then nothing is sampled by top-p.
    if (job_.scenario().model.top_p_by_default) Add("--temperature", "1");
    Targets();
    Add("--percentile-metrics", "ttft,tpot,itl,e2el");
    Add("--metric-percentiles", "50,90,99");
    words_.emplace_back("--save-result");
    words_.emplace_back("--save-detailed");
    Rest();
    return CommandText("vllm bench serve", words_);
  }

 private:
  void Add(const char* name, const std::string& value) {
    words_.emplace_back(name);
    words_.push_back(value);
  }
  static std::string Whole(double value) {
    return Format("{}", static_cast<std::int64_t>(std::floor(value + 0.5)));
  }

  void Lengths() {
    const Around prompt = AroundOf(w_.prompt_tokens, 0),
                 output = AroundOf(w_.output_tokens, prompt.mean);
    const bool several = w_.prefix.groups > 1 && w_.prefix.tokens > 0;
    if (several) {
      Add("--dataset-name", "prefix_repetition");
      Add("--prefix-repetition-num-prefixes", Format("{}", w_.prefix.groups));
      Add("--prefix-repetition-prefix-len", Format("{}", w_.prefix.tokens));
      Add("--prefix-repetition-suffix-len", Whole(prompt.mean));
      Add("--prefix-repetition-output-len", Whole(output.mean));
    } else {
      Add("--dataset-name", SendsImages() ? "random-mm" : "random");
      if (w_.prefix.groups == 1 && w_.prefix.tokens > 0)
        Add("--random-prefix-len", Format("{}", w_.prefix.tokens));
      Add("--random-input-len", Whole(prompt.mean));
      Add("--random-output-len", Whole(output.mean));
    }
    // One share holds for both lengths.
    const bool one = std::fabs(prompt.share - output.share) < 1e-9 && !several;
    if (one && prompt.share > 0) Add("--random-range-ratio", NumberText(prompt.share));
    if (!prompt.exact || (!one && prompt.share > 0)) Mean("prompt_tokens");
    if (!output.exact || (!one && output.share > 0)) Mean("output_tokens");
  }
  bool SendsImages() const { return w_.images.per_request > 0 && w_.prefix.groups <= 1; }

  void Images() {
    if (!w_.HasImages()) return;
    const ImageSpec& i = w_.images;
    if (i.per_request == 0) {
      job_.LeaveOut("workload.classes.images_per_request", "all of its requests are alike");
      return;
    }
    if (w_.prefix.groups > 1) {
      job_.LeaveOut("workload.images", "the data set of several prefixes has none");
      return;
    }
    Add("--random-mm-base-items-per-request", Format("{}", i.per_request));
    Add("--random-mm-bucket-config", Format("{{({}, {}, 1): 1.0}}", i.height, i.width));
    Add("--random-mm-limit-mm-per-prompt", Format(R"({{"image": {}}})", i.per_request));
    if (i.distinct > 0) job_.LeaveOut("workload.images.distinct", "no two of its images are equal");
  }
  void Mean(const char* which) {
    job_.LeaveOut(Format("workload.{}", which),
                  "the benchmark sends its mean: compare means, not percentiles");
  }

  void Arrivals() {
    const ArrivalSpec& a = w_.arrivals;
    const bool rate = HasRate(a.process);
    Add("--request-rate", rate ? NumberText(a.rate_per_s) : "inf");
    if (CapsClients(a)) Add("--max-concurrency", Format("{}", *a.max_concurrency));
    if (a.process == ArrivalProcess::kGamma) {
      // Shape of a gamma distribution with this coefficient of variation.
      Add("--burstiness", NumberText(1 / (a.cv * a.cv)));
    } else if (a.process == ArrivalProcess::kConstant) {
      Add("--burstiness", "1000000");
    } else if (a.process == ArrivalProcess::kClosedLoop) {
      Add("--max-concurrency", Format("{}", a.concurrency));
      if (a.think_time_s > 0)
        job_.LeaveOut("workload.arrivals.think_time_s", "its clients send at once");
    } else if (a.process == ArrivalProcess::kTrace) {
      job_.LeaveOut("workload.arrivals.process = trace", "it sends no trace of times");
    } else if (a.process != ArrivalProcess::kPoisson && a.process != ArrivalProcess::kStatic) {
      job_.LeaveOut("workload.arrivals.process",
                    "its gaps are of a gamma distribution: here exponential");
    }
    if (rate && (a.profile != RateProfile::kFlat || !a.spikes.empty())) {
      job_.LeaveOut("workload.arrivals.profile", "it sends at the mean rate");
    }
  }

  // Limits of requests, which it counts.
  void Targets() {
    std::vector<std::string> limits;
    for (const SloSpec& slo : job_.scenario().slo) {
      if (slo.metric == SloMetric::kItl || !slo.of_class.empty() || !limits.empty()) {
        job_.LeaveOut("slo", "--goodput takes one set of limits on TTFT, TPOT and E2E");
        continue;
      }
      if (slo.metric != SloMetric::kAttainment) continue;
      if (slo.ttft_ms) limits.push_back("ttft:" + NumberText(*slo.ttft_ms));
      if (slo.tpot_ms) limits.push_back("tpot:" + NumberText(*slo.tpot_ms));
      if (slo.e2e_ms) limits.push_back("e2el:" + NumberText(*slo.e2e_ms));
    }
    if (limits.empty()) return;
    words_.emplace_back("--goodput");
    words_.insert(words_.end(), limits.begin(), limits.end());
  }

  void Rest() {
    if (w_.retries.On() || w_.retries.Hedges()) {
      job_.LeaveOut("workload.retries", "its clients do not try again");
    }
    if (w_.sessions.turns > 1)
      job_.LeaveOut("workload.sessions", "each of its requests stands alone");
    if (w_.adapters.count > 0) {
      job_.LeaveOut("workload.adapters", "give it their names by --lora-modules");
    }
    if (!w_.classes.empty()) job_.LeaveOut("workload.classes", "all of its requests are alike");
    job_.LeaveOutSections({"hardware", "engine", "cluster", "scheduler"},
                          "is the server's: servecast export --to vllm");
    job_.LeaveOutSections({"latency"}, "is the simulation's own");
    job_.LeaveOutSections({"measure"}, "the benchmark measures all of its requests");
  }

  ExportJob& job_;
  const WorkloadSpec& w_;
  std::vector<std::string> words_;
};

}  // namespace

std::string WriteBench(ExportJob& job) { return Bench(job).Write(); }

}  // namespace servecast
