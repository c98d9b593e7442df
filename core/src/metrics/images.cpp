// What images took of a run.
#include "metrics/summarize.h"
#include "servecast/workload_spec.h"

namespace servecast {

void ReportImages(const RunView& run, Report& report) {
  ImageReport& images = report.images;
  images.on = true;
  const ImageSpec& spec = run.scenario.workload->images;
  images.tokens = ImageTokens(run.scenario.model.vision, spec.width, spec.height);
  const TimeNs busy = run.recorder.busy_ns();
  if (busy > 0) {
    images.encode_share = static_cast<double>(run.counts.encode_ns) / static_cast<double>(busy);
  }
  if (report.time_split.n == 0) return;
  double sum = 0;
  for (std::size_t i = 0; i < run.requests.arrival.size(); ++i) {
    if (run.results.state[i] != RequestState::kCompleted || !run.Measured(i)) continue;
    sum += static_cast<double>(run.results.Encode(i));
  }
  images.ttft_ms = sum / kMs / static_cast<double>(report.time_split.n);
}

std::string HangWords(const Scenario& scenario, const Report& report) {
  if (scenario.measure.horizon_s || report.running == 0) return "";
  return "vLLM hangs here: a prompt is cut where a state is kept, in front of an image that waits "
         "for room in the encoder's cache, which the image before it holds. "
         "A larger max_num_batched_tokens makes room.";
}

}  // namespace servecast
