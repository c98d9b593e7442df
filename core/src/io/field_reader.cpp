// See field_reader.h.
#include "io/field_reader.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/fields_of.h"
#include "io/issues.h"
#include "io/json_document.h"
#include "io/presets.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// Of quantiles; of other tables a tenth.
constexpr std::size_t kMostRows = 10000;

std::string RangeText(const FieldSpec& spec) {
  const std::string unit = *spec.unit != '\0' && std::string_view(spec.unit) != "1"
                               ? std::string(" ") + spec.unit
                               : std::string();
  return Format("{} to {}{}", NumberText(spec.min), NumberText(spec.max), unit);
}

// Reads the members of one JSON object into the fields that visit it.
class ObjectReader final : public FieldVisitor {
 public:
  ObjectReader(const Json& object, std::string path, Issues& issues, bool sections = true)
      : object_(object), path_(std::move(path)), issues_(issues), sections_(sections) {
    known_.reserve(64);  // more than most objects have
  }

  bool reads() const override { return true; }

  void Integer(const FieldSpec& spec, std::optional<std::int64_t>& value,
               const std::optional<std::int64_t>& base) override {
    const Json* found = Member(spec);
    if (found == nullptr || Unset(spec, *found, base, value)) return;
    const double number = found->is_number() ? found->get<double>() : std::nan("");
    if (!(number >= spec.min && number <= spec.max) || std::nearbyint(number) != number) {
      Add(spec,
          Format("found {}, allowed a whole number from {}", ShortJson(*found), RangeText(spec)));
      return;
    }
    value = static_cast<std::int64_t>(number);
  }

  void Number(const FieldSpec& spec, std::optional<double>& value,
              const std::optional<double>& base) override {
    const Json* found = Member(spec);
    if (found == nullptr || Unset(spec, *found, base, value)) return;
    const double number = found->is_number() ? found->get<double>() : std::nan("");
    if (!(number >= spec.min && number <= spec.max)) {
      Add(spec, Format("found {}, allowed {}", ShortJson(*found), RangeText(spec)));
      return;
    }
    value = number;
  }

