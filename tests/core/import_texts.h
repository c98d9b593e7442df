// Texts that tests import: those of tests/import, and the shortest way to what comes of them.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/documents.h"
#include "servecast/import.h"
#include "servecast/scenario.h"
#include "testing/data_files.h"

namespace servecast::testing {

inline std::string ImportFile(const std::string& name) {
  const auto text = ReadFile(std::string(SERVECAST_SOURCE_DIR) + "/tests/import/" + name);
  EXPECT_TRUE(text) << name;
  return text.value_or("");
}

inline nlohmann::json JsonOf(const std::string& text) {
  return nlohmann::json::parse(text, nullptr, false);
}

inline std::string Listed(const Imported& imported) {
  std::string text = Listed(imported.issues);
  for (const auto& note : imported.taken) text += "took " + note.what + " (" + note.why + ")\n";
  for (const auto& note : imported.ignored) text += "left " + note.what + ": " + note.why + "\n";
  for (const auto& remark : imported.remarks) text += "note " + remark + "\n";
  for (const auto& warning : imported.warnings) text += "warning " + warning + "\n";
  return text;
}

// The resolved scenario of an imported document; the test fails where it has issues.
inline nlohmann::json ResolvedImport(const Imported& imported) {
  EXPECT_TRUE(imported.issues.empty()) << Listed(imported);
  const Result<Scenario> scenario = ParseScenario(imported.document);
  return scenario.ok() ? JsonOf(scenario.value().resolved_text) : nlohmann::json();
}

// Whether a remark, a note or an issue has these words.
inline bool Says(const Imported& imported, std::string_view words) {
  return Listed(imported).find(words) != std::string::npos;
}

// Whether a warning has these words.
inline bool Warns(const Imported& imported, std::string_view words) {
  for (const auto& warning : imported.warnings) {
    if (warning.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace servecast::testing
