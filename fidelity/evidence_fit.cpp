// See evidence_fit.h. Every set-up counts as one, however many rows it has.
#include "evidence_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/math.h"
#include "io/json_writer.h"
#include "measured_sets.h"
#include "servecast/report.h"

namespace servecast {
namespace {

constexpr std::size_t kMostRows = 6;  // of a set-up that the field holds
// Below this ratio of TTFT to TPOT nothing queues, and TTFT is the prompt's own time.
constexpr double kNoQueue = 6;

using ForecastErrors = std::vector<ForecastError>;

// Rows of one set-up, by its first row.
using Setups = std::vector<std::vector<const ForecastError*>>;

Setups SetupsOf(const std::vector<const ForecastError*>& rows) {
  Setups setups;
  for (const ForecastError* row : rows) {
    const auto found = std::find_if(setups.begin(), setups.end(), [row](const auto& setup) {
      return SameSetup(setup[0]->of.at, row->of.at);
    });
    if (found == setups.end()) {
      setups.push_back({row});
    } else {
      found->push_back(row);
    }
  }
  return setups;
}

// Of each set-up at most so many rows, spread over its lengths and clients.
std::vector<FieldPoint> Thinned(const Setups& setups) {
  std::vector<FieldPoint> points;
  for (std::vector<const ForecastError*> rows : setups) {
    std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
      const auto key = [](const ForecastError* e) {
        return std::tuple(e->of.at.prompt, e->of.at.output, e->of.at.clients);
      };
      return key(a) < key(b);
    });
    const std::size_t n = std::min(rows.size(), kMostRows);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = n == 1 ? 0 : i * (rows.size() - 1) / (n - 1);
      points.push_back(rows[at]->of);
    }
  }
  return points;
}

// A row whose set-up, or laboratory, the field has not seen; as of a stranger.
struct Judged {
  const ForecastError* row = nullptr;
  std::size_t setup = 0;
  double weight = 0;  // one over its set-up's rows
  ErrorField::Moments moments;
  Nearness nearness = Nearness::kFar;

  double Z() const {
    return (row->of.error - kCorrected * moments.mean) / moments.Spread(kCorrected);
  }
};

using LeavesOut = std::function<bool(const SetupFeatures& held, const SetupFeatures& other)>;

std::vector<Judged> JudgeLeftOut(const Setups& setups, const std::vector<FieldPoint>& points,
                                 const LeavesOut& leaves_out) {
  std::vector<Judged> judged;
  for (std::size_t s = 0; s < setups.size(); ++s) {
    const SetupFeatures& held = setups[s][0]->of.at;
    std::vector<FieldPoint> others;
    for (const FieldPoint& point : points) {
      if (!leaves_out(held, point.at)) others.push_back(point);
    }
    const ErrorField field(others);
    for (const ForecastError* row : setups[s]) {
      SetupFeatures stranger = row->of.at;
      stranger.laboratory = "";
      judged.push_back({row, s, 1 / static_cast<double>(setups[s].size()),
                        field.MomentsAt(stranger), field.At(stranger, 1).nearness});
    }
  }
  return judged;
}

bool LeavesServer(const SetupFeatures& held, const SetupFeatures& other) {
  return SameServer(held, other);
}
bool LeavesLaboratory(const SetupFeatures& held, const SetupFeatures& other) {
  return held.laboratory == other.laboratory || SameServer(held, other);
}

double WeightedQuantile(std::vector<std::pair<double, double>> values, double share) {
  std::sort(values.begin(), values.end());
  double all = 0, below = 0;
  for (const auto& [value, weight] : values) all += weight;
  for (const auto& [value, weight] : values) {
    below += weight;
    if (below >= share * all) return value;
  }
  return values.back().first;
}

// Half-width of 90 % over the spread, with the correction for so few set-ups.
double ScaleOf(const std::vector<Judged>& judged, std::size_t setups) {
  std::vector<std::pair<double, double>> sizes;
  for (const Judged& j : judged) sizes.emplace_back(std::fabs(j.Z()), j.weight);
  return WeightedQuantile(sizes, std::min(0.9 * (1 + 1 / static_cast<double>(setups)), 1.0));
}

struct Band {
  double low = 0, high = 0;
};
Band BandOf(const Judged& j, double q) {
  const double centre = kCorrected * j.moments.mean;
  const double half = std::max(q * j.moments.Spread(kCorrected), kLeastHalf);
  return {centre - half, centre + half};
}

// Width, and twenty times what lies outside.
double Score(double error, const Band& band) {
  const double outside = std::max({band.low - error, error - band.high, 0.0});
  return band.high - band.low + 20 * outside;
}

