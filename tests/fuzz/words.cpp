// Prints a dictionary for libFuzzer: the words of a scenario document, as the catalogue has them.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "io/json_document.h"
#include "servecast/scenario.h"

int main() {
  using Json = nlohmann::json;
  const servecast::Result<Json> catalogue = servecast::ParseJson(servecast::CatalogJson());
  if (!catalogue.ok()) return 1;
  std::set<std::string> words = {"schema", "preset"};
  for (const Json& field : catalogue.value()["fields"]) {
    const std::string path = field["path"].get<std::string>() + "/";
    for (std::size_t at = 1, end = 0; at < path.size(); at = end + 1) {
      end = path.find('/', at);
      if (path.substr(at, end - at) != "-") words.insert(path.substr(at, end - at));
    }
    for (const Json& choice : field["choices"]) words.insert(choice.get<std::string>());
  }
  for (const Json& preset : catalogue.value()["presets"]["scenarios"]) {
    words.insert(preset["id"].get<std::string>());
  }
  for (const std::string& word : words) std::printf("\"%s\"\n", word.c_str());
  return 0;
}
