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

// A visitor bound to an object and its base, so that a field is one line.
template <class T>
class Fields {
 public:
  Fields(FieldVisitor& visitor, T& object, const T& base)
      : visitor_(visitor), object_(object), base_(base) {}

  template <class M>
  void Add(const FieldSpec& spec, M T::*member) {
    M& value = object_.*member;
    const M& base = base_.*member;
    if constexpr (std::is_same_v<M, std::optional<std::int64_t>>) {
      visitor_.Integer(spec, value, base);
    } else if constexpr (std::is_same_v<M, std::optional<double>>) {
      visitor_.Number(spec, value, base);
    } else if constexpr (std::is_same_v<M, std::int64_t>) {
      std::optional<std::int64_t> v = value;
      visitor_.Integer(spec, v, base);
      value = v.value_or(value);
    } else if constexpr (std::is_same_v<M, double>) {
      std::optional<double> v = value;
      visitor_.Number(spec, v, base);
      value = v.value_or(value);
    } else if constexpr (std::is_same_v<M, bool>) {
      visitor_.Boolean(spec, value, base);
    } else if constexpr (std::is_same_v<M, std::string>) {
      visitor_.Text(spec, value, base);
    } else if constexpr (std::is_same_v<M, std::vector<double>>) {
      visitor_.Numbers(spec, value, base);
    } else {
      visitor_.Table(spec, value, base);
    }
  }

  // An enumerator by its name; `names` in the order of the enumerators, all of them `offered`
  // unless these are said.
  template <class E>
  void Enum(const FieldSpec& spec, E T::*member, const Choices& names,
            const Choices& offered = {}) {
    std::string value(names[static_cast<std::size_t>(object_.*member)]);
    visitor_.Choice(spec, offered.empty() ? names : offered, value,
                    std::string(names[static_cast<std::size_t>(base_.*member)]));
    const auto at = std::find(names.begin(), names.end(), value);
    if (at != names.end()) object_.*member = static_cast<E>(at - names.begin());
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

template <class T, class Describe>
ListField ListOf(std::vector<T>& items, const std::vector<T>& base, Describe describe) {
  static const T kDefault{};
  ListField list;
  list.size = [&items] { return items.size(); };
  list.resize = [&items](std::size_t n) { items.assign(n, T{}); };
  list.describe = [&items, describe](FieldVisitor& v, std::size_t i) {
    describe(v, items[i], kDefault);
  };
  list.base_size = base.size();
  list.describe_base = [&base, describe](FieldVisitor& v, std::size_t i) {
    T item = base[i];
    describe(v, item, kDefault);
  };
  return list;
}

// In fields_model.cpp.
void Describe(FieldVisitor& visitor, ModelSpec& model, const ModelSpec& base);
void Describe(FieldVisitor& visitor, HardwareSpec& hardware, const HardwareSpec& base);
// In fields_engine.cpp.
void Describe(FieldVisitor& visitor, EngineSpec& engine, const EngineSpec& base);
// In fields_workload.cpp.
void Describe(FieldVisitor& visitor, WorkloadSpec& workload, const WorkloadSpec& base);

}  // namespace servecast
