// Power of GPUs as it was measured: rows of nvidia-smi --query-gpu=timestamp,power.draw
// --format=csv (units and header or not), the table of nvidia-smi, and Prometheus text of the DCGM
// exporter. Sums of each GPU are kept, so files may be long.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "calibrate/readers.h"
#include "formats/measured_table.h"
#include "formats/nvidia_smi.h"
#include "formats/prometheus.h"
#include "import/words.h"
#include "io/issues.h"
#include "io/json_document.h"

namespace servecast {
namespace {

constexpr std::size_t kMostGpus = 1024;
constexpr double kMostWatts = 1e5;

bool HasUnit(std::string_view cell) {
  return cell.size() > 2 && cell.substr(cell.size() - 2) == " W";
}

// "345.67 W" or "345.67".
std::optional<double> WattsIn(std::string_view cell) {
  if (HasUnit(cell)) cell.remove_suffix(2);
  const std::optional<double> watts = NumberOf(Stripped(cell));
  return watts && *watts > 0 && *watts <= kMostWatts ? watts : std::nullopt;
}

// Of "2026/11/25 12:00:30.123", in no time zone.
std::optional<double> SecondsIn(std::string_view cell) {
  if (cell.size() < 19 || cell[4] != '/' || cell[7] != '/') return std::nullopt;
  const std::vector<double> n = NumbersIn(cell);
  return n.size() == 6 ? SecondsSince1970({n[0], n[1], n[2], n[3], n[4], n[5]}) : std::nullopt;
}

// A card that does not say its power, or not yet.
bool IsMissing(std::string_view cell) {
  return cell.empty() || cell[0] == '[' || cell == "N/A" || cell == "ERR!" || cell == "NaN";
}

class PowerReader {
 public:
  explicit PowerReader(const std::string& name) : name_(name) {}

  Result<Measurements> Read(std::string_view text) {
    const std::vector<std::string_view> lines = LinesIn(text);
    const bool dcgm = IsDcgmPower(text);
    const bool table = text.find("NVIDIA-SMI") != std::string_view::npos;
    what_ = dcgm ? "DCGM's metrics" : table ? "the table of nvidia-smi" : "nvidia-smi's rows";
    for (number_ = 1; number_ <= lines.size(); ++number_) {
      const std::string_view line = Stripped(lines[number_ - 1]);
      if (line.empty()) continue;
      dcgm ? TakeMetric(line) : table ? TakeTable(line) : TakeRow(line);
      if (gpus_.size() > kMostGpus) Refuse("found more than 1,024 GPUs, allowed those of a server");
      if (stop_) break;
    }
    return Measured();
  }

 private:
  struct Gpu {
    double sum = 0;
    std::int64_t samples = 0;
  };

  void Refuse(std::string message) {
    issues_.push_back({Format("{}, line {}", name_, number_), std::move(message)});
    stop_ = issues_.size() >= 16;
  }

  void Add(const std::string& gpu, double watts) {
    Gpu& of = gpus_[gpu];
    of.sum += watts;
    ++of.samples;
  }

  void At(std::optional<double> seconds) {
    if (!seconds) return;
    from_ = std::min(from_.value_or(*seconds), *seconds);
    to_ = std::max(to_.value_or(*seconds), *seconds);
  }

  // "| N/A   34C    P0    69W /  700W |": of one snapshot the n-th line is the n-th GPU.
  void TakeTable(std::string_view line) {
    if (line.find("NVIDIA-SMI") != std::string_view::npos) place_ = 0;
    const double watts = SmiLineIn(line).watts.used;
    if (watts > 0 && watts <= kMostWatts) Add(Format("{}", place_++), watts);
  }

  void TakeMetric(std::string_view text) {
    const PrometheusLine line = PrometheusLineIn(text);
    if (line.name != kDcgmPower) return;
    if (!line.closed) return Refuse("found labels without an end, allowed }");
    const std::optional<double> watts = WattsIn(line.text);
    if (!watts && !IsMissing(line.text))
      return Refuse("found no W behind the labels, allowed 0 to 100,000");
    if (!watts) return;
    std::string gpu = line.Label("UUID");
    if (gpu.empty()) gpu = line.Label("Hostname") + " " + line.Label("gpu");
    Add(gpu, *watts);
    At(line.time_ms ? std::optional(*line.time_ms * 1e-3) : std::nullopt);
  }

