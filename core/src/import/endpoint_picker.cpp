// Configurations of llm-d's endpoint picker: a file with the kind EndpointPickerConfig, or one
// inside another text: values of a chart (pluginsCustomConfig, of which pluginsConfigFile names
// one), a ConfigMap.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/yaml.h"
#include "io/epp_config.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using PickerJson = nlohmann::json;

constexpr std::string_view kKind = "EndpointPickerConfig";

// Numbers and truths, which YAML's reader leaves as text.
PickerJson Typed(const PickerJson& value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (text == "true" || text == "false") return text == "true";
    if (const std::optional<double> number = NumberIn(text)) return *number;
    return value;
  }
  PickerJson typed = value;
  for (auto& member : typed) member = Typed(member);
  return typed;
}

// Configurations in a document, by the name of their file; "": the document itself.
class Finder {
 public:
  using Named = std::pair<std::string, PickerJson>;

  // Of several the one that is named as in use, else the first; nullptr: none.
  const Named* Find(const PickerJson& document) {
    if (document.is_object() && TextIn(document, "kind") == kKind) {
      found_.emplace_back("", document);
    } else {
      Look(document, 0);
    }
    const auto used = std::find_if(found_.begin(), found_.end(), [this](const Named& each) {
      return !used_.empty() && each.first == used_;
    });
    if (used != found_.end()) return &*used;
    return found_.empty() ? nullptr : &found_.front();
  }

 private:
  void Look(const PickerJson& value, std::size_t depth) {
    if (depth > kMostJsonLevels || !(value.is_object() || value.is_array())) return;
    if (value.is_object() && value.contains("pluginsConfigFile")) {
      used_ = TextIn(value, "pluginsConfigFile");
    }
    for (const auto& [key, member] : value.items()) {
      if (member.is_string()) {
        Take(key, member.get_ref<const std::string&>());
      } else {
        Look(member, depth + 1);
      }
    }
  }

  void Take(const std::string& name, const std::string& text) {
    if (text.find(kKind) == std::string::npos || text.find('\n') == std::string::npos) return;
    Result<std::vector<PickerJson>> documents = ParseYaml(text);
    if (!documents.ok()) return;
    for (PickerJson& document : documents.value()) {
      if (document.is_object() && TextIn(document, "kind") == kKind) {
        found_.emplace_back(name, std::move(document));
      }
    }
  }

  std::vector<Named> found_;
  std::string used_;
};

void TakeConfig(const PickerJson& document, const std::string& from, Draft& draft) {
  const EppReading reading = ReadEppConfig(Typed(document));
  const std::string not_modelled =
      reading.wrong.empty() ? NotModelled(reading.config) : reading.wrong.front();
  if (!not_modelled.empty()) {
    draft.Warn(Format("{}: {}; the router stays as in the scenario to begin with", from,
                      ShownText(not_modelled, kShown)));
    return;
  }
  for (const EppReading::LeftOut& each : reading.left_out) {
    draft.Ignore(Format("{} of {}", ShownText(each.member), from), each.why);
  }
  if (draft.Find("cluster.pools") == nullptr) {
    draft.Remark(
        Format("{} says nothing of replicas: set cluster.pools.0.replicas, or import it "
               "together with the servers' files",
               from));
  }
  draft.Take("cluster.router.policy", "epp", from);
  const std::string_view shipped = ShippedName(reading.config);
  draft.Take("cluster.router.profile", shipped.empty() ? kOwnEppProfile : std::string(shipped),
             from);
  if (shipped.empty()) {
    draft.Take("cluster.router.config", WriteEppConfig(reading.config), from);
  }
}

}  // namespace

void ReadEndpointPicker(const ImportSource& source, Draft& draft) {
  for (const PickerJson& document : source.manifests) {
    Finder finder;
    const Finder::Named* found = finder.Find(document);
    if (found == nullptr) continue;
    draft.Found("llm-d's endpoint picker");
    TakeConfig(found->second,
               found->first.empty() ? std::string(kKind) : ShownText(found->first, kShown), draft);
    return;
  }
}

}  // namespace servecast
