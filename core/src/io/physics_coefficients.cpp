// See physics_coefficients.h.
#include "io/physics_coefficients.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cost/physics_features.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr const char* kRoot = "/physics_coefficients";

// Reads members of an object; every one that is missing or of another type is an issue.
class MembersOfFile {
 public:
  MembersOfFile(const Json& object, std::string path, Issues& issues)
      : object_(object), path_(std::move(path)), issues_(issues) {}

  void Text(const char* name, std::string& value) {
    const Json* member = Find(name);
    if (member != nullptr && member->is_string()) {
      value = member->get<std::string>();
    } else {
      Refuse(name, member, "a text");
    }
  }

  template <class T>
  void Number(const char* name, T& value) {
    const Json* member = Find(name);
    if (member != nullptr && member->is_number() && member->get<double>() >= 0) {
      value = member->get<T>();
    } else {
      Refuse(name, member, "a number from 0 up");
    }
  }

  void Choice(const char* name, std::initializer_list<std::string_view> allowed,
              std::string& value) {
    Text(name, value);
    std::string list;
    for (const std::string_view choice : allowed) {
      if (value == choice) return;
      list += Format("{}\"{}\"", list.empty() ? "" : " or ", choice);
    }
    if (!value.empty()) Refuse(name, Find(name), list);
  }

  void Coefficients(const char* name, std::size_t count, Json& value) {
    const Json* member = Find(name);
    bool good = member != nullptr && member->is_array() && member->size() == count;
    for (std::size_t i = 0; good && i < count; ++i) good = (*member)[i].is_number();
    if (good) {
      value = *member;
    } else {
      const std::string found = member != nullptr && member->is_array()
                                    ? Format("found a list of {}", member->size())
                                    : Found(member);
      Add(name, Format("{}, allowed {} numbers, in the order of the features", found, count));
    }
  }

 private:
  const Json* Find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto at = object_.find(name);
    return at == object_.end() ? nullptr : &*at;
  }
  static std::string Found(const Json* member) {
    return member == nullptr ? "missing" : "found " + ShortJson(*member);
  }
  void Refuse(const char* name, const Json* member, std::string_view allowed) {
    Add(name, Format("{}, allowed {}", Found(member), allowed));
  }
  void Add(const char* name, std::string message) {
    issues_.push_back({path_ + "/" + name, std::move(message)});
  }

  const Json& object_;
  std::string path_;
  Issues& issues_;
};

// Letters and digits in lower case, behind the last '/'.
std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name.substr(name.rfind('/') + 1)) {
    if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
  }
  return plain;
}

}  // namespace

bool SameName(std::string_view a, std::string_view b) {
  const std::string x = Plain(a), y = Plain(b);
  return !x.empty() && !y.empty() &&
         (x.find(y) != std::string::npos || y.find(x) != std::string::npos);
}

Result<PhysicsCoefficients> ReadPhysicsCoefficients(std::string_view file) {
  Result<Json> parsed = ParseJson(file);
  if (!parsed.ok()) return Issues(parsed.issues());
  const Json& document = parsed.value();
  if (!document.is_object() || !document.contains("physics_coefficients")) {
    return Issue{kRoot, "missing, allowed an object of coefficients"};
  }
  const Json& root = document["physics_coefficients"];
  Issues issues;
  MembersOfFile members(root, kRoot, issues);
  std::string version, variant, target;
  members.Choice("spec_version", {kPhysicsSpecVersion}, version);
  if (!issues.empty()) return issues;  // what the rest means is not known here
  members.Choice("variant", {"corrected", "seed"}, variant);
  members.Choice("alpha_target", {"arrived_to_queued", "queued_to_scheduled"}, target);
  Json alpha, beta;
  members.Coefficients("alpha_coefficients", kAlphaFeatures, alpha);
  members.Coefficients("beta_coefficients", kBetaFeatures, beta);
  const Json none = Json::object();
  const bool known = root.contains("trained_on");
  MembersOfFile origin(known ? root["trained_on"] : none, std::string(kRoot) + "/trained_on",
                       issues);
  PhysicsCoefficients read;
  PhysicsProvenance& p = read.trained_on;
  origin.Text("model", p.model);
  origin.Text("hardware", p.hardware);
  origin.Number("tp", p.tp);
  origin.Text("engine_version", p.engine_version);
  origin.Text("training_date", p.training_date);
  origin.Number("n_samples_alpha", p.n_samples_alpha);
  origin.Number("n_samples_beta", p.n_samples_beta);
  origin.Number("lambda_alpha", p.lambda_alpha);
  origin.Number("lambda_beta", p.lambda_beta);
  origin.Number("gamma", p.gamma);
  origin.Number("hold_out_rmse_alpha", p.hold_out_rmse_alpha);
  origin.Number("hold_out_rmse_beta", p.hold_out_rmse_beta);
  if (!issues.empty()) return issues;
  // A wait in the queue is what the simulation itself makes: it would count twice.
  const bool host = target == "arrived_to_queued";
  read.latency = CompactJson(Json{{"backend", "physics"},
                                  {"variant", variant},
                                  {host ? "alpha_coefficients" : "wait_coefficients", alpha},
                                  {"beta_coefficients", beta},
                                  {"preemption_gamma", p.gamma}});
  return read;
}

std::vector<std::string> Mismatches(const PhysicsProvenance& trained_on, const Scenario& s) {
  std::vector<std::string> lines;
  const auto compare = [&lines](const char* what, const std::string& there,
                                const std::string& here) {
    if (SameName(there, here)) return;
    lines.push_back(Format("trained on {} \"{}\", the scenario has \"{}\"", what, there, here));
  };
  compare("the model", trained_on.model, s.model.name);
  compare("the GPU", trained_on.hardware, s.hardware.name);
  // Of a version the first two numbers: 0.11.
  const std::string& version = trained_on.engine_version;
  const std::size_t dot = version.find('.');
  compare("the engine",
          dot == std::string::npos ? version : version.substr(0, version.find('.', dot + 1)),
          s.engine.name);
  const std::int64_t tp = s.cluster.pool().tensor_parallel;
  if (trained_on.tp != tp) {
    lines.push_back(
        Format("trained on tensor_parallel {}, the scenario has {}", trained_on.tp, tp));
  }
  return lines;
}

}  // namespace servecast
