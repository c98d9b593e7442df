// libFuzzer's mutator for documents: most changes set fields of the catalogue to values that they
// may have, so that valid documents stay valid more often than bytes at random would; the others
// are bytes at random. What follows the document's text is kept.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fuzz/inputs.h"
#include "io/json_document.h"
#include "servecast/report.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace servecast::fuzz {
namespace {

using Json = nlohmann::json;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  // 0 to n-1 (SplitMix64).
  std::uint64_t Below(std::uint64_t n) {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % n;
  }
  double Unit() { return static_cast<double>(Below(1u << 30)) / (1u << 30); }

 private:
  std::uint64_t state_;
};

const Json& CatalogueFields() {
  static const Json kCatalogue = std::move(ParseJson(CatalogJson()).value());
  return kCatalogue["fields"];
}

double NumberFor(const Json& field, Dice& dice) {
  const double min = field["minimum"].get<double>(), max = field["maximum"].get<double>();
  const Json& usual = field["default"];
  switch (dice.Below(8)) {
    case 0:
      return min;
    case 1:
      return max;
    case 2:
      return usual.is_number() ? usual.get<double>() : max;
    case 3:  // just beyond
      return dice.Below(2) == 0 ? min - 1 : max + 1;
    case 4:
    case 5:
      return std::min(max, min + static_cast<double>(dice.Below(20)));
    default: {  // of any magnitude
      const double low = std::max(min, 1e-9);
      return std::min(max, low * std::exp(dice.Unit() * std::log(std::max(max / low, 1.0))));
    }
  }
}

Json ValueFor(const Json& field, Dice& dice) {
  const std::string type = field["type"].get<std::string>();
  if (dice.Below(16) == 0) {
    static const Json kOdd[] = {
        nullptr, Json::object(), Json::array({1}), "1",        true,      -0.0,           5e-324,
        1.5,     1e308,          UINT64_MAX,       1ull << 63, INT64_MIN, (1ll << 53) + 1};
    return kOdd[dice.Below(std::size(kOdd))];
  }
  if (type == "integer") return static_cast<std::int64_t>(NumberFor(field, dice));
  if (type == "number") return NumberFor(field, dice);
  if (type == "boolean") return dice.Below(2) == 0;
  if (type == "choice") return field["choices"][dice.Below(field["choices"].size())];
  if (type == "text") return std::string(dice.Below(4), static_cast<char>('a' + dice.Below(3)));
  if (type == "object") return Json{{"plugins", Json::array()}};
  if (field["default"].is_array()) {
    Json numbers = Json::array();
    for (std::size_t i = 0; i < field["default"].size(); ++i) {
      numbers.push_back(NumberFor(field, dice));
    }
    return numbers;
  }
  double low = NumberFor(field, dice), middle = NumberFor(field, dice);
  if (low > middle) std::swap(low, middle);
  return Json{{0, low}, {dice.Unit(), middle}, {1, middle + static_cast<double>(dice.Below(100))}};
}

// "/slo/-/metric" as "slo.0.metric".
std::string PathOf(const std::string& pointer, const std::string& item) {
  std::string path = pointer.substr(1);
  for (char& c : path) c = c == '/' ? '.' : c;
  const std::size_t list = path.find(".-.");
  return list == std::string::npos ? path : path.replace(list + 1, 1, item);
}

// Some field of the catalogue and what it needs: the choice that it depends on, and with a new
// item of a list that item's required members.
void AddChange(Dice& dice, std::vector<std::string>& changes) {
  const Json& fields = CatalogueFields();
  const Json& field = fields[dice.Below(fields.size())];
  const std::string pointer = field["path"].get<std::string>();
  const std::string item = std::to_string(dice.Below(3));
  const auto set = [&](const std::string& at, const Json& value) {
    changes.push_back(PathOf(at, item) + "=" + CompactJson(value));
  };
  const std::size_t list = pointer.find("/-/");
  if (list != std::string::npos && dice.Below(2) == 0) {
    for (const Json& other : fields) {
      const std::string at = other["path"].get<std::string>();
      if (at.compare(0, list + 3, pointer, 0, list + 3) != 0 || other["required"] != true) continue;
      set(at, other["type"] == "text" ? Json("item " + item) : ValueFor(other, dice));
    }
  }
  if (field.contains("when")) {
    const Json& values = field["when"]["values"];
    set(field["when"]["path"].get<std::string>(), values[dice.Below(values.size())]);
  }
  set(pointer, ValueFor(field, dice));
}

std::size_t Mutate(std::uint8_t* data, std::size_t size, std::size_t max_size, Dice& dice) {
  if (dice.Below(4) > 0) {
    const std::string_view input = TextOf(data, size);
    const std::string_view document = Parts(input)[0];
    std::vector<std::string> changes;
    do AddChange(dice, changes);
    while (dice.Below(2) == 0);
    const Result<std::string> changed = ApplyOverrides(document, changes);
    if (changed.ok()) {
      const std::string text = changed.value() + std::string(input.substr(document.size()));
      if (text.size() <= max_size) {
        std::memcpy(data, text.data(), text.size());
        return text.size();
      }
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

}  // namespace
}  // namespace servecast::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned int seed) {
  servecast::fuzz::Dice dice(seed);
  return servecast::fuzz::Mutate(data, size, max_size, dice);
}
