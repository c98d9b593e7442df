// servecast calibrate: parameters of the latency model from one's own measurements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arguments.h"
#include "base/printable.h"
#include "base/text.h"
#include "calibrate/calibrate.h"
#include "calibrate/design.h"
#include "calibrate/pack.h"
#include "calibrate/server.h"
#include "calibrate/verdict.h"
#include "calibrate_traces.h"
#include "commands.h"
#include "host/files.h"
#include "host/output_file.h"

namespace servecast {
namespace {

constexpr const char* kCalibrateHelp =
    "servecast calibrate FILE... [options]\n"
    "servecast calibrate --advise --scenario FILE|PRESET\n"
    "\n"
    "Fits the few physical parameters of the latency model \"analytic\" to measurements of a "
    "server,\n"
    "and writes them as a pack: servecast run FILE --calibration pack.json. Prints on stderr what\n"
    "each file holds, the parameters with their 95 % intervals, and the errors before and after.\n"
    "\n"
    "  FILE                    plain or .gz, recognised by what is in it:\n"
    "                            a result of vllm bench serve --save-result, best with\n"
    "                            --save-detailed: of 90 requests and more the last third judges\n"
    "                            CSV prompt_tokens, ttft_p50_ms: prompts that come alone\n"
    "                            CSV batch, mean_context_tokens, itl_p50_ms: decode steps\n"
    "                            CSV request_rate_rps, num_prompts, input_tokens_mean,\n"
    "                            output_tokens_mean, ttft_mean_ms, tpot_mean_ms, e2e_mean_ms\n"
    "                            results of GuideLLM, aiperf, inference-perf (JSON)\n"
    "                            metrics of a vLLM server, asked twice with their headers:\n"
    "                            for i in 1 2; do curl -si SERVER/metrics; sleep 300; done\n"
    "                            power beside the run of the file before it: rows of nvidia-smi\n"
    "                            (timestamp, power.draw as CSV), its table, or DCGM's metrics:\n"
    "                            busy_w and compute_w or memory_w of the card\n"
    "                            traces of steps and journeys as the OTLP exporter writes them:\n"
    "                            coefficients of the model \"physics\" (docs/how-to/traces.md)\n"
    "  --scenario FILE|PRESET  the server, and where the fit begins; without it the presets that\n"
    "                          the columns model, gpu, engine, engine_version and tp mean. Of\n"
    "                          several replicas runs are those of all of them, by its router\n"
    "  --set path=value        change a member of the scenario; may be repeated\n"
    "  --backend NAME          of traces: physics, or blackbox; of all else analytic, or "
    "blackbox:\n"
    "                          three times of a step and three delays, linear in tokens\n"
    "  --alpha-noise-correction  of traces: waits less the median of who found no queue\n"
    "  --hold-out FILE         judge the fit by this file, which it does not see; may be repeated\n"
    "  -o FILE                 where the pack goes; else to stdout\n"
    "  --rows                  a line for each figure on stderr: measured, before, after\n"
    "  --advise                the five runs that would tell most of what is not known yet, as\n"
    "                          commands on stderr; without files on stdout: those to begin with\n"
    "\n"
    "What the measurements cannot tell stays as it is, and a warning says what would tell it.\n"
    "servecast calibrate --help, docs/how-to/calibrate.md.\n"
    "\n"
    "Exit 0: done. 2: bad input, every issue on stderr. 70: a bug of servecast.\n";

constexpr std::size_t kMostFileBytes = std::size_t{1} << 28;

struct Request {
  Words files, held_out, overrides, scenarios;
  std::string scenario, out, backend;
  bool rows = false, advise = false, help = false, noise_correction = false;
};

// nullopt: the words are read; else an exit code.
std::optional<int> ReadWords(const Words& words, Request& out) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--help" || word == "-h") {
      out.help = true;
    } else if (word == "--rows") {
      out.rows = true;
    } else if (word == "--alpha-noise-correction") {
      out.noise_correction = true;
    } else if (word == "--advise") {
      out.advise = true;
    } else if (word == "--scenario" || word == "--set" || word == "--hold-out" || word == "-o" ||
               word == "--backend") {
      if (i + 1 == words.size() || words[i + 1].empty()) return Usage(word + " needs a value");
      const std::string& value = words[++i];
      if (word == "--set") {
        out.overrides.push_back(value);
      } else if (word == "--hold-out") {
        out.held_out.push_back(value);
      } else if (word == "--scenario") {
        out.scenarios.push_back(value);
        out.scenario = value;
      } else {
        (word == "-o" ? out.out : out.backend) = value;
      }
    } else if (word.size() > 1 && word[0] == '-') {
      return Usage("unknown option " + word);
    } else {
      out.files.push_back(word);
    }
  }
  const bool asks = out.advise && !out.scenario.empty();
  if (!out.help && !asks && out.files.empty()) return Usage("no measurements given");
  return std::nullopt;
}

