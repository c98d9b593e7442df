// What is refused and why, and what is not: tests/golden/refusals.json, on every compiler and as
// wasm. tests/wasm/refusals.test.mjs asks the page's module the same, so what one runs the other
// does not refuse. SERVECAST_UPDATE_GOLDENS=1 writes the issues anew.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/documents.h"
#include "gtest/gtest.h"

namespace servecast::testing::refusals_test {
namespace {

using Json = nlohmann::ordered_json;

const char* const kFile = SERVECAST_SOURCE_DIR "/tests/golden/refusals.json";

// A new preset is no new refusal: which there are is left out.
std::string WithoutPresets(const Issue& issue) {
  const bool lists = issue.path.size() > 7 && issue.path.substr(issue.path.size() - 7) == "/preset";
  const std::size_t at = lists ? issue.message.find(", allowed ") : std::string::npos;
  return at == std::string::npos ? issue.message : issue.message.substr(0, at) + ", allowed ...";
}

Json Stated(const Issues& issues) {
  Json stated = Json::array();
  for (const Issue& issue : issues) {
    Json row = {{"path", issue.path}, {"message", WithoutPresets(issue)}};
    if (!issue.kind.empty()) row["kind"] = issue.kind;
    stated.push_back(std::move(row));
  }
  return stated;
}

TEST(Refusals, OfEveryCase_AreThoseRecorded) {
  std::ifstream file(kFile, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  Json corpus = Json::parse(text.str(), nullptr, false);
  ASSERT_TRUE(corpus.is_object()) << kFile;
  const char* update = std::getenv("SERVECAST_UPDATE_GOLDENS");
  const bool updating = update != nullptr && std::string(update) == "1";
  int refused = 0;
  for (Json& row : corpus["cases"]) {
    Json document = corpus["base"];
    document.update(row["with"]);
    const Json stated = Stated(IssuesOf(document.dump()));
    if (updating) row["issues"] = stated;
    EXPECT_EQ(row["issues"], stated) << row["name"];
    refused += stated.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 15);
  if (!updating) return;
  std::ofstream out(kFile, std::ios::binary);
  out << "{\n  \"base\": " << corpus["base"].dump() << ",\n  \"cases\": [";
  const char* before = "\n    ";
  for (const Json& row : corpus["cases"]) {
    out << before << row.dump();
    before = ",\n    ";
  }
  out << "\n  ]\n}\n";
}

}  // namespace
}  // namespace servecast::testing::refusals_test
