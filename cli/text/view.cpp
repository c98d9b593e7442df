// See view.h.
#include "text/view.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "io/json_writer.h"

namespace servecast {

View View::operator[](std::string_view key) const {
  if (!IsObject()) return View();
  const auto found = at_->find(std::string(key));
  return found == at_->end() ? View() : View(&*found);
}

View View::At(std::size_t index) const {
  return IsArray() && index < at_->size() ? View(&(*at_)[index]) : View();
}

std::vector<View> View::Elements() const {
  std::vector<View> all;
  if (!IsArray()) return all;
  for (const nlohmann::ordered_json& each : *at_) all.emplace_back(&each);
  return all;
}

std::vector<std::string> View::Keys() const {
  std::vector<std::string> all;
  if (!IsObject()) return all;
  for (auto it = at_->begin(); it != at_->end(); ++it) all.push_back(it.key());
  return all;
}

bool View::Is() const { return at_ != nullptr && !at_->is_null(); }
bool View::IsObject() const { return at_ != nullptr && at_->is_object(); }
bool View::IsArray() const { return at_ != nullptr && at_->is_array(); }
bool View::IsText() const { return at_ != nullptr && at_->is_string(); }

std::optional<double> View::Number() const {
  if (at_ == nullptr || !at_->is_number()) return std::nullopt;
  return at_->get<double>();
}

double View::NumberOr(double other) const { return Number().value_or(other); }

bool View::Truth() const { return at_ != nullptr && at_->is_boolean() && at_->get<bool>(); }

std::string View::Words() const {
  return IsText() ? Printable(at_->get_ref<const std::string&>()) : "";
}

namespace {

void WriteJson(const nlohmann::ordered_json& value, JsonWriter& out) {
  if (value.is_object()) {
    out.BeginObject();
    for (auto it = value.begin(); it != value.end(); ++it) {
      out.Key(it.key());
      WriteJson(*it, out);
    }
    out.EndObject();
  } else if (value.is_array()) {
    out.BeginArray();
    for (const nlohmann::ordered_json& each : value) WriteJson(each, out);
    out.EndArray();
  } else if (value.is_string()) {
    out.Text(value.get_ref<const std::string&>());
  } else if (value.is_boolean()) {
    out.Boolean(value.get<bool>());
  } else if (value.is_number_integer()) {
    out.Integer(value.get<std::int64_t>());
  } else if (value.is_number()) {
    out.Number(value.get<double>());
  } else {
    out.Null();
  }
}

}  // namespace

std::string View::Json() const {
  if (at_ == nullptr) return "null";
  JsonWriter out(false);
  WriteJson(*at_, out);
  return out.Take();
}

std::string View::IndentedJson() const {
  if (at_ == nullptr) return "null";
  JsonWriter out(true);
  WriteJson(*at_, out);
  return out.Take();
}

std::string View::Plain() const {
  if (!Is()) return "";
  return IsText() ? Words() : Json();
}

ParsedAnswer::ParsedAnswer(std::string_view json)
    : json_(std::make_unique<nlohmann::ordered_json>(
          nlohmann::ordered_json::parse(json, nullptr, /*allow_exceptions=*/false))) {}
ParsedAnswer::ParsedAnswer(ParsedAnswer&&) noexcept = default;
ParsedAnswer::~ParsedAnswer() = default;

View ParsedAnswer::root() const { return View(json_.get()); }

std::string WithoutSpace(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted && c == '\\') {
      out += json.substr(i, 2);
      ++i;
      continue;
    }
    if (c == '"') quoted = !quoted;
    if (quoted || (c != ' ' && c != '\n')) out += c;
  }
  return out;
}

}  // namespace servecast