std::string NameOfFile(const std::string& path) {
  return Printable(path.substr(path.rfind('/') + 1));
}

// All files, or the issues of all of them.
Result<Measurements> ReadAll(const Request& request) {
  Measurements all;
  Issues issues;
  const auto read = [&](const std::string& path, bool held_out) {
    const Result<std::string> text = ReadFile(path, kMostFileBytes);
    Result<Measurements> one =
        text.ok() ? ReadMeasurements(text.value(), NameOfFile(path)) : Issues(text.issues());
    if (!one.ok()) {
      issues.insert(issues.end(), one.issues().begin(), one.issues().end());
      return;
    }
    for (CalibrationPoint& point : one.value().points) point.held_out |= held_out;
    for (MeasuredPower& power : one.value().power) power.held_out |= held_out;
    if (held_out) {
      for (std::string& line : one.value().found) line += "; held out";
    }
    AddMeasurements(std::move(one.value()), all);
  };
  for (const std::string& path : request.files) read(path, false);
  for (const std::string& path : request.held_out) read(path, true);
  if (!issues.empty()) return issues;
  return all;
}

Result<Scenario> ScenarioOf(const Request& request, Measurements& measurements) {
  Result<std::string> text = request.scenario.empty() ? ServerDocument(measurements.server)
                                                      : ScenarioText(request.scenario);
  if (!text.ok()) return Issues(text.issues());
  const std::string label = ScenarioPreset(request.scenario) ? "" : request.scenario;
  text = ApplyOverrides(text.value(), request.overrides);
  if (!text.ok()) return Labelled(label, text.issues());
  Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return Labelled(label, scenario.issues());
  if (request.backend == "analytic") scenario.value().latency.backend = request.backend;
  if (request.backend == "blackbox") scenario = WithBlackbox(std::move(scenario.value()));
  if (!scenario.ok()) return scenario;
  if (!request.scenario.empty()) {
    const auto lines = ServerMismatches(measurements.server, scenario.value());
    measurements.warnings.insert(measurements.warnings.end(), lines.begin(), lines.end());
  }
  return scenario;
}

std::string ValueText(double value) { return value == 0 ? "0" : ShortNumber(value); }

void PrintFit(const Calibration& calibration) {
  fmt::print(stderr, "\n{:<34} {:>9} {:>9}   {:<20} unit\n", "", "before", "fitted", "95 %");
  for (const FittedParameter& p : calibration.fitted) {
    const std::string interval =
        p.at_limit ? "at its limit" : fmt::format("{} to {}", ValueText(p.low), ValueText(p.high));
    fmt::print(stderr, "{:<34} {:>9} {:>9}   {:<20} {}\n", p.parameter->path, ValueText(p.before),
               ValueText(p.value), interval, p.parameter->unit);
  }
  fmt::print(stderr, "\n{:<34} {:>9} {:>9} {:>9} {:>9}\n", "off by per cent, mean and most",
             "before", "most", "after", "most");
  for (const CalibrationError& e : calibration.errors) {
    fmt::print(stderr, "{:<34} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f}\n",
               fmt::format("{} {}, {}{}", WordOf(e.form), WordOf(e.figure), e.points,
                           e.held_out ? ", held out" : ""),
               e.before.mean, e.before.most, e.after.mean, e.after.most);
  }
}

