// See design_json.h.
#include "io/design_json.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 3> kRungs = {"bound", "coarse", "certain"};
constexpr std::array<std::string_view, 8> kStates = {
    "unknown", "meets", "near", "misses", "overloaded", "does_not_fit", "refused", "not_judged"};
constexpr std::array<std::string_view, 4> kRoles = {"mixed", "prefill", "decode", "encode"};
constexpr std::array<std::string_view, 5> kMetrics = {"ttft", "tpot", "itl", "e2e", "attainment"};

template <class Enum, std::size_t n>
std::string_view Named(const std::array<std::string_view, n>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

void WriteNumber(std::string_view key, const std::optional<double>& value, JsonWriter& out) {
  out.Key(key), value ? out.Number(*value) : out.Null();
}

template <class Values, class Write>
void WriteList(std::string_view key, const Values& values, JsonWriter& out, Write write) {
  out.Key(key), out.BeginArray();
  for (const auto& value : values) write(value);
  out.EndArray();
}

void WriteIssue(const Issue& issue, JsonWriter& out) {
  out.BeginObject();
  out.Key("path"), out.Text(Printable(issue.path));
  out.Key("message"), out.Text(Printable(issue.message));
  if (!issue.kind.empty()) out.Key("kind"), out.Text(issue.kind);
  out.EndObject();
}

void WritePool(const DesignPoint::Pool& pool, JsonWriter& out) {
  out.BeginObject();
  out.Key("name"), out.Text(pool.name);
  out.Key("role"), out.Text(Named(kRoles, pool.role));
  out.Key("replicas"), out.Integer(pool.replicas);
  out.Key("low"), out.Integer(pool.low);
  out.Key("high"), out.Integer(pool.high);
  out.Key("gpus_per_replica"), out.Integer(pool.gpus_per_replica);
  WriteNumber("dollars_per_gpu_hour", pool.price, out);
  out.EndObject();
}

void WriteTarget(const DesignPoint::Target& target, JsonWriter& out) {
  out.BeginObject();
  out.Key("metric"), out.Text(Named(kMetrics, target.metric));
  WriteNumber("value", target.value, out);
  WriteNumber("low", target.low, out);
  WriteNumber("high", target.high, out);
  out.Key("unserved_share"), out.Number(target.unserved_share);
  WriteNumber("strain", target.strain, out);
  out.EndObject();
}

// The value of the first target of that kind.
std::optional<double> ValueOf(const DesignPoint& point, SloMetric metric) {
  for (const DesignPoint::Target& target : point.targets) {
    if (target.metric == metric) return target.value;
  }
  return std::nullopt;
}

void WriteCost(const DesignPoint& point, JsonWriter& out) {
  const bool known = !point.pools.empty();
  const auto gpus = [&](std::string_view key, End end) {
    out.Key(key), known ? out.Integer(GpusOf(point, end)) : out.Null();
  };
  const auto dollars = [&](std::string_view key, End end) {
    WriteNumber(key, known ? DollarsPerHour(point, end) : std::nullopt, out);
  };
  gpus("gpus", End::kValue), gpus("low_gpus", End::kLow), gpus("high_gpus", End::kHigh);
  dollars("dollars_per_hour", End::kValue);
  dollars("low_dollars_per_hour", End::kLow), dollars("high_dollars_per_hour", End::kHigh);
  const std::optional<double> hour = known ? DollarsPerHour(point) : std::nullopt;
  const double tokens = 3600 * point.output_tokens_per_s / 1e6;
  WriteNumber("dollars_per_million_output_tokens",
              hour && tokens > 0 ? std::optional(*hour / tokens) : std::nullopt, out);
}

void WriteEnergy(const DesignPoint& point, JsonWriter& out) {
  const DesignPoint::Energy none, &of = point.energy ? *point.energy : none;
  const auto known = [&point](double value) {
    return point.energy ? std::optional(value) : std::nullopt;
  };
  WriteNumber("j_per_output_token", known(of.j_per_output_token), out);
  WriteNumber("j_per_output_token_low", of.low, out);
  WriteNumber("j_per_output_token_high", of.high, out);
  WriteNumber("mean_w", known(of.mean_w), out);
  WriteNumber("least_j_per_output_token", point.least_j_per_output_token, out);
}

// ---- Back ---------------------------------------------------------------------------------------

// Reads members of an object; what is missing or of another type leaves its target as it is, and
// is remembered.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  void Read(const char* key, std::string& to) {
    if (const Json* at = Find(key, &Json::is_string)) to = at->get<std::string>();
  }
  void Read(const char* key, bool& to) {
    if (const Json* at = Find(key, &Json::is_boolean)) to = at->get<bool>();
  }
  void Read(const char* key, std::int64_t& to) {
    if (const Json* at = Find(key, &Json::is_number_integer)) to = at->get<std::int64_t>();
  }
  void Read(const char* key, double& to) {
    if (const Json* at = Find(key, &Json::is_number)) to = at->get<double>();
  }
  template <class Value>
  void Read(const char* key, std::optional<Value>& to) {
    const auto at = object_.find(key);
    if (at == object_.end() || at->is_null()) return;
    Value value{};
    Read(key, value);
    to = value;
  }
  template <class Enum, std::size_t n>
  void Read(const char* key, const std::array<std::string_view, n>& names, Enum& to) {
    std::string name;
    Read(key, name);
    for (std::size_t i = 0; i < n; ++i) {
      if (names[i] != name) continue;
      to = static_cast<Enum>(i);
      return;
    }
    good_ = false;
  }
  // Of each item of a list: read(item, value).
  template <class Value, class Each>
  void ReadList(const char* key, std::vector<Value>& to, Each read) {
    const Json* at = Find(key, &Json::is_array);
    for (std::size_t i = 0; at != nullptr && i < at->size(); ++i) {
      good_ = read((*at)[i], to.emplace_back()) && good_;
    }
  }

  bool good() const { return good_; }
  void Require(bool good) { good_ = good_ && good; }

 private:
  const Json* Find(const char* key, bool (Json::*is)() const noexcept) {
    const auto at = object_.find(key);
    if (at != object_.end() && ((*at).*is)()) return &*at;
    good_ = false;
    return nullptr;
  }

  const Json& object_;
  bool good_ = true;
};

