// See field_writer.h.
#include "io/field_writer.h"

#include <nlohmann/json.hpp>

#include "io/fields.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// Writes fields as JSON: all of them, or those that differ from their base.
class ObjectWriter final : public FieldVisitor {
 public:
  explicit ObjectWriter(FieldsWritten what) : what_(what) {}

  void Integer(const FieldSpec& spec, std::optional<std::int64_t>& value,
               const std::optional<std::int64_t>& base) override {
    Put(spec, value, base);
  }
  void Number(const FieldSpec& spec, std::optional<double>& value,
              const std::optional<double>& base) override {
    Put(spec, value, base);
  }
  void Boolean(const FieldSpec& spec, bool& value, bool base) override {
    PutValue(spec, value, value != base);
  }
  void Text(const FieldSpec& spec, std::string& value, const std::string& base) override {
    PutValue(spec, value, value != base);
  }
  void Choice(const FieldSpec& spec, const Choices&, std::string& value,
              const std::string& base) override {
    PutValue(spec, value, value != base || spec.required);
  }
  void Numbers(const FieldSpec& spec, std::vector<double>& value,
               const std::vector<double>& base) override {
    PutValue(spec, value, value != base);
  }
  void Table(const FieldSpec& spec, NumberTable& value, const NumberTable& base) override {
    PutValue(spec, value, value != base);
  }
  void Foreign(const FieldSpec& spec, std::string& value, const std::string& base) override {
    // By the parser of documents: the page's first module has no other one.
    Result<Json> parsed = value.empty() ? Result<Json>(Json()) : ParseJson(value);
    PutValue(spec, parsed.ok() ? std::move(parsed.value()) : Json(), value != base);
  }
  void Object(const FieldSpec& spec, AddFields fields) override {
    if (what_ != FieldsWritten::kChanged && spec.idle) return;
    ObjectWriter inner(what_);
    fields(inner);
    if (ChangedOnly() && inner.json.empty()) return;
    json[spec.name] = std::move(inner.json);
  }
  void List(const FieldSpec& spec, ListField& list) override {
    if (what_ == FieldsWritten::kHashed && spec.label) return;
    Json items = Items(list.size(), [&](FieldVisitor& v, std::size_t i) { list.Describe(v, i); });
    const auto base = [&](FieldVisitor& v, std::size_t i) { list.DescribeBase(v, i); };
    if (ChangedOnly() && items == Items(list.base_size(), base)) return;
    json[spec.name] = std::move(items);
  }
  void When(std::string_view, const Choices&, bool active, AddFields fields) override {
    if (active) fields(*this);
  }

  Json json = Json::object();

 private:
  bool ChangedOnly() const { return what_ != FieldsWritten::kAll; }
  template <class T>
  void Put(const FieldSpec& spec, const std::optional<T>& value, const std::optional<T>& base) {
    if (value) {
      PutValue(spec, *value, value != base);
    } else if (base) {
      json[spec.name] = nullptr;
    }
  }
  template <class T>
  void PutValue(const FieldSpec& spec, const T& value, bool changed) {
    if (ChangedOnly() && !changed) return;
    if (what_ == FieldsWritten::kHashed && (spec.label || spec.in_times)) return;
    if (what_ == FieldsWritten::kCompared && !spec.compared) return;
    json[spec.name] = value;
  }
  Json Items(std::size_t size, FunctionRef<void(FieldVisitor&, std::size_t)> describe) const {
    Json items = Json::array();
    for (std::size_t i = 0; i < size; ++i) {
      ObjectWriter inner(what_);
      describe(inner, i);
      items.push_back(std::move(inner.json));
    }
    return items;
  }

  FieldsWritten what_;
};

}  // namespace

Json WriteScenario(Scenario& s, const Scenario& base, FieldsWritten what) {
  ObjectWriter writer(what);
  what == FieldsWritten::kCompared ? DescribeCompared(writer, s, base)
                                   : DescribeScenario(writer, s, base);
  writer.json["schema"] = kScenarioSchema;
  return std::move(writer.json);
}

}  // namespace servecast