// Of the rows that are fitted, or of those that are held out, in per cent.
void PrintPowerErrors(const PowerFit& power, bool held_out) {
  double before = 0, after = 0;
  int rows = 0;
  bool known = true;
  for (const PowerRow& row : power.rows) {
    if (row.held_out != held_out) continue;
    ++rows;
    known = known && row.before_w;
    if (row.before_w) before += 100 * std::fabs(*row.before_w / row.measured_w - 1);
    after += 100 * std::fabs(row.after_w / row.measured_w - 1);
  }
  if (rows == 0) return;
  fmt::print(stderr, "{:<34} {:>9} {:>9.1f}\n",
             fmt::format("off by per cent, mean{}", held_out ? ", held out" : ""),
             known ? fmt::format("{:.1f}", before / rows) : "not known", after / rows);
}

void PrintPower(const PowerFit& power) {
  if (power.rows.empty()) return;
  fmt::print(stderr, "\n{:<34} {:>9} {:>9}   {:<20} unit\n", "power of the card", "before",
             "fitted", "95 %");
  for (const FittedPower& p : power.fitted) {
    fmt::print(stderr, "{:<34} {:>9} {:>9}   {:<20} W\n",
               fmt::format("hardware.{}", p.constant->name), ValueText(p.before),
               ValueText(p.value), fmt::format("{} to {}", ValueText(p.low), ValueText(p.high)));
  }
  fmt::print(stderr, "\n{:<34} {:>9} {:>9}   measured\n", "mean W of a GPU", "before", "after");
  for (const PowerRow& row : power.rows) {
    fmt::print(stderr, "{:<34} {:>9} {:>9}   {}{}\n", Printable(row.label),
               row.before_w ? ValueText(*row.before_w) : "not known", ValueText(row.after_w),
               ValueText(row.measured_w), row.held_out ? ", held out" : "");
  }
  PrintPowerErrors(power, false);
  PrintPowerErrors(power, true);
}

void PrintReplays(const Calibration& calibration) {
  if (calibration.replays.empty()) return;
  fmt::print(stderr, "\n{:<50} {:<5} {:>9} {:>9}   median off by\n",
             "requests replayed one by one: KS distance", "", "before", "after");
  for (const RunReplay& replay : calibration.replays) {
    for (std::size_t i = 0; i < replay.after.size(); ++i) {
      const ReplayDistance& d = replay.after[i];
      fmt::print(stderr, "{:<50} {:<5} {:>9.3f} {:>9.3f}   {:.1f} %{}{}\n", Printable(replay.label),
                 d.figure, replay.before[i].ks, d.ks, d.median_error,
                 replay.held_out ? ", held out" : "",
                 d.met ? "" : fmt::format("; beyond {} or {} %", kMostKs, kMostMedianError));
    }
  }
}

void PrintRows(const Calibration& calibration) {
  fmt::print(stderr, "\n{:<50} {:<5} {:>10} {:>10} {:>10}\n", "ms", "", "measured", "before",
             "after");
  for (const PointResidual& r : calibration.residuals) {
    fmt::print(stderr, "{:<50} {:<5} {:>10} {:>10} {:>10} {:+.1f}%{}\n", r.label, WordOf(r.figure),
               ShortNumber(r.measured_ms), ShortNumber(r.before_ms), ShortNumber(r.after_ms),
               100 * (r.after_ms / r.measured_ms - 1), r.held_out ? ", held out" : "");
  }
}

// In the unit of a constant, half of an interval.
std::string HalfText(std::optional<double> half) {
  return half ? "+-" + ShortNumber(*half) : std::string("not told");
}