struct Coverage {
  std::size_t rows = 0, covered = 0;
  std::set<std::size_t> setups;
  double setup_weight = 0, setup_covered = 0, score = 0;
  std::vector<double> halves;

  void Add(const Judged& j, double q) {
    const Band band = BandOf(j, q);
    const bool in = j.row->of.error >= band.low && j.row->of.error <= band.high;
    ++rows;
    covered += in ? 1 : 0;
    setups.insert(j.setup);
    setup_weight += j.weight;
    setup_covered += in ? j.weight : 0;
    score += j.weight * Score(j.row->of.error, band);
    halves.push_back((band.high - band.low) / 2);
  }
  std::string Line(std::string_view name) const {
    return fmt::format(
        "| {} | {} | {} | {:.0f} | {:.0f} | {:.1f} | {:.3f} |\n", name, rows, setups.size(),
        100.0 * static_cast<double>(covered) / static_cast<double>(rows),
        100 * setup_covered / setup_weight, 100 * PercentileOf(halves, 0.5), score / setup_weight);
  }
};

// The 5 and 95 % points of the rows that are not left out as one band, each set-up of one weight.
double ConstantScore(const std::vector<Judged>& judged, const LeavesOut& leaves_out) {
  std::map<std::size_t, Band> bands;
  double score = 0, weight = 0;
  for (const Judged& j : judged) {
    auto band = bands.find(j.setup);
    if (band == bands.end()) {
      std::vector<std::pair<double, double>> others;
      for (const Judged& o : judged) {
        if (!leaves_out(j.row->of.at, o.row->of.at)) others.emplace_back(o.row->of.error, o.weight);
      }
      const Band of_others = {WeightedQuantile(others, 0.05), WeightedQuantile(others, 0.95)};
      band = bands.emplace(j.setup, of_others).first;
    }
    score += j.weight * Score(j.row->of.error, band->second);
    weight += j.weight;
  }
  return score / weight;
}

std::string CoverageTable(const std::vector<Judged>& judged, double q,
                          const LeavesOut& leaves_out) {
  std::map<std::string_view, Coverage> classes;
  Coverage all;
  for (const Judged& j : judged) {
    classes[ClassOf(j.row->of.at, j.nearness)].Add(j, q);
    all.Add(j, q);
  }
  std::string text =
      "| class | rows | set-ups | of rows, % | of set-ups, % | half-width, % | score |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const auto& [name, coverage] : classes) text += coverage.Line(name);
  text += all.Line("all");
  return text +
         fmt::format("\nScore of one band for all: {:.3f}.\n", ConstantScore(judged, leaves_out));
}

// Claims that a limit beside the measured value is kept: limits at even steps from 35 % below to
// 35 % above it.
std::string ReliabilityTable(const std::vector<Judged>& judged, double q) {
  constexpr int kLimits = 29, kBins = 10;
  std::array<double, kBins> claimed{}, weight{}, right{};
  std::array<std::size_t, kBins> n{};
  for (const Judged& j : judged) {
    const Band band = BandOf(j, q);
    const double sd = (band.high - band.low) / 2 / kZ90, centre = (band.high + band.low) / 2;
    for (int i = 0; i < kLimits; ++i) {
      const double share = 0.65 + 0.7 * (i + 0.5) / kLimits;
      const double limit = j.row->of.error + Log(share);  // over the forecast
      const double p = NormalCdf((limit - centre) / sd);
      const auto bin = static_cast<std::size_t>(std::min(p * kBins, kBins - 1.0));
      ++n[bin];
      weight[bin] += j.weight;
      claimed[bin] += j.weight * p;
      right[bin] += share >= 1 ? j.weight : 0;
    }
  }
  std::string text = "| claimed | mean | cases | kept, % |\n|---|---|---|---|\n";
  for (std::size_t i = 0; i < kBins; ++i) {
    if (n[i] == 0) continue;
    text += fmt::format("| {} to {} % | {:.0f} | {} | {:.0f} |\n", 10 * i, 10 * (i + 1),
                        100 * claimed[i] / weight[i], n[i], 100 * right[i] / weight[i]);
  }
  return text;
}

