// Fuzz target: texts of other programs, one or several, as a scenario; and that as theirs again.
#include "servecast/export.h"

#include <string>
#include <vector>

#include "base/base.h"
#include "base/printable.h"
#include "fuzz/inputs.h"
#include "servecast/import.h"

namespace servecast::fuzz {
namespace {

void CheckNotes(const std::vector<ImportNote>& notes) {
  for (const ImportNote& note : notes) {
    SERVECAST_CHECK(note.what == Printable(note.what), "a note is safe to show");
    SERVECAST_CHECK(!note.why.empty(), "a note says why");
  }
}

// An edit of one setting leaves a text that is read, and safe notes.
void CheckRewritten(const ImportText& text, const std::string& document) {
  const Result<std::string> wanted = ApplyOverrides(document, {"engine.max_num_seqs=77"});
  if (!wanted.ok() || !ParseScenario(wanted.value()).ok()) return;
  const Result<Rewritten> rewritten = Rewrite(text, wanted.value());
  if (!rewritten.ok()) return CheckIssues(rewritten.issues());
  CheckNotes(rewritten.value().left_out);
  const Imported again = Import({{text.name, rewritten.value().text}}, document);
  SERVECAST_CHECK(again.issues.empty(), "what is rewritten is understood");
}

void ReadTexts(std::string_view input) {
  std::vector<ImportText> texts;
  for (const std::string_view part : Parts(input)) texts.push_back({"a file", part});
  const Imported imported = Import(texts, *ScenarioPreset("llama-3.1-8b-h100-chat"));
  CheckNotes(imported.taken);
  CheckNotes(imported.ignored);
  if (imported.document.empty()) return CheckIssues(imported.issues);
  SERVECAST_CHECK(!imported.kinds.empty(), "what was found is said");
  const Result<Scenario> scenario = ParseScenario(imported.document);
  SERVECAST_CHECK(scenario.ok() == imported.issues.empty(), "issues are the document's");
  CheckRead(scenario);
  if (!scenario.ok()) return;
  if (texts.size() == 1) CheckRewritten(texts[0], imported.document);
  for (const ExportTarget& target : ExportTargets()) {
    const Result<Exported> exported = Export(imported.document, target.name);
    SERVECAST_CHECK(exported.ok() && !exported.value().text.empty(), "a scenario is exported");
    CheckNotes(exported.value().left_out);
    const Imported again = Import({{"", exported.value().text}}, imported.document);
    SERVECAST_CHECK(!again.document.empty(), "what is exported is understood");
  }
}

}  // namespace
}  // namespace servecast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  servecast::fuzz::ReadTexts(servecast::fuzz::TextOf(data, size));
  return 0;
}
