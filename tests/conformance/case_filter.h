// --only of the conformance command: which golden cases to run, by the settings in their manifest.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "servecast/result.h"
#include "testing/vllm_golden.h"

namespace servecast::testing {

// Terms of different settings must all hold; of several terms on one setting, one.
class CaseFilter {
 public:
  // A term is SETTING=VALUE, SETTING (it is on), no_SETTING (it is off), the name of a case or of a
  // policy. Any part of a setting's name will do that only one setting has ("async"). Issues: a
  // term that means nothing in `cases`.
  static Result<CaseFilter> Parse(const std::vector<std::string>& terms,
                                  const std::vector<GoldenCase>& cases);

  bool Accepts(const GoldenCase& golden) const;

 private:
  struct Setting {
    std::string key;
    std::vector<std::string> values;  // accepted
  };
  void Add(const std::string& key, std::string value);

  std::vector<Setting> settings_;
};

}  // namespace servecast::testing
