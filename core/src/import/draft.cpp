// See draft.h.
#include "import/draft.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/names.h"
#include "io/issues.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

std::vector<std::string> KeysOf(std::string_view path) {
  std::vector<std::string> keys;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    keys.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  return keys;
}

// "NVIDIA H100 80GB HBM3", not "H100": of A100 and H100 several cards are sold.
bool NamesOneCard(std::string_view name) {
  const std::string lower = LowerCase(name);
  const auto has = [&lower](std::string_view part) {
    return lower.find(part) != std::string::npos;
  };
  return !(has("a100") || has("h100")) || has("sxm") || has("pcie") || has("hbm") || has("nvl");
}

bool IsIndex(const std::string& key) {
  return !key.empty() && key.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

const Json* MemberAt(const Json& document, std::string_view path) {
  const Json* at = &document;
  for (const std::string& key : KeysOf(path)) {
    if (at->is_array() && IsIndex(key)) {
      const auto index = static_cast<std::size_t>(*ParseCount(key));
      if (index >= at->size()) return nullptr;
      at = &(*at)[index];
    } else if (at->is_object() && at->contains(key)) {
      at = &(*at)[key];
    } else {
      return nullptr;
    }
  }
  return at->is_null() ? nullptr : at;
}

std::optional<double> NumberIn(std::string_view text, bool units) {
  double factor = 1;
  if (units && text.size() > 1) {
    constexpr std::pair<char, double> kUnits[] = {
        {'k', 1e3},  {'m', 1e6},           {'g', 1e9},
        {'K', 1024}, {'M', 1024 * 1024.0}, {'G', 1024 * 1024 * 1024.0}};
    for (const auto& [unit, times] : kUnits) {
      if (text.back() == unit) factor = times;
    }
    if (factor != 1) text.remove_suffix(1);
  }
  if (text.empty() || text.size() > 40) return std::nullopt;
  std::string number(text);
  if (number[0] == '+') number.erase(0, 1);
  if (number[0] == '.') number.insert(0, "0");
  if (number.back() == '.') number += "0";
  const Json value = LooseJson(number);
  if (!value.is_number()) return std::nullopt;
  const double read = value.get<double>() * factor;
  return std::isfinite(read) ? std::optional<double>(read) : std::nullopt;
}

Json NumberJson(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

void Draft::BeginText(std::string name, bool beside) {
  text_ = ShownText(name);
  const Json* pools = beside ? Find("cluster.pools") : nullptr;
  first_ = pools == nullptr ? 0 : pools->size();
  servers_ = 0;
  devices_.clear();
}

void Draft::Found(std::string kind) {
  if (out_.kinds.size() >= kMostIssues) return;
  out_.kinds.push_back(text_.empty() ? std::move(kind) : Format("{}: {}", text_, kind));
}

Json& Draft::At(std::string_view path) {
  Json* at = &said_;
  for (const std::string& key : KeysOf(path)) {
    if (IsIndex(key)) {
      if (!at->is_array()) *at = Json::array();
      const auto index = static_cast<std::size_t>(*ParseCount(key));
      while (at->size() <= index) at->push_back(Json::object());
      at = &(*at)[index];
    } else {
      if (!at->is_object()) *at = Json::object();
      at = &(*at)[key];
    }
  }
  return *at;
}

void Draft::Put(std::string_view path, Json value, std::string_view from, bool said) {
  Json& member = At(path);
  const std::string is = ShortJson(value);
  const std::string why = ShownText(from, kShown) + (text_.empty() || !said ? "" : " of " + text_);
  if (!member.is_null() && member != value && said) {
    Remark(Format("{}: {} ({}) takes the place of {}", path, is, why, ShortJson(member)));
  }
  member = std::move(value);
  constexpr std::string_view kMean = "completed / duration";
  if (said && from != kMean && path != "hardware.preset") out_.said.emplace_back(path);
  ImportNote note{Format("{} = {}", path, is), why};
  const std::string begin = Format("{} = ", path);
  const auto earlier = std::find_if(
      out_.taken.begin(), out_.taken.end(),
      [&](const ImportNote& each) { return each.what.compare(0, begin.size(), begin) == 0; });
  if (earlier == out_.taken.end()) {
    out_.taken.push_back(std::move(note));
  } else {
    *earlier = std::move(note);
  }
}

void Draft::Take(std::string_view path, Json value, std::string_view from) {
  Put(path, std::move(value), from, true);
}

void Draft::Assume(std::string_view path, Json value, std::string_view why) {
  if (Find(path) == nullptr) Put(path, std::move(value), why, false);
}

// Milliseconds, tokens and tokens/s alike: some thirty years, and more than any fleet serves.
constexpr double kMostMeasured = 1e12;

bool Draft::Measure(std::string_view name, double value, std::string_view from) {
  if (!(value >= 0 && value <= kMostMeasured)) {
    Ignore(Format("{} of {}", name,
                  value >= -kMostMeasured && value < 0 ? ShortNumber(value) : "more than 1e12"),
           Format("{}: no server measures that", from));
    return false;
  }
  MeasuredValue measured{std::string(name), value, std::string(from)};
  const auto earlier =
      std::find_if(out_.measured.begin(), out_.measured.end(),
                   [name](const MeasuredValue& each) { return each.name == name; });
  if (earlier == out_.measured.end()) {
    out_.measured.push_back(std::move(measured));
  } else {
    *earlier = std::move(measured);
  }
  return true;
}

void Draft::Ignore(std::string_view what, std::string_view why) {
  ImportNote note{ShownText(what, kShown), std::string(why)};
  if (std::find(out_.ignored.begin(), out_.ignored.end(), note) != out_.ignored.end()) return;
  if (out_.ignored.size() < kMostIssues) {
    out_.ignored.push_back(std::move(note));
  } else {
    ++ignored_beyond_;
  }
}

void Draft::Remark(std::string text) {
  const auto& said = out_.remarks;
  if (said.size() >= kMostIssues || std::find(said.begin(), said.end(), text) != said.end()) return;
  out_.remarks.push_back(std::move(text));
}

void Draft::Warn(std::string text) {
  const auto& said = out_.warnings;
  if (said.size() >= kMostIssues || std::find(said.begin(), said.end(), text) != said.end()) return;
  out_.warnings.push_back(std::move(text));
}

void Draft::Unread(std::string words, std::string_view why, std::string path,
                   std::string_view otherwise, bool warn) {
  if (unread_.size() == kMostIssues) return Ignore(words, why);
  unread_.push_back(
      {std::move(words), std::string(why), std::move(path), std::string(otherwise), warn});
}

bool Draft::TakeModelName(std::string_view name, std::string_view from) {
  while (name.size() > 1 && name.back() == '/') name.remove_suffix(1);
  const bool other = !model_name_.empty() && !SameModel(model_name_, name) && model_name_ != name;
  if (other && Pool() > 0) {
    Warn(Format("a scenario has one model: {} of {} is left out", ShownText(name, kShown),
                ShownText(from, kShown)));
    return false;
  }
  if (other) {
    Warn(Format("model {} ({}) takes the place of {}", ShownText(name, kShown),
                ShownText(from, kShown), ShownText(model_name_, kShown)));
  }
  model_name_ = name;
  model_from_ = ShownText(from, kShown) + (text_.empty() ? "" : " of " + text_);
  return true;
}

void Draft::TakeModelMember(std::string_view path, Json value, std::string_view from) {
  const Json* first = Find(path);
  if (Pool() > 0 && (first == nullptr || *first != value)) {
    return Ignore(from, "a scenario has one model: it is as the first server has it");
  }
  Take(path, std::move(value), from);
}

void Draft::TakeKvCache(std::string_view type, std::string_view from) {
  if (type.empty()) return Ignore(from, "is as the model's files say, else of the model's dtype");
  Take(ServerPath("engine.kv_cache_dtype"), type, from);
}

void Draft::TakeModelKvCache(std::string_view type, std::string_view from) {
  model_kv_ = type;
  model_kv_from_ = std::string(from) + (text_.empty() ? "" : " of " + text_);
}

void Draft::TakeSampling(bool top_p, std::string_view from) {
  if (!sampling_) sampling_ = {top_p, std::string(from)};
}

void Draft::TakePooling(std::string_view from) {
  if (pooling_.empty()) pooling_ = ShownText(from, kShown);
}

void Draft::TakeModelFigures(Json figures, std::string_view from) {
  if (!figures_.is_null() && figures_ != figures) {
    Remark(Format("the figures of {} take the place of those of an earlier file", from));
  }
  figures_ = std::move(figures);
  out_.taken.push_back({Format("model = {} layers, hidden size {}, ...",
                               figures_.value("num_hidden_layers", std::int64_t{0}),
                               figures_.value("hidden_size", std::int64_t{0})),
                        std::string(from) + (text_.empty() ? "" : " of " + text_)});
}

void Draft::TakeGpu(std::string_view name, std::string_view from) {
  const std::string preset = HardwarePresetOf(name);
  if (preset.empty()) {
    unknown_gpu_ = ShownText(name, kShown);
    return;
  }
  unknown_gpu_.clear();
  const std::string lower = LowerCase(name);
  constexpr std::string_view kShared = "-shared";  // as NVIDIA's device plugin labels its nodes
  if (lower.size() > kShared.size() && lower.ends_with(kShared)) {
    TakeGpuShare(Format("{} {}", from, ShownText(name, kShown)));
  }
  if (NamesOneCard(name)) out_.said.emplace_back("hardware.preset");
  // Servers of one text may have GPUs of their own.
  const Json* first = Find("hardware.preset");
  const bool own = Pool() > 0 && first != nullptr && *first != preset;
  Take(own ? Format("cluster.pools.{}.hardware.preset", Pool()) : std::string("hardware.preset"),
       preset, Format("{} ({})", from, ShownText(name, kShown)));
}

void Draft::TakeGpuShare(std::string_view from) {
  Warn(
      Format("{}: a part of a GPU is not modelled; the forecast is of a whole GPU, which has more "
             "memory and computes faster",
             ShownText(from, kShown)));
}

void Draft::TakeDevices(std::string_view server, const std::vector<std::string>& devices) {
  for (const std::string& device : devices) {
    const auto [at, first] = devices_.try_emplace(device.substr(0, 80), server);
    if (first || at->second == server) continue;
    Warn(Format("{} and {} share GPU {}: the forecast gives each GPUs of its own", at->second,
                server, ShownText(device, 40)));
  }
}

void Draft::TakeGpuCount(std::int64_t count, std::string_view from) {
  gpu_count_ = count;
  Remark(Format("{}: {} GPU{}", from, count, count == 1 ? "" : "s"));
}

bool Draft::BeginServer(std::string kind) {
  constexpr std::size_t kMostServers = 64;
  if (servers_ == kMostServers) {
    Remark(Format("more than {} servers: the rest is left out", kMostServers));
    ++servers_;
  }
  if (servers_ > kMostServers) return false;
  ++servers_;
  Found(std::move(kind));
  return true;
}

void Draft::TakeDataParallel(std::int64_t ranks) {
  At(ServerPath("pool.attention_data_parallel")) = ranks;
}

// Of a model without experts: replicas share nothing, and TensorRT-LLM's ranks are not modelled.
void Draft::UndoRanks(Json& pool) {
  const Json* scheduler = pool.contains("scheduler") ? &pool["scheduler"] : Find("scheduler");
  const bool in_step = scheduler != nullptr && scheduler->value("enable_attention_dp", false);
  if (!in_step && Find("model") == nullptr) return;
  const std::int64_t ranks = pool.value("attention_data_parallel", std::int64_t{1});
  pool.erase("attention_data_parallel");
  if (!in_step || ranks == 1) return;
  pool["tensor_parallel"] = ranks;
  pool["replicas"] = std::max<std::int64_t>(1, pool.value("replicas", ranks) / ranks);
}

// Ranks are in lock step where they share experts, and beside no other pool.
void Draft::DropLockStep(Json& pools) {
  bool any = false;
  for (const char* name : {"enable_attention_dp", "attention_dp_enable_balance"}) {
    const std::string top = Format("scheduler.{}", name);
    if (Find(top) != nullptr) {
      any = true;
      At(top) = false;
    }
    for (Json& pool : pools) {
      if (pool.contains("scheduler")) any = pool["scheduler"].erase(name) > 0 || any;
    }
  }
  if (!any) return;
  Remark(
      "enable_attention_dp: attention data parallelism in lock step is modelled of one server's "
      "ranks, of a model with experts");
}

void Draft::TakeLinks(bool through_host, std::string_view from) {
  Links& links = links_[Pool()];
  if (through_host) links = {true, std::string(from)};
}

std::string Draft::ServerPath(std::string_view path) const {
  const std::size_t pool = Pool();
  const std::string here = Format("cluster.pools.{}", pool);
  if (path.substr(0, 5) == "pool.") return here + std::string(path.substr(4));
  const std::string_view section = path.substr(0, path.find('.'));
  const bool own = pool > 0 && (section == "engine" || section == "scheduler");
  return own ? here + "." + std::string(path) : std::string(path);
}

std::size_t Draft::Pool() const { return first_ + (servers_ == 0 ? 0 : servers_ - 1); }

bool Draft::TurnsRolesOf(const Draft& before) const {
  for (std::size_t pool = first_; pool < first_ + servers_; ++pool) {
    const std::string path = Format("cluster.pools.{}.role", pool);
    const Json *was = before.Find(path), *is = Find(path);
    if (was != nullptr && is != nullptr && *was != *is) return true;
  }
  return false;
}

bool Draft::ReadsAs(const Draft& other) const {
  return SaysTheSame(other) && out_.kinds == other.out_.kinds && out_.taken == other.out_.taken &&
         out_.ignored == other.out_.ignored && out_.remarks == other.out_.remarks &&
         out_.warnings == other.out_.warnings && out_.measured == other.out_.measured &&
         unread_.size() == other.unread_.size() && workers_ == other.workers_ &&
         split_ == other.split_ && sampling_ == other.sampling_ && pooling_ == other.pooling_ &&
         unknown_gpu_ == other.unknown_gpu_;
}

const Json* Draft::Find(std::string_view path) const { return MemberAt(said_, path); }

void Draft::Drop(std::string_view path) { At(path) = nullptr; }

}  // namespace servecast