int PrintAdvice(const Scenario& scenario, const Measurements& measured, std::FILE* to) {
  MeasurementDesign design(scenario, measured, measured.server.model);
  while (!design.Advance(INT64_MAX)) {
  }
  if (!design.answer().ok()) return PrintIssues(design.answer().issues());
  const MeasurementAdvice& advice = design.answer().value();
  for (const AdvisedMeasurement& m : advice.measurements) {
    std::string tells;
    for (const std::string& title : m.tells) tells += (tells.empty() ? "; tells " : ", ") + title;
    fmt::print(to, "# {}{}\n{}\n", m.what, tells, Printable(m.command));
  }
  fmt::print(to, "#\n# {:<34} {:>12} {:>12}   unit\n", "95 %", "now", "with these");
  for (const MeasurementAdvice::Expected& e : advice.expected) {
    fmt::print(to, "# {:<34} {:>12} {:>12}   {}\n", e.parameter->path, HalfText(e.now),
               HalfText(e.then), e.parameter->unit);
  }
  return 0;
}

}  // namespace

int CalibrateCommand(const Words& words) {
  Request request;
  if (const auto done = ReadWords(words, request)) return *done;
  if (request.help) {
    return PrintHelp(kCalibrateHelp);
  }
  Words inputs = request.files;
  inputs.insert(inputs.end(), request.held_out.begin(), request.held_out.end());
  inputs.insert(inputs.end(), request.scenarios.begin(), request.scenarios.end());
  if (const auto problem = Collision(inputs, {request.out})) return Usage(*problem);
  if (!request.backend.empty() && request.backend != "physics" && request.backend != "blackbox" &&
      request.backend != "analytic") {
    return Usage("--backend is analytic, physics or blackbox, not " + request.backend);
  }
  if (request.files.empty() && request.held_out.empty()) {
    Measurements none;
    const Result<Scenario> scenario = ScenarioOf(request, none);
    return scenario.ok() ? PrintAdvice(scenario.value(), none, stdout)
                         : PrintIssues(scenario.issues());
  }
  const std::optional<int> traces =
      CalibrateTraces({request.files, request.scenarios, request.overrides, request.backend,
                       request.out, request.noise_correction});
  if (traces) return *traces;
  if (request.backend == "physics") {
    return Usage("--backend physics needs traces of steps, found none");
  }
  if (request.scenarios.size() > 1) return Usage("--scenario is given more than once");
  Result<Measurements> measurements = ReadAll(request);
  if (!measurements.ok()) return PrintIssues(measurements.issues());
  const Result<Scenario> scenario = ScenarioOf(request, measurements.value());
  if (!scenario.ok()) return PrintIssues(scenario.issues());
  for (const std::string& line : measurements.value().found) {
    fmt::print(stderr, "found    {}\n", Printable(line));
  }
  const Result<Calibration> calibration = Calibrate(scenario.value(), measurements.value());
  if (!calibration.ok()) return PrintIssues(calibration.issues());
  PrintFit(calibration.value());
  PrintPower(calibration.value().power);
  PrintReplays(calibration.value());
  if (request.rows) PrintRows(calibration.value());
  for (const std::string& line : calibration.value().warnings) {
    fmt::print(stderr, "warning: {}\n", Printable(line));
  }
  const PackOrigin origin = OriginOf(scenario.value(), measurements.value(), Today());
  const CalibrationVerdict verdict = VerdictOf(calibration.value(), measurements.value(), origin);
  fmt::print(stderr, "\n{} {}\n", verdict.sentence, verdict.detail);
  if (request.advise) {
    Scenario fitted = scenario.value();
    for (const FittedParameter& p : calibration.value().fitted) p.parameter->write(fitted, p.value);
    fmt::print(stderr, "\n");
    const int failed = PrintAdvice(fitted, measurements.value(), stderr);
    if (failed != 0) return failed;
  }
  const std::string pack = PackJson(calibration.value(), origin) + "\n";
  return WriteOrPrint(request.out, pack) ? 0 : kBadInput;
}

}  // namespace servecast
