// One description of every field of a scenario document, read by all that need it: the parser, the
// canonical text, the catalogue and so the command's help and the page's form. A visitor sees each
// field with its unit, range, help, present value and the value that counts as default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "servecast/scenario.h"

namespace servecast {

struct FieldSpec {
  const char* name;
  const char* unit = "";
  double min = 0, max = 0;  // of numbers, both included
  const char* help = "";
  bool required = false;
  bool nullable = false;  // an object or list: null takes away what a preset sets
  bool label = false;     // names a thing, does not change what is simulated
  bool in_times = false;  // all that it changes are times, which a fingerprint has: not hashed
  bool compared = false;  // a figure at whose value a comparison with servers holds
  bool idle = false;      // an object that is switched off: resolved texts leave it out
  bool repeats = false;   // an object with the fields of a section: the catalogue leaves it out
  // Of a table of numbers: their names, with commas between. nullptr: quantiles.
  const char* columns = nullptr;
};

using Choices = std::vector<std::string_view>;

class FieldVisitor;

using AddFields = FunctionRef<void(FieldVisitor&)>;

// A list of objects, and the list that counts as its default.
class ListField {
 public:
  virtual ~ListField() = default;
  virtual std::size_t size() const = 0;
  virtual std::size_t base_size() const = 0;
  virtual void Resize(std::size_t size) = 0;
  virtual void Describe(FieldVisitor&, std::size_t at) = 0;
  virtual void DescribeBase(FieldVisitor&, std::size_t at) = 0;
};

class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual bool reads() const { return false; }  // it sets the values, from a document
  virtual void Integer(const FieldSpec&, std::optional<std::int64_t>& value,
                       const std::optional<std::int64_t>& base) = 0;
  virtual void Number(const FieldSpec&, std::optional<double>& value,
                      const std::optional<double>& base) = 0;
  virtual void Boolean(const FieldSpec&, bool& value, bool base) = 0;
  virtual void Text(const FieldSpec&, std::string& value, const std::string& base) = 0;
  virtual void Choice(const FieldSpec&, const Choices& choices, std::string& value,
                      const std::string& base) = 0;
  // Exactly base.size() numbers.
  virtual void Numbers(const FieldSpec&, std::vector<double>& value,
                       const std::vector<double>& base) = 0;
  // Rows of `columns`, each number within the range. Quantiles: rows of [0..1, within the range],
  // both ascending, from 0 to 1.
  virtual void Table(const FieldSpec&, NumberTable& value, const NumberTable& base) = 0;
  // Any JSON object, as compact text: a configuration of another program, which its own rules read.
  virtual void Foreign(const FieldSpec&, std::string& json, const std::string& base) = 0;
  virtual void Object(const FieldSpec&, AddFields fields) = 0;
  virtual void List(const FieldSpec&, ListField& list) = 0;
  // Fields that only exist while the choice `field` of the same object has one of `values`.
  virtual void When(std::string_view field, const Choices& values, bool active,
                    AddFields fields) = 0;
};

// Visits every field of `scenario`; `base` holds what counts as default.
void DescribeScenario(FieldVisitor& visitor, Scenario& scenario, const Scenario& base);
// Of these the two sections that have figures at whose values a comparison holds.
void DescribeCompared(FieldVisitor& visitor, Scenario& scenario, const Scenario& base);

}  // namespace servecast