  void Boolean(const FieldSpec& spec, bool& value, bool) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    if (!found->is_boolean()) {
      Add(spec, Format("found {}, allowed true or false", ShortJson(*found)));
      return;
    }
    value = found->get<bool>();
  }

  void Text(const FieldSpec& spec, std::string& value, const std::string&) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    const std::string* text = found->get_ptr<const std::string*>();
    if (text == nullptr || text->size() > 2000) {
      Add(spec, Format("found {}, allowed text of at most 2000 bytes", ShortJson(*found)));
      return;
    }
    value = *text;
  }

  void Choice(const FieldSpec& spec, const Choices& choices, std::string& value,
              const std::string&) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    const std::string* text = found->get_ptr<const std::string*>();
    for (const std::string_view choice : choices) {
      if (text != nullptr && *text == choice) {
        value = *text;
        return;
      }
    }
    Add(spec, Format("found {}, allowed {}{}", ShortJson(*found), QuotedList(choices),
                     text == nullptr ? "" : DidYouMean(*text, choices)));
  }

  void Numbers(const FieldSpec& spec, std::vector<double>& value,
               const std::vector<double>& base) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    std::vector<double> numbers;
    for (std::size_t i = 0; found->is_array() && i < found->size(); ++i) {
      const double number = (*found)[i].is_number() ? (*found)[i].get<double>() : std::nan("");
      if (number >= spec.min && number <= spec.max) numbers.push_back(number);
    }
    if (!found->is_array() || found->size() != base.size() || numbers.size() != base.size()) {
      Add(spec, Format("found {}, allowed a list of {} numbers from {}", ShortJson(*found),
                       base.size(), RangeText(spec)));
      return;
    }
    value = numbers;
  }

  void Table(const FieldSpec& spec, NumberTable& value, const NumberTable&) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    const bool quantiles = spec.columns == nullptr;
    NumberTable rows;
    const std::string_view columns = quantiles ? "," : spec.columns;
    const auto wide = static_cast<std::size_t>(std::count(columns.begin(), columns.end(), ',')) + 1;
    const std::size_t most = quantiles ? kMostRows : kMostRows / 10;
    bool good = found->is_array() && found->size() <= most;
    for (std::size_t i = 0; good && i < found->size(); ++i) {
      const Json& row = (*found)[i];
      good = row.is_array() && row.size() == wide;
      if (good) rows.emplace_back();
      for (std::size_t j = 0; good && j < row.size(); ++j) {
        const double number = row[j].is_number() ? row[j].get<double>() : std::nan("");
        rows[i].push_back(number);
        const bool probability = quantiles && j == 0;
        good = probability ? number >= 0 : number >= spec.min && number <= spec.max;
      }
      if (!good || !quantiles) continue;
      good = i == 0 ? rows[i][0] == 0 : rows[i][0] > rows[i - 1][0] && rows[i][1] >= rows[i - 1][1];
    }
    if (quantiles) good = good && rows.size() >= 2 && rows.back()[0] == 1;
    if (!good) {
      Add(spec, quantiles ? Format("found {}, allowed 2 to {} pairs [probability, tokens], both "
                                   "ascending, probability from 0 to 1, tokens from {}",
                                   ShortJson(*found), most, RangeText(spec))
                          : Format("found {}, allowed at most {} rows [{}] of numbers from {}",
                                   ShortJson(*found), most, spec.columns, RangeText(spec)));
      return;
    }
    value = rows;
  }

  void Foreign(const FieldSpec& spec, std::string& json, const std::string&) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    constexpr std::size_t kMostBytes = 100'000;
    std::string text = found->is_object() ? CompactJson(*found) : std::string();
    if (text.empty() || text.size() > kMostBytes) {
      Add(spec,
          Format("found {}, allowed an object of at most {} bytes", ShortJson(*found), kMostBytes));
      return;
    }
    json = std::move(text);
  }

  void Object(const FieldSpec& spec, AddFields fields) override {
    static const Json kEmpty = Json::object();
    const Json* found = Member(spec);
    // What a pool inherits it switches off by its members.
    const bool inherits = path_.rfind("/cluster/pools/", 0) == 0 && !spec.repeats;
    if (found != nullptr && found->is_null() && spec.nullable && !inherits) found = nullptr;
    if (found == nullptr && (spec.repeats || !sections_)) return;
    if (found != nullptr && !found->is_object()) {
      Add(spec, Format("found {}, allowed an object", ShortJson(*found)));
      return;
    }
    ObjectReader inner(found == nullptr ? kEmpty : *found, path_ + "/" + spec.name, issues_);
    if (path_.empty() && !PresetKind(spec.name).empty()) inner.Accept("preset");
    fields(inner);
    inner.ReportUnknown();
  }

  void List(const FieldSpec& spec, ListField& list) override {
    const Json* found = Member(spec);
    if (found == nullptr || (found->is_null() && spec.nullable)) return;
    const auto size = static_cast<double>(found->size());
    if (!found->is_array() || size < spec.min || size > spec.max) {
      Add(spec, Format("found {}, allowed a list of {} to {} objects", ShortJson(*found),
                       NumberText(spec.min), NumberText(spec.max)));
      return;
    }
    list.Resize(found->size());
    for (std::size_t i = 0; i < found->size(); ++i) {
      const std::string path = Format("{}/{}/{}", path_, spec.name, i);
      if (!(*found)[i].is_object()) {
        issues_.push_back({path, Format("found {}, allowed an object", ShortJson((*found)[i]))});
        continue;
      }
      ObjectReader inner((*found)[i], path, issues_);
      list.Describe(inner, i);
      inner.ReportUnknown();
    }
  }

  void When(std::string_view field, const Choices& values, bool active, AddFields fields) override {
    if (active) {
      fields(*this);
      return;
    }
    // Only the names, so that a stray one can be told from an unknown one.
    const Elsewhere where = {field, &values};
    const bool collecting = elsewhere_ != nullptr;
    if (!collecting) elsewhere_ = &where;
    fields(*this);
    if (!collecting) elsewhere_ = nullptr;
  }

  void Accept(const char* name) { known_.emplace_back(name); }

  // Most documents are right: only a stray key has the known ones sorted.
  void ReportUnknown() {
    std::size_t stray = 0;
    bool sorted = false;
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      if (++stray > kMostIssues) continue;
      const auto named = [&name = key](const Inactive& each) { return each.name == name; };
      const auto other = std::find_if(inactive_.begin(), inactive_.end(), named);
      if (other != inactive_.end()) {
        issues_.push_back({path_ + "/" + key, Format("\"{}\" {}", key, other->reason)});
        continue;
      }
      if (!sorted) std::sort(known_.begin(), known_.end());
      if (!sorted) known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
      sorted = true;
      std::string keys;
      for (const std::string_view k : known_) keys += Format("{}{}", keys.empty() ? "" : ", ", k);
      issues_.push_back({path_ + "/" + ShownPointerToken(key),
                         Format("unknown key{}; known here: {}", DidYouMean(key, known_), keys)});
    }
    if (stray > kMostIssues) issues_.push_back(Unlisted(stray - kMostIssues));
  }

 private:
  // The member of that name; nullptr when there is none, which is an issue for a required one.
  const Json* Member(const FieldSpec& spec) {
    const auto found = object_.find(spec.name);
    if (elsewhere_ != nullptr) {
      if (found != object_.end()) {
        inactive_.push_back({spec.name, Format("only applies when {} is {}", elsewhere_->field,
                                               QuotedList(*elsewhere_->values))});
      }
      return nullptr;
    }
    known_.emplace_back(spec.name);
    if (found != object_.end()) return &*found;
    if (spec.required) {
      std::string allowed = spec.max > spec.min ? ", allowed " + RangeText(spec) : "";
      Add(spec, Format("missing: {}{}", spec.help, allowed));
    }
    return nullptr;
  }

  // null takes away a member that need not have a value: one whose default is none.
  template <class T>
  static bool Unset(const FieldSpec& spec, const Json& found, const std::optional<T>& base,
                    std::optional<T>& value) {
    if (!found.is_null() || spec.required || base.has_value()) return false;
    value.reset();
    return true;
  }

  void Add(const FieldSpec& spec, std::string message) {
    issues_.push_back({path_ + "/" + spec.name, std::move(message)});
  }

  // Fields that are visited now exist while `field` has one of these values, which it has not.
  struct Elsewhere {
    std::string_view field;
    const Choices* values;
  };
  // A member of the object that is none of its fields, as another one is chosen.
  struct Inactive {
    std::string_view name;
    std::string reason;
  };

  const Json& object_;
  std::string path_;
  Issues& issues_;
  Choices known_;
  std::vector<Inactive> inactive_;
  bool sections_;  // an object that is not there is read as an empty one
  const Elsewhere* elsewhere_ = nullptr;
};

}  // namespace

