// How long load is offered, and how alike the classes are served while it is.
#include <algorithm>
#include <vector>

#include "metrics/summarize.h"

namespace servecast {
namespace {

// Later turns come as fast as they are answered: they say nothing of what is offered.
bool ComesByItself(const RequestTable& requests, std::size_t i) {
  return requests.think.empty() || requests.think[i] < 0;
}

}  // namespace

TimeNs RunView::LastOffered() const {
  if (requests.InLoop()) return end;  // clients ask as fast as they are answered
  TimeNs last = 0;
  for (std::size_t i = 0; i < requests.arrival.size(); ++i) {
    if (ComesByItself(requests, i) && Arrived(i)) last = std::max(last, requests.arrival[i]);
  }
  return last;
}

// While load was offered: what each class asked for, and what of it was served by then. A prompt
// token is a unit of service, an output token two.
void JudgeFairness(const RunView& run, Report& report) {
  if (report.classes.size() < 2) return;
  const TimeNs last = run.LastOffered();
  struct Service {
    double asked = 0, served = 0;
  };
  std::vector<Service> services(report.classes.size());
  for (std::size_t i = 0; i < run.requests.arrival.size(); ++i) {
    if (!run.Arrived(i) || run.requests.arrival[i] > last) continue;
    Service& s = services[run.ClassOf(i)];
    const std::int64_t prompt = run.requests.prompt_tokens[i];
    s.asked += static_cast<double>(prompt + 2 * std::int64_t{run.requests.output_tokens[i]});
    const TimeNs completion = run.results.completion[i];
    if (completion < 0 || completion > last) continue;
    s.served += static_cast<double>(prompt + 2 * std::int64_t{run.requests.output_tokens[i]});
  }
  double n = 0, sum = 0, squares = 0;
  for (std::size_t c = 0; c < services.size(); ++c) {
    if (services[c].asked == 0) continue;
    const double share = services[c].served / services[c].asked;
    report.classes[c].served_share = share;
    n += 1;
    sum += share;
    squares += share * share;
  }
  if (n >= 2 && squares > 0) report.fairness = sum * sum / (n * squares);
}

}  // namespace servecast