bool ReadReplicas(const Json& json, std::int64_t& value) {
  if (!json.is_number_integer()) return false;
  value = json.get<std::int64_t>();
  return true;
}
bool ReadWords(const Json& json, std::string& value) {
  if (!json.is_string()) return false;
  value = json.get<std::string>();
  return true;
}
bool ReadStrain(const Json& json, double& value) {
  if (!json.is_number()) return false;
  value = json.get<double>();
  return true;
}

bool ReadIssue(const Json& json, Issue& issue) {
  if (!json.is_object()) return false;
  Reader reader(json);
  reader.Read("path", issue.path);
  reader.Read("message", issue.message);
  if (json.contains("kind")) reader.Read("kind", issue.kind);
  return reader.good();
}

bool ReadPool(const Json& json, DesignPoint::Pool& pool) {
  if (!json.is_object()) return false;
  Reader reader(json);
  reader.Read("name", pool.name);
  reader.Read("role", kRoles, pool.role);
  reader.Read("replicas", pool.replicas);
  reader.Read("low", pool.low);
  reader.Read("high", pool.high);
  reader.Read("gpus_per_replica", pool.gpus_per_replica);
  reader.Read("dollars_per_gpu_hour", pool.price);
  return reader.good();
}

bool ReadTarget(const Json& json, DesignPoint::Target& target) {
  if (!json.is_object()) return false;
  Reader reader(json);
  reader.Read("metric", kMetrics, target.metric);
  reader.Read("value", target.value);
  reader.Read("low", target.low);
  reader.Read("high", target.high);
  reader.Read("unserved_share", target.unserved_share);
  reader.Read("strain", target.strain);
  return reader.good();
}

void ReadEnergy(Reader& reader, DesignPoint& point) {
  std::optional<double> token, watts;
  DesignPoint::Energy energy;
  reader.Read("j_per_output_token", token);
  reader.Read("j_per_output_token_low", energy.low);
  reader.Read("j_per_output_token_high", energy.high);
  reader.Read("mean_w", watts);
  reader.Read("least_j_per_output_token", point.least_j_per_output_token);
  if (!token || !watts) return;
  energy.j_per_output_token = *token;
  energy.mean_w = *watts;
  point.energy = energy;
}

Issue NotOurs(const char* what) {
  return {"", std::string("found another text, allowed a ") + what + " of a search"};
}

}  // namespace

std::string_view NameOf(Rung rung) { return Named(kRungs, rung); }
std::string_view NameOf(DesignState state) { return Named(kStates, state); }

std::string TaskJson(const DesignTask& task) {
  JsonWriter out(false);
  out.BeginObject();
  out.Key("id"), out.Integer(task.id);
  out.Key("rung"), out.Text(NameOf(task.rung));
  out.Key("document"), out.Text(task.document);
  out.Key("fixed"), out.Boolean(task.fixed);
  WriteList("start", task.start, out, [&out](std::int64_t n) { out.Integer(n); });
  out.Key("most"), out.Number(task.most);
  out.Key("energy"), out.Boolean(task.energy);
  out.EndObject();
  return out.Take();
}