void ReadScenario(const Json& document, Scenario& scenario, Issues& issues) {
  ObjectReader reader(document, "", issues);
  reader.Accept("schema");
  DescribeScenario(reader, scenario, Scenario{});
  reader.ReportUnknown();
}

void ReadSections(const Json& document, Scenario& scenario) {
  Issues ignored;
  ObjectReader reader(document, "", ignored, /*sections=*/false);
  DescribeScenario(reader, scenario, Scenario{});
}

void ReadSection(std::string_view section, const Json& members, Scenario& scenario) {
  Issues ignored;
  ObjectReader reader(members, "", ignored);
  section == "hardware" ? Describe(reader, scenario.hardware, HardwareSpec{})
                        : Describe(reader, scenario.engine, EngineSpec{});
}

std::string QuotedList(const Choices& choices) {
  std::string text;
  for (const std::string_view choice : choices) {
    text += Format("{}\"{}\"", text.empty() ? "" : ", ", choice);
  }
  return text;
}

std::string DidYouMean(std::string_view word, const Choices& choices) {
  constexpr std::size_t kLongest = 100;  // no name is near to that, and looking takes its length
  if (word.size() > kLongest) return "";
  const std::string near = NearestWord(word, choices);
  return near.empty() ? "" : Format("; did you mean \"{}\"?", near);
}

}  // namespace servecast