// Forecasts of the same row by metric, of which nothing queues.
struct Unqueued {
  const ForecastError *tpot = nullptr, *ttft = nullptr, *p99 = nullptr;
};
std::vector<Unqueued> UnqueuedOf(const std::vector<const ForecastError*>& rows) {
  std::map<std::pair<std::string, std::string>, Unqueued> by_row;
  for (const ForecastError* row : rows) {
    Unqueued& u = by_row[{row->set, row->row}];
    (row->metric == "tpot" ? u.tpot : row->metric == "ttft" ? u.ttft : u.p99) = row;
  }
  std::vector<Unqueued> found;
  for (const auto& [name, u] : by_row) {
    const bool serves =
        u.tpot != nullptr && u.ttft != nullptr && u.tpot->of.at.run == RunKind::kServing;
    if (serves && u.ttft->predicted < kNoQueue * u.tpot->predicted) found.push_back(u);
  }
  return found;
}

// What TTFT is off by where nothing queues, over the half-width of steps; and p99 beyond the mean.
void ScalePrompts(const std::vector<Judged>& judged, const std::vector<Unqueued>& rows,
                  FieldScale& scale) {
  std::vector<double> sizes;
  std::vector<double> beyond[2];
  for (const Unqueued& u : rows) {
    const auto of = std::find_if(judged.begin(), judged.end(),
                                 [&u](const Judged& j) { return j.row == u.tpot; });
    if (of == judged.end()) continue;
    const Band band = BandOf(*of, scale.q);
    sizes.push_back(std::fabs(u.ttft->of.error) * 2 / (band.high - band.low));
    if (u.p99 != nullptr) {
      beyond[u.ttft->of.at.Experts() ? 1 : 0].push_back(u.p99->of.error - u.ttft->of.error);
    }
  }
  if (!sizes.empty()) scale.prompt = PercentileOf(sizes, 0.9);
  for (std::size_t i = 0; i < 2; ++i) {
    if (beyond[i].empty()) continue;
    scale.p99_low[i] = std::min(PercentileOf(beyond[i], 0.05), 0.0);
    scale.p99_high[i] = std::max(PercentileOf(beyond[i], 0.95), 0.0);
  }
}

// The upper end of bands of mean TTFT on a strange server that has the least score, of rows whose
// server the field has not seen, each set-up of one weight. (The lower end that has it is none.)
void ScaleFirstTokens(const std::vector<const ForecastError*>& first_tokens,
                      const std::vector<FieldPoint>& points, FieldScale& scale) {
  constexpr double kCold = 3;  // a server that is twenty times late was not warm
  constexpr double kMost = 3, kStep = 0.05;
  struct Row {
    double error, half, strange, weight;
  };
  std::vector<Row> rows;
  for (const auto& setup : SetupsOf(first_tokens)) {
    std::vector<FieldPoint> others;
    for (const FieldPoint& point : points) {
      if (!LeavesServer(setup[0]->of.at, point.at)) others.push_back(point);
    }
    const ErrorField field(others);
    for (const ForecastError* row : setup) {
      if (row->of.error > kCold) continue;
      SetupFeatures stranger = row->of.at;
      stranger.laboratory = "";
      const StepError error = field.At(stranger, scale.q);
      rows.push_back({row->of.error, scale.prompt * error.half, error.strange,
                      1 / static_cast<double>(setup.size())});
    }
  }
  double least = std::numeric_limits<double>::infinity();
  for (double end = 0; end <= kMost; end += kStep) {
    double score = 0;
    for (const Row& row : rows) {
      const double more = end * row.strange, half = std::sqrt(row.half * row.half + more * more);
      score += row.weight * (half + 20 * std::max(0.0, row.error - half));
    }
    if (score < least) least = score, scale.first_high = end;
  }
}

double Rounded(double value) { return std::nearbyint(value * 1e4) / 1e4; }

void WriteSetup(JsonWriter& json, const SetupFeatures& f) {
  const auto text = [&json](const char* key, std::string_view value) {
    json.Key(key);
    json.Text(value);
  };
  text("laboratory", f.laboratory);
  text("model", f.model);
  text("form", f.form);
  text("weights", f.weights);
  text("gpu", f.gpu);
  text("engine", f.engine);
  text("run", kRunKindNames[static_cast<std::size_t>(f.run)]);
  json.Key("expert_parallel"), json.Boolean(f.expert_parallel);
  json.Key("tensor_parallel"), json.Number(f.tensor_parallel);
  json.Key("active_billions"), json.Number(f.active_billions);
  json.Key("gpus"), json.Number(f.gpus);
}

void WriteScale(JsonWriter& json, const FieldScale& scale) {
  json.Key("scale");
  json.BeginObject();
  json.Key("q"), json.Number(Rounded(scale.q));
  json.Key("prompt"), json.Number(Rounded(scale.prompt));
  json.Key("first_high"), json.Number(Rounded(scale.first_high));
  for (const auto& [key, values] :
       {std::pair{"p99_low", scale.p99_low}, std::pair{"p99_high", scale.p99_high}}) {
    json.Key(key);
    json.BeginArray();
    json.Number(Rounded(values[0]));
    json.Number(Rounded(values[1]));
    json.EndArray();
  }
  json.EndObject();
}

