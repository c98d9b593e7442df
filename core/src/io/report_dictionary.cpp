// Lists what report_figures.h, report_findings.h and report_work.h describe, by visiting an empty
// report.
#include "io/report_dictionary.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <type_traits>

#include "io/json_writer.h"
#include "io/report_work.h"
#include "servecast/error_band.h"
#include "servecast/report.h"

namespace servecast {
namespace {

template <class T>
const char* TypeOf(const T* /*value*/) {
  if constexpr (std::is_same_v<T, bool>) return "boolean";
  if constexpr (std::is_arithmetic_v<T>) return "number";
  return "string";
}
template <class T>
const char* TypeOf(const std::optional<T>* /*value*/) {
  return "number | null";
}

bool IsName(std::string_view type) {
  return !type.empty() &&
         type.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") ==
             std::string_view::npos;
}

class ListPut {
 public:
  struct About {
    About(const char* unit_in, const char* help_in, const char* type_in = "")
        : unit(unit_in), help(help_in), type(type_in) {}
    const char *unit, *help, *type;
  };

  std::vector<ReportType> types;

  template <class T>
  void operator()(std::string_view key, About about, const T& /*value*/) {
    Add(key, about, about.type[0] != 0 ? about.type : TypeOf(static_cast<const T*>(nullptr)));
  }
  template <class T>
  void When(bool /*present*/, std::string_view key, About about, const T& value) {
    (*this)(key, about, value);
    into_->back().optional = true;
  }
  template <class Inner>
  void Object(std::string_view key, About about, Inner inner) {
    Add(key, about, about.type);
    if (about.type[0] == 0) {
      Within(into_->back().members, inner);
    } else if (IsName(about.type)) {
      Type(about.type, inner);
    }
  }
  template <class Inner>
  void ObjectIf(bool /*present*/, std::string_view key, About about, Inner inner) {
    Object(key, about, inner);
    into_->back().optional = true;
  }
  template <class T, class Inner>
  void ObjectOf(std::string_view key, About about, const std::optional<T>& /*value*/, Inner inner) {
    ObjectIf(true, key, about, [&] { inner(T{}); });
  }
  template <class T, class Inner>
  void Array(bool present, std::string_view key, About about, const std::vector<T>& /*items*/,
             Inner inner) {
    Object(key, about, [&] { inner(T{}, std::size_t{0}); });
    into_->back().list = true;
    into_->back().optional = !present;
  }
  template <class Inner>
  void Each(std::string_view key, About about, std::size_t /*count*/, Inner inner) {
    Object(key, about, [&] { inner(std::size_t{0}); });
    into_->back().list = true;
  }
  template <class T, class Value>
  void List(std::string_view key, About about, const std::vector<T>& /*items*/, Value /*value*/) {
    const bool sure = std::is_arithmetic_v<std::invoke_result_t<Value, const T&>>;
    Add(key, about, sure ? "readonly number[]" : "readonly (number | null)[]");
  }
  template <class T>
  void Texts(bool present, std::string_view key, About about, const std::vector<T>& /*texts*/) {
    Add(key, about, "readonly string[]");
    into_->back().optional = !present;
  }

  // The members that `inner` puts, as an interface; once, if it has been there.
  template <class Inner>
  void Type(std::string_view name, Inner inner) {
    const auto known = [&](const ReportType& type) { return type.name == name; };
    if (std::any_of(types.begin(), types.end(), known)) return;
    ReportType type{std::string(name), {}};
    Within(type.members, inner);
    types.push_back(std::move(type));
  }

 private:
  void Add(std::string_view key, About about, const char* type) {
    into_->push_back({std::string(key), about.unit, about.help, type, false, false, {}});
  }
  template <class Inner>
  void Within(std::vector<ReportMember>& members, Inner inner) {
    std::vector<ReportMember>* const outer = into_;
    into_ = &members;
    inner();
    into_ = outer;
  }

  std::vector<ReportMember>* into_ = nullptr;
};

void WriteMembers(const std::vector<ReportMember>& members, JsonWriter& out) {
  out.BeginArray();
  for (const ReportMember& member : members) {
    out.BeginObject();
    out.Key("name"), out.Text(member.name);
    if (!member.unit.empty()) out.Key("unit"), out.Text(member.unit);
    if (!member.help.empty()) out.Key("help"), out.Text(member.help);
    if (!member.type.empty()) out.Key("type"), out.Text(member.type);
    if (member.optional) out.Key("optional"), out.Boolean(true);
    if (member.list) out.Key("list"), out.Boolean(true);
    if (!member.members.empty()) out.Key("members"), WriteMembers(member.members, out);
    out.EndObject();
  }
  out.EndArray();
}

class Units {
 public:
  explicit Units(const std::vector<ReportType>& types) : types_(types) {
    for (const ReportType& type : types) {
      if (type.name == "Report" || type.name == "RunFigures") Walk(type.members, "");
    }
  }
  const std::map<std::string, std::string>& all() const { return units_; }

 private:
  void Walk(const std::vector<ReportMember>& members, const std::string& path) {
    for (const ReportMember& member : members) {
      const std::string at = path + member.name;
      if (!member.unit.empty()) units_[at] = member.unit;
      Walk(member.members, at + ".");
      for (const ReportType& type : types_) {
        if (type.name == member.type) Walk(type.members, at + ".");
      }
    }
  }

  const std::vector<ReportType>& types_;
  std::map<std::string, std::string> units_;
};

}  // namespace

std::vector<ReportType> ReportTypes() {
  ListPut put;
  const Report none;
  Banded banded;
  banded.targets.resize(1);
  put.Type("Report", [&] { VisitReport(none, &banded, {.all = true, .run = false}, put); });
  put.Type("RunFigures", [&] { VisitFirstRun(none, put); });
  return std::move(put.types);
}

std::string ReportDictionaryJson() {
  const std::vector<ReportType> types = ReportTypes();
  JsonWriter out(true);
  out.BeginObject();
  out.Key("types");
  out.BeginArray();
  for (const ReportType& type : types) {
    out.BeginObject();
    out.Key("name"), out.Text(type.name);
    out.Key("members"), WriteMembers(type.members, out);
    out.EndObject();
  }
  out.EndArray();
  out.Key("units");
  out.BeginObject();
  const Units units(types);
  for (const auto& [path, unit] : units.all()) out.Key(path), out.Text(unit);
  out.EndObject();
  out.EndObject();
  return out.Take();
}

}  // namespace servecast
