// A forecast inside another program: a preset scenario at the rate of the first argument.
#include <servecast/experiment.h>
#include <servecast/report.h>
#include <servecast/scenario.h>

#include <iostream>
#include <string>
#include <utility>

namespace {

int Refuse(const servecast::Issues& issues) {
  for (const servecast::Issue& issue : issues) {
    std::cerr << issue.path << ": " << issue.message << '\n';
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string rate = argc > 1 ? argv[1] : "20";
  const auto document =
      servecast::ApplyOverrides(*servecast::ScenarioPreset("llama-3.1-8b-h100-chat"),
                                {"workload.arrivals.rate_per_s=" + rate});
  if (!document.ok()) return Refuse(document.issues());
  auto scenario = servecast::ParseScenario(document.value());
  if (!scenario.ok()) return Refuse(scenario.issues());
  auto experiment = servecast::Experiment::Create(std::move(scenario.value()));
  if (!experiment.ok()) return Refuse(experiment.issues());
  // In slices, so that a program stays responsive.
  while (!experiment.value().Advance(100'000)) {
  }
  const servecast::Report report = experiment.value().Snapshot();
  std::cout << servecast::ReportJson(report, servecast::ReportParts::kSummary) << '\n';
}
