// Writes the figures that a Visit function describes as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_writer.h"
#include "io/report_visit.h"
#include "servecast/report.h"

namespace servecast {

// Units and help are for report_dictionary.cpp: nothing of them is left here, as the page's first
// module has this file.
struct NoAbout {
  [[gnu::always_inline]] constexpr NoAbout(const char* /*unit*/, const char* /*help*/) {}
  [[gnu::always_inline]] constexpr NoAbout(const char* /*unit*/, const char* /*help*/,
                                           const char* /*type*/) {}
};

class JsonPut {
 public:
  using About = NoAbout;
  explicit JsonPut(JsonWriter& out) : out_(out) {}

  template <class T>
  void operator()(std::string_view key, NoAbout /*about*/, const T& value) {
    out_.Key(key);
    Write(value);
  }
  template <class T>
  void When(bool present, std::string_view key, NoAbout about, const T& value) {
    if (present) (*this)(key, about, value);
  }
  template <class Inner>
  void Object(std::string_view key, NoAbout /*about*/, Inner inner) {
    out_.Key(key);
    out_.BeginObject();
    inner();
    out_.EndObject();
  }
  template <class Inner>
  void ObjectIf(bool present, std::string_view key, NoAbout about, Inner inner) {
    if (present) Object(key, about, inner);
  }
  template <class T, class Inner>
  void ObjectOf(std::string_view key, NoAbout about, const std::optional<T>& value, Inner inner) {
    if (value) Object(key, about, [&] { inner(*value); });
  }
  template <class T, class Inner>
  void Array(bool present, std::string_view key, NoAbout about, const std::vector<T>& items,
             Inner inner) {
    if (present) Each(key, about, items.size(), [&](std::size_t i) { inner(items[i], i); });
  }
  template <class Inner>
  void Each(std::string_view key, NoAbout /*about*/, std::size_t count, Inner inner) {
    out_.Key(key);
    out_.BeginArray();
    for (std::size_t i = 0; i < count; ++i) {
      out_.BeginObject();
      inner(i);
      out_.EndObject();
    }
    out_.EndArray();
  }
  template <class T, class Value>
  void List(std::string_view key, NoAbout /*about*/, const std::vector<T>& items, Value value) {
    out_.Key(key);
    out_.BeginArray();
    for (const T& item : items) Write(value(item));
    out_.EndArray();
  }
  template <class T>
  void Texts(bool present, std::string_view key, NoAbout /*about*/, const std::vector<T>& texts) {
    if (!present) return;
    out_.Key(key);
    out_.BeginArray();
    for (const T& text : texts) out_.Text(text);
    out_.EndArray();
  }

 private:
  void Write(std::int64_t value) { out_.Integer(value); }
  void Write(double value) { out_.Number(value); }
  void Write(bool value) { out_.Boolean(value); }
  void Write(std::string_view value) { out_.Text(value); }
  void Write(const std::string& value) { out_.Text(value); }
  void Write(const char* value) { out_.Text(value); }
  template <class T>
  void Write(const std::optional<T>& value) {
    value ? Write(*value) : out_.Null();
  }

  JsonWriter& out_;
};

// Of what the page's first module never runs, which has empty ones (wasm/first_module.cpp).
void VisitPools(const Report& report, Scope scope, JsonPut& put);
void VisitReplicas(const Report& report, JsonPut& put);
void VisitScaling(const ScalingReport& scaling, JsonPut& put);
void VisitFailures(const ScalingReport& scaling, JsonPut& put);
void VisitSlow(const SlowReport& slow, JsonPut& put);
void VisitRetries(const RetryReport& retries, JsonPut& put);
void VisitSpeculation(const SchedulerCounts& counts, JsonPut& put);
void VisitImages(const Report& report, JsonPut& put);

}  // namespace servecast