void WritePoint(const DesignPoint& point, Least least, JsonWriter& out) {
  out.Key("rung"), out.Text(NameOf(point.rung));
  out.Key("state"), out.Text(NameOf(point.state));
  out.Key("reason"), out.Text(Printable(point.reason));
  WriteCost(point, out);
  if (least == Least::kEnergy) WriteEnergy(point, out);
  WriteNumber("strain", point.strain, out);
  WriteNumber("strain_low", point.strain_low, out);
  WriteNumber("strain_high", point.strain_high, out);
  out.Key("closest");
  point.closest ? out.Integer(static_cast<std::int64_t>(*point.closest)) : out.Null();
  out.Key("binding"), out.Text(Printable(point.binding));
  WriteNumber("ttft_ms", ValueOf(point, SloMetric::kTtft), out);
  WriteNumber("tpot_ms", ValueOf(point, SloMetric::kTpot), out);
  out.Key("requests_per_s"), out.Number(point.requests_per_s);
  out.Key("goodput_per_s"), out.Number(point.goodput_per_s);
  out.Key("output_tokens_per_s"), out.Number(point.output_tokens_per_s);
  out.Key("seats_to_spare"), out.Boolean(point.seats_to_spare);
  out.Key("evidence"), out.Text(Named(kEvidenceNames, point.evidence));
  WriteList("targets", point.targets, out, [&out](const auto& t) { WriteTarget(t, out); });
  WriteList("pools", point.pools, out, [&out](const auto& pool) { WritePool(pool, out); });
  out.Key("least_gpus"), out.Number(point.least_gpus);
  WriteNumber("least_dollars_per_hour", point.least_dollars, out);
  WriteList("least_strains", point.least_strains, out, [&out](double v) { out.Number(v); });
  WriteList("start", point.start, out, [&out](std::int64_t n) { out.Integer(n); });
  out.Key("start_gpus"), out.Number(point.start_gpus);
  WriteNumber("start_dollars_per_hour", point.start_dollars, out);
  out.Key("given_up"), out.Boolean(point.given_up);
  WriteList("issues", point.issues, out, [&out](const auto& issue) { WriteIssue(issue, out); });
  out.Key("runs"), out.Integer(point.runs);
  out.Key("requests"), out.Integer(point.requests);
}

std::string PointJson(const DesignPoint& point) {
  JsonWriter out(false);
  out.BeginObject();
  out.Key("id"), out.Integer(point.id);
  const bool energy = point.energy || point.least_j_per_output_token;
  WritePoint(point, energy ? Least::kEnergy : Least::kCost, out);
  WriteList("warnings", point.warnings, out, [&out](const auto& w) { out.Text(Printable(w)); });
  out.EndObject();
  return out.Take();
}

Result<DesignTask> ReadTask(std::string_view text) {
  const Result<Json> json = ParseJson(text);
  if (!json.ok() || !json.value().is_object()) return NotOurs("task");
  DesignTask task;
  Reader reader(json.value());
  reader.Read("id", task.id);
  reader.Read("rung", kRungs, task.rung);
  reader.Read("document", task.document);
  reader.Read("fixed", task.fixed);
  reader.ReadList("start", task.start, ReadReplicas);
  reader.Read("most", task.most);
  reader.Read("energy", task.energy);
  if (!reader.good()) return NotOurs("task");
  return task;
}

Result<DesignPoint> ReadPoint(std::string_view text) {
  const Result<Json> json = ParseJson(text);
  if (!json.ok() || !json.value().is_object()) return NotOurs("point");
  DesignPoint point;
  Reader reader(json.value());
  reader.Read("id", point.id);
  reader.Read("rung", kRungs, point.rung);
  reader.Read("state", kStates, point.state);
  reader.Read("reason", point.reason);
  reader.Read("strain", point.strain);
  reader.Read("strain_low", point.strain_low);
  reader.Read("strain_high", point.strain_high);
  std::optional<std::int64_t> closest;
  reader.Read("closest", closest);
  reader.Read("binding", point.binding);
  reader.Read("requests_per_s", point.requests_per_s);
  reader.Read("goodput_per_s", point.goodput_per_s);
  reader.Read("output_tokens_per_s", point.output_tokens_per_s);
  reader.Read("seats_to_spare", point.seats_to_spare);
  reader.Read("evidence", kEvidenceNames, point.evidence);
  reader.ReadList("targets", point.targets, ReadTarget);
  reader.ReadList("pools", point.pools, ReadPool);
  reader.Read("least_gpus", point.least_gpus);
  reader.Read("least_dollars_per_hour", point.least_dollars);
  reader.ReadList("least_strains", point.least_strains, ReadStrain);
  reader.ReadList("start", point.start, ReadReplicas);
  reader.Read("start_gpus", point.start_gpus);
  reader.Read("start_dollars_per_hour", point.start_dollars);
  ReadEnergy(reader, point);
  reader.Read("given_up", point.given_up);
  reader.ReadList("issues", point.issues, ReadIssue);
  reader.ReadList("warnings", point.warnings, ReadWords);
  reader.Read("runs", point.runs);
  reader.Read("requests", point.requests);
  if (closest) {
    reader.Require(*closest >= 0 && *closest < static_cast<std::int64_t>(point.targets.size()));
    point.closest = static_cast<std::size_t>(*closest);
  }
  if (!reader.good()) return NotOurs("point");
  return point;
}

}  // namespace servecast