  void TakeRow(std::string_view line) {
    const std::vector<std::string_view> cells = SmiCells(line);
    if (line.find("power.draw") != std::string_view::npos) return TakeHead(cells);
    if (!watts_at_) FindColumns(cells);
    if (!watts_at_) {
      stop_ = true;
      return Refuse("found several columns without names, allowed a header, or one column of W");
    }
    const std::size_t least = std::max(*watts_at_, gpu_at_.value_or(0));
    if (cells.size() <= least) return Refuse("found fewer cells than columns, allowed as many");
    if (IsMissing(cells[*watts_at_])) return;
    const std::optional<double> watts = WattsIn(cells[*watts_at_]);
    if (!watts)
      return Refuse(Format("found \"{}\", allowed W from 0 to 100,000",
                           Shortened(PlainText(cells[*watts_at_]), 40)));
    Add(gpu_at_ ? std::string(cells[*gpu_at_]) : "", *watts);
    if (time_at_ && *time_at_ < cells.size()) At(SecondsIn(cells[*time_at_]));
  }

  // Of a header. power.draw is a mean over a second on most cards, as power.draw.average says.
  void TakeHead(const std::vector<std::string_view>& cells) {
    watts_at_.reset(), gpu_at_.reset(), time_at_.reset();
    const auto find = [&cells](std::string_view name) -> std::optional<std::size_t> {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (LowerCase(cells[i].substr(0, cells[i].find(" ["))) == name) return i;
      }
      return std::nullopt;
    };
    for (const char* name : {"power.draw", "power.draw.average", "power.draw.instant"}) {
      if (!watts_at_) watts_at_ = find(name);
    }
    for (const char* name : {"uuid", "gpu_uuid", "index", "pci.bus_id", "gpu_bus_id"}) {
      if (!gpu_at_) gpu_at_ = find(name);
    }
    time_at_ = find("timestamp");
    named_ = gpu_at_.has_value();
  }

  // Without a header: the one cell with a unit, else the one that is no time.
  void FindColumns(const std::vector<std::string_view>& cells) {
    std::vector<std::size_t> units, others;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (SecondsIn(cells[i])) {
        time_at_ = i;
      } else {
        (HasUnit(cells[i]) ? units : others).push_back(i);
      }
    }
    if (units.size() == 1) watts_at_ = units[0];
    if (units.empty() && others.size() == 1) watts_at_ = others[0];
  }

  Result<Measurements> Measured() {
    if (!issues_.empty()) return Bounded(std::move(issues_));
    double sum = 0;
    std::int64_t samples = 0;
    for (const auto& [gpu, of] : gpus_) {
      sum += of.sum / static_cast<double>(of.samples);
      samples += of.samples;
    }
    if (samples == 0) {
      return Issue{name_, Format("found no power in {}, allowed W of a GPU", what_)};
    }
    Measurements read;
    MeasuredPower& power = read.power.emplace_back();
    power.label = name_;
    power.mean_w = sum / static_cast<double>(gpus_.size());
    const bool counted = gpus_.size() > 1 || named_ || what_[0] != 'n';
    if (counted) power.gpus = static_cast<std::int64_t>(gpus_.size());
    if (from_) power.seconds = *to_ - *from_;
    read.found.push_back(Format("{}: power in {}, {} samples{}: {} W a GPU", name_, what_, samples,
                                counted ? Format(" of {} GPUs", power.gpus) : std::string(),
                                ShortNumber(power.mean_w)));
    return read;
  }

  const std::string& name_;
  const char* what_ = "";
  std::map<std::string, Gpu> gpus_;
  std::optional<std::size_t> watts_at_, gpu_at_, time_at_;
  std::optional<double> from_, to_;
  std::size_t number_ = 0;
  std::int64_t place_ = 0;
  bool named_ = false, stop_ = false;
  Issues issues_;
};

}  // namespace

bool IsPower(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return false;
  text.remove_prefix(begin);
  const std::string_view line = Stripped(text.substr(0, text.find('\n')));
  const bool row = !line.empty() && line.size() < 1000 &&
                   (line.find("power.draw") != std::string_view::npos ||
                    SecondsIn(SmiCells(line)[0]) || (HasUnit(line) && WattsIn(line)));
  if (row) return true;
  return IsDcgmPower(text) ||
         (text.find("NVIDIA-SMI") != std::string_view::npos && !HasVllmMetrics(text));
}

Result<Measurements> ReadPower(std::string_view text, const std::string& name) {
  return PowerReader(name).Read(text);
}

}  // namespace servecast
