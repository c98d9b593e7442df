// Numbers of a document of JSON, each with the issue of what it cannot be.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/result.h"

namespace servecast {

class JsonNumbers {
 public:
  // `name`: of the file; `at`: where in it `json` is, "/benchmarks/0".
  JsonNumbers(const nlohmann::json& json, const std::string& name, std::string at = "")
      : json_(json), name_(name), at_(std::move(at)) {}

  void Refuse(const std::string& path, const nlohmann::json* found, std::string_view allowed);
  // nullptr: missing or null.
  const nlohmann::json* Find(const char* key) const { return FindAt({key}); }
  // Down through objects.
  const nlohmann::json* FindAt(std::initializer_list<const char*> keys) const;
  std::optional<double> Number(const char* key, double least, double most) {
    return NumberAt({key}, least, most);
  }
  std::optional<double> NumberAt(std::initializer_list<const char*> keys, double least,
                                 double most);
  // Where a document is none without it: an issue when it is missing.
  double NeededAt(std::initializer_list<const char*> keys, double least, double most);
  // Empty when there is no list of that name.
  std::vector<double> Numbers(const char* key, double least, double most);

  Issues& issues() { return issues_; }
  const nlohmann::json& json() const { return json_; }
  const std::string& name() const { return name_; }

 private:
  static std::string PathOf(std::initializer_list<const char*> keys);

  const nlohmann::json& json_;
  const std::string& name_;
  std::string at_;
  Issues issues_;
};

}  // namespace servecast
