// What other programs say of a deployment, as a scenario, and a scenario as they read it.
#include <emscripten/bind.h>

#include <string>
#include <vector>

#include "base/diff.h"
#include "base/printable.h"
#include "bound_trace.h"
#include "servecast/export.h"
#include "servecast/import.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

void WriteNotes(const std::vector<ImportNote>& notes, JsonWriter& out) {
  out.BeginArray();
  for (const ImportNote& note : notes) {
    out.BeginObject();
    out.Key("what"), out.Text(Printable(note.what));
    out.Key("why"), out.Text(Printable(note.why));
    out.EndObject();
  }
  out.EndArray();
}

void WriteMeasured(const std::vector<MeasuredValue>& values, JsonWriter& out) {
  out.BeginArray();
  for (const MeasuredValue& value : values) {
    out.BeginObject();
    out.Key("name"), out.Text(value.name);
    out.Key("value"), out.Number(value.value);
    out.Key("from"), out.Text(Printable(value.from));
    out.EndObject();
  }
  out.EndArray();
}

void WriteTexts(const std::vector<std::string>& texts, JsonWriter& out) {
  out.BeginArray();
  for (const std::string& text : texts) out.Text(Printable(text));
  out.EndArray();
}

std::string ImportedJson(const std::string& text, const std::string& base) {
  const Imported imported = base.empty() ? Import(text) : Import({{"", text}}, base);
  JsonWriter out(false);
  out.BeginObject();
  out.Key("document"), out.Text(imported.document);
  out.Key("warnings"), WriteTexts(imported.warnings, out);
  out.Key("kinds"), WriteTexts(imported.kinds, out);
  out.Key("taken"), WriteNotes(imported.taken, out);
  out.Key("ignored"), WriteNotes(imported.ignored, out);
  out.Key("remarks"), WriteTexts(imported.remarks, out);
  out.Key("measured"), WriteMeasured(imported.measured, out);
  out.Key("said"), WriteTexts(imported.said, out);
  out.Key("assumed"), WriteTexts(imported.assumed, out);
  out.Key("issues"), WriteIssues(imported.issues, out);
  out.EndObject();
  return out.Take();
}

std::string ExportedJson(const std::string& text, const std::vector<ImportNote>& left_out,
                         const Issues& issues) {
  JsonWriter out(false);
  out.BeginObject();
  out.Key("text"), out.Text(text);
  out.Key("left_out"), WriteNotes(left_out, out);
  out.Key("issues"), WriteIssues(issues, out);
  out.EndObject();
  return out.Take();
}

std::string ExportTo(const std::string& document, const std::string& target) {
  const Result<Exported> exported = Export(document, target);
  if (!exported.ok()) return ExportedJson("", {}, exported.issues());
  return ExportedJson(exported.value().text, exported.value().left_out, {});
}

std::string RewriteText(const std::string& text, const std::string& document) {
  const Result<Rewritten> rewritten = Rewrite({"", text}, document);
  if (!rewritten.ok()) return ExportedJson("", {}, rewritten.issues());
  return ExportedJson(UnifiedDiff(text, rewritten.value().text, "imported"),
                      rewritten.value().left_out, {});
}

std::string Targets() {
  JsonWriter out(false);
  out.BeginArray();
  for (const ExportTarget& target : ExportTargets()) {
    out.BeginObject();
    out.Key("name"), out.Text(target.name);
    out.Key("help"), out.Text(target.help);
    out.EndObject();
  }
  out.EndArray();
  return out.Take();
}

std::string KindOfFile(const std::string& text, const std::string& name) {
  JsonWriter out(false);
  out.BeginObject();
  out.Key("kind"), out.Text(FileKind(text, name));
  out.EndObject();
  return out.Take();
}

EMSCRIPTEN_BINDINGS(servecast_doors) {
  emscripten::function("fileKind", &KindOfFile);
  emscripten::function("importText", &ImportedJson);
  emscripten::function("exportTo", &ExportTo);
  emscripten::function("rewriteText", &RewriteText);
  emscripten::function("exportTargets", &Targets);
}

}  // namespace
}  // namespace servecast