std::string EvidenceJson(const std::vector<FieldPoint>& points, const FieldScale& scale) {
  JsonWriter json(true);
  json.BeginObject();
  json.Key("written_by"), json.Text("servecast fidelity --evidence");
  json.Key("engine_version"), json.Text(kEngineVersion);
  WriteScale(json, scale);
  json.Key("setups");
  json.BeginArray();
  for (std::size_t i = 0; i < points.size();) {
    const SetupFeatures& at = points[i].at;
    json.BeginObject();
    WriteSetup(json, at);
    std::string rows = "[";
    for (; i < points.size() && SameSetup(at, points[i].at); ++i) {
      const SetupFeatures& f = points[i].at;
      rows += fmt::format("{}[{}, {}, {}, {:.4f}]", rows.size() > 1 ? ", " : "", f.prompt, f.output,
                          f.clients, points[i].error);
    }
    json.Key("rows"), json.Raw(rows + "]");
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take() + "\n";
}

// What fitted rows say of these bands, for comparison alone.
std::vector<Judged> JudgeFitted(const ForecastErrors& errors,
                                const std::vector<FieldPoint>& points) {
  std::vector<const ForecastError*> fitted;
  for (const ForecastError& e : errors) {
    if (e.metric == "tpot" && e.fitted) fitted.push_back(&e);
  }
  if (fitted.empty()) return {};
  return JudgeLeftOut(SetupsOf(fitted), points, LeavesServer);
}

}  // namespace

std::string_view ClassOf(const SetupFeatures& where, Nearness nearness) {
  if (nearness != Nearness::kNear) return kNearnessNames[static_cast<std::size_t>(nearness)];
  if (where.run == RunKind::kServing) return "serving near";
  return !where.Experts() && where.Vllm() ? "dense near" : "others near";
}

Result<EvidenceTexts> FitEvidence(const ForecastErrors& errors) {
  std::vector<const ForecastError*> steps, first_tokens, unseen;
  for (const ForecastError& e : errors) {
    if (e.fitted) continue;
    unseen.push_back(&e);
    if (e.metric == "tpot") steps.push_back(&e);
    if (e.metric == "ttft") first_tokens.push_back(&e);
  }
  const Setups setups = SetupsOf(steps);
  constexpr std::size_t kFewest = 20;
  if (setups.size() < kFewest) {
    return Issue{"", fmt::format("found forecasts of {} set-ups that no fit had seen, allowed {} "
                                 "or more",
                                 setups.size(), kFewest)};
  }
  const std::vector<FieldPoint> points = Thinned(setups);
  const std::vector<Judged> by_setup = JudgeLeftOut(setups, points, LeavesServer);
  const std::vector<Judged> by_laboratory = JudgeLeftOut(setups, points, LeavesLaboratory);
  FieldScale scale;
  const double q_setup = ScaleOf(by_setup, setups.size());
  const double q_laboratory = ScaleOf(by_laboratory, setups.size());
  scale.q = Rounded((q_setup + q_laboratory) / 2);
  ScalePrompts(by_setup, UnqueuedOf(unseen), scale);
  ScaleFirstTokens(first_tokens, points, scale);
  EvidenceTexts out;
  out.evidence = EvidenceJson(points, scale);
  out.tables = fmt::format(
      "q is {:.2f}: {:.2f} with set-ups left out, {:.2f} with laboratories left out.\n\n"
      "TPOT, forecasts that no fit had seen, set-ups left out:\n\n{}\nLaboratories left "
      "out:\n\n{}\n",
      scale.q, q_setup, q_laboratory, CoverageTable(by_setup, scale.q, LeavesServer),
      CoverageTable(by_laboratory, scale.q, LeavesLaboratory));
  const std::vector<Judged> fitted = JudgeFitted(errors, points);
  if (!fitted.empty()) {
    out.tables += fmt::format("Rows that constants were fitted to:\n\n{}\n",
                              CoverageTable(fitted, scale.q, LeavesServer));
  }
  out.tables +=
      fmt::format("Reliability, set-ups left out:\n\n{}\nLaboratories left out:\n\n{}",
                  ReliabilityTable(by_setup, scale.q), ReliabilityTable(by_laboratory, scale.q));
  return out;
}

}  // namespace servecast
