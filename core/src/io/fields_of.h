// What the descriptions of fields are written with: a visitor bound to an object and its base.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "io/fields.h"

namespace servecast {

inline constexpr double kMaxTokens = 1e9;

// A member and its default, once for each type of member: who describes them are many.
template <class M>
[[gnu::noinline]] void AddField(FieldVisitor& visitor, const FieldSpec& spec, M& value,
                                const M& base) {
  if constexpr (std::is_same_v<M, std::optional<std::int64_t>>) {
    visitor.Integer(spec, value, base);
  } else if constexpr (std::is_same_v<M, std::optional<double>>) {
    visitor.Number(spec, value, base);
  } else if constexpr (std::is_same_v<M, std::int64_t>) {
    std::optional<std::int64_t> v = value;
    visitor.Integer(spec, v, base);
    value = v.value_or(value);
  } else if constexpr (std::is_same_v<M, double>) {
    std::optional<double> v = value;
    visitor.Number(spec, v, base);
    value = v.value_or(value);
  } else if constexpr (std::is_same_v<M, bool>) {
    visitor.Boolean(spec, value, base);
  } else if constexpr (std::is_same_v<M, std::string>) {
    visitor.Text(spec, value, base);
  } else if constexpr (std::is_same_v<M, std::vector<double>>) {
    visitor.Numbers(spec, value, base);
  } else {
    visitor.Table(spec, value, base);
  }
}

// An enumerator by its name, likewise; returns it.
[[gnu::noinline]] inline int ReadChoice(FieldVisitor& visitor, const FieldSpec& spec, int member,
                                        int base, const Choices& names, const Choices& offered) {
  std::string value(names[static_cast<std::size_t>(member)]);
  visitor.Choice(spec, offered.empty() ? names : offered, value,
                 std::string(names[static_cast<std::size_t>(base)]));
  const auto at = std::find(names.begin(), names.end(), value);
  return at == names.end() ? member : static_cast<int>(at - names.begin());
}

// A visitor bound to an object and its base, so that a field is one line.
template <class T>
class Fields {
 public:
  Fields(FieldVisitor& visitor, T& object, const T& base)
      : visitor_(visitor), object_(object), base_(base) {}

  template <class M>
  void Add(const FieldSpec& spec, M T::*member) {
    AddField(visitor_, spec, object_.*member, base_.*member);
  }

  // An enumerator by its name; `names` in the order of the enumerators, all of them `offered`
  // unless these are said.
  template <class E>
  void Enum(const FieldSpec& spec, E T::*member, const Choices& names,
            const Choices& offered = {}) {
    object_.*member = static_cast<E>(ReadChoice(visitor_, spec, static_cast<int>(object_.*member),
                                                static_cast<int>(base_.*member), names, offered));
  }

  void Policy(const FieldSpec& spec, std::string T::*member, const Choices& names) {
    visitor_.Choice(spec, names, object_.*member, base_.*member);
  }

 private:
  FieldVisitor& visitor_;
  T& object_;
  const T& base_;
};

// Fields that exist while `field` has one of `values`. Not a closure for each: those are large.
template <class T>
void FieldsWhen(FieldVisitor& v, std::string_view field, const Choices& values, bool active,
                T& object, const T& base, void (*add)(Fields<T>&)) {
  v.When(field, values, active, [&](FieldVisitor& inner) {
    Fields<T> fields(inner, object, base);
    add(fields);
  });
}

// A list whose items `describe` (visitor, item, default) describes.
template <class T, class D>
class ListOf final : public ListField {
 public:
  ListOf(std::vector<T>& items, const std::vector<T>& base, D describe)
      : items_(items), base_(base), describe_(describe) {}

  std::size_t size() const override { return items_.size(); }
  std::size_t base_size() const override { return base_.size(); }
  void Resize(std::size_t size) override { items_.assign(size, T{}); }
  void Describe(FieldVisitor& v, std::size_t at) override { describe_(v, items_[at], Default()); }
  void DescribeBase(FieldVisitor& v, std::size_t at) override {
    T item = base_[at];
    describe_(v, item, Default());
  }

 private:
  static const T& Default() {
    static const T kDefault{};
    return kDefault;
  }

  std::vector<T>& items_;
  const std::vector<T>& base_;
  D describe_;
};

// In fields_model.cpp.
void Describe(FieldVisitor& visitor, ModelSpec& model, const ModelSpec& base);
void Describe(FieldVisitor& visitor, HardwareSpec& hardware, const HardwareSpec& base);
// In fields_engine.cpp.
void Describe(FieldVisitor& visitor, EngineSpec& engine, const EngineSpec& base);
// In fields_calibration.cpp.
void Describe(FieldVisitor& visitor, CalibrationSpec& calibration, const CalibrationSpec& base);
// In fields_workload.cpp.
void Describe(FieldVisitor& visitor, WorkloadSpec& workload, const WorkloadSpec& base);
// Of its schedulers, those with options of their own.
void DescribeSchedulers(FieldVisitor& visitor, SchedulerSpec& scheduler, const SchedulerSpec& base);

}  // namespace servecast
