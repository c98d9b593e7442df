// See json_numbers.h.
#include "calibrate/json_numbers.h"

#include "base/text.h"
#include "io/json_document.h"

namespace servecast {

using Json = nlohmann::json;

void JsonNumbers::Refuse(const std::string& path, const Json* found, std::string_view allowed) {
  issues_.push_back({name_ + ", " + at_ + path,
                     Format("{}, allowed {}",
                            found == nullptr ? "missing" : "found " + ShortJson(*found), allowed)});
}

const Json* JsonNumbers::FindAt(std::initializer_list<const char*> keys) const {
  const Json* at = &json_;
  for (const char* key : keys) {
    if (!at->is_object()) return nullptr;
    const auto next = at->find(key);
    if (next == at->end() || next->is_null()) return nullptr;
    at = &*next;
  }
  return at;
}

std::string JsonNumbers::PathOf(std::initializer_list<const char*> keys) {
  std::string path;
  for (const char* key : keys) path += std::string("/") + key;
  return path;
}

std::optional<double> JsonNumbers::NumberAt(std::initializer_list<const char*> keys, double least,
                                            double most) {
  const Json* value = FindAt(keys);
  if (value == nullptr) return std::nullopt;
  const bool good =
      value->is_number() && value->get<double>() >= least && value->get<double>() <= most;
  if (good) return value->get<double>();
  Refuse(PathOf(keys), value,
         Format("a number from {} to {}", NumberText(least), NumberText(most)));
  return std::nullopt;
}

double JsonNumbers::NeededAt(std::initializer_list<const char*> keys, double least, double most) {
  if (FindAt(keys) == nullptr) Refuse(PathOf(keys), nullptr, "a number");
  return NumberAt(keys, least, most).value_or(least);
}

std::vector<double> JsonNumbers::Numbers(const char* key, double least, double most) {
  const Json* list = Find(key);
  if (list == nullptr) return {};
  if (!list->is_array()) {
    Refuse(std::string("/") + key, list, "a list of numbers");
    return {};
  }
  std::vector<double> numbers;
  for (const Json& value : *list) {
    const bool good =
        value.is_number() && value.get<double>() >= least && value.get<double>() <= most;
    if (!good) {
      Refuse(Format("/{}/{}", key, numbers.size()), &value,
             Format("a number from {} to {}", NumberText(least), NumberText(most)));
    }
    numbers.push_back(good ? value.get<double>() : least);
  }
  return numbers;
}

}  // namespace servecast
