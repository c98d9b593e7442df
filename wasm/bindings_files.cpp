// What reads a person's files: traces, and coefficients of step times.
#include <emscripten/bind.h>

#include <string>

#include "bound_trace.h"
#include "io/coefficients.h"
#include "io/replaying.h"

namespace servecast {

std::string BoundTrace::Finish() {
  if (reader_) trace_ = reader_->Finish();
  reader_.reset();
  const bool good = trace_.ok();
  JsonWriter out(false);
  out.BeginObject();
  out.Key("format"), out.Text(good ? trace_.value().format : "");
  out.Key("reading"), out.Text(good ? trace_.value().reading : "");
  const std::size_t rows = good ? trace_.value().rows.size() : 0;
  out.Key("requests"), out.Integer(static_cast<std::int64_t>(rows));
  out.Key("has_arrivals"), out.Boolean(good && trace_.value().has_arrivals);
  out.Key("issues");
  WriteIssues(good ? Issues{} : trace_.issues(), out);
  out.EndObject();
  return out.Take();
}

std::string BoundTrace::Replaying(const std::string& document) const {
  return ReplayingDocument(document, !trace_.ok() || trace_.value().has_arrivals);
}

std::string BoundTrace::Fit() const {
  if (!trace_.ok()) return IssuesJson(trace_.issues());
  const Result<std::string> fit = FitTraceJson(trace_.value());
  return fit.ok() ? fit.value() : IssuesJson(fit.issues());
}

namespace {

std::string Coefficients(const std::string& document, const std::string& file) {
  return CoefficientsJson(document, file);
}

std::string WithSettings(const std::string& text, const emscripten::val& overrides) {
  const Result<std::string> changed =
      ApplyOverrides(text, emscripten::vecFromJSArray<std::string>(overrides));
  JsonWriter out(false);
  out.BeginObject();
  out.Key("text"), out.Text(changed.ok() ? changed.value() : "");
  out.Key("issues");
  WriteIssues(changed.ok() ? Issues{} : changed.issues(), out);
  out.EndObject();
  return out.Take();
}

EMSCRIPTEN_BINDINGS(servecast_files) {
  emscripten::function("coefficients", &Coefficients);
  emscripten::function("withSettings", &WithSettings);
  emscripten::class_<BoundTrace>("Trace")
      .constructor<std::string>()
      .function("add", &BoundTrace::Add)
      .function("finish", &BoundTrace::Finish)
      .function("replaying", &BoundTrace::Replaying)
      .function("fit", &BoundTrace::Fit);
}

}  // namespace
}  // namespace servecast
