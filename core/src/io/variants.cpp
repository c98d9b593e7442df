// See variants.h.
#include "io/variants.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "io/fields.h"

namespace servecast {
namespace {

// For each variant key, the members that depend on it, with the values that they need.
using Variants = std::map<std::string, std::map<std::string, std::set<std::string>>, std::less<>>;

class Collector final : public FieldVisitor {
 public:
  void Integer(const FieldSpec& s, std::optional<std::int64_t>&,
               const std::optional<std::int64_t>&) override {
    Note(s);
  }
  void Number(const FieldSpec& s, std::optional<double>&, const std::optional<double>&) override {
    Note(s);
  }
  void Boolean(const FieldSpec& s, bool&, bool) override { Note(s); }
  void Text(const FieldSpec& s, std::string&, const std::string&) override { Note(s); }
  void Choice(const FieldSpec& s, const Choices&, std::string&, const std::string&) override {
    Note(s);
  }
  void Numbers(const FieldSpec& s, std::vector<double>&, const std::vector<double>&) override {
    Note(s);
  }
  void Table(const FieldSpec& s, NumberTable&, const NumberTable&) override { Note(s); }
  void Foreign(const FieldSpec& s, std::string&, const std::string&) override { Note(s); }
  void Object(const FieldSpec&, AddFields fields) override { fields(*this); }
  void List(const FieldSpec&, ListField&) override {}
  void When(std::string_view field, const Choices& values, bool, AddFields fields) override {
    field_ = field;
    values_ = &values;
    fields(*this);
    values_ = nullptr;
  }

  Variants variants;

 private:
  void Note(const FieldSpec& spec) {
    if (values_ == nullptr) return;
    auto& needed = variants[std::string(field_)][spec.name];
    for (const std::string_view value : *values_) needed.emplace(value);
  }
  std::string_view field_;
  const Choices* values_ = nullptr;
};

const Variants& AllVariants() {
  static const Variants kVariants = [] {
    Collector collector;
    Scenario scenario;
    DescribeScenario(collector, scenario, Scenario{});
    return std::move(collector.variants);
  }();
  return kVariants;
}

}  // namespace

bool IsVariantKey(std::string_view key) { return AllVariants().count(key) > 0; }

void DropInapplicable(nlohmann::json& object, std::string_view key, const nlohmann::json& value) {
  const std::string* chosen = value.get_ptr<const std::string*>();
  if (chosen == nullptr) return;
  for (const auto& [member, values] : AllVariants().find(key)->second) {
    if (values.count(*chosen) > 0) continue;
    object.erase(member);
    // A choice that goes takes along what hangs on it.
    if (IsVariantKey(member)) DropInapplicable(object, member, "");
  }
}

}  // namespace servecast
