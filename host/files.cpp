// See files.h.
#include "files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "host/packed.h"
#include "io/json_writer.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

constexpr std::size_t kMostScenarioBytes = std::size_t{4} << 20;
constexpr std::size_t kMostTraceBytes = std::size_t{1} << 30;

bool issues_are_json = false;
Issues* collected_issues = nullptr;

}  // namespace

std::string TooLargeFile(std::size_t most_bytes) {
  return fmt::format("larger than {} MiB when decompressed", most_bytes >> 20);
}

void PrintIssuesAsJson() { issues_are_json = true; }
bool IssuesAreJson() { return issues_are_json || collected_issues != nullptr; }
void CollectIssues(Issues* into) { collected_issues = into; }

void WriteIssues(const Issues& issues, JsonWriter& out) {
  out.Key("issues"), out.BeginArray();
  for (const Issue& issue : issues) {
    out.BeginObject();
    out.Key("path"), out.Text(issue.path);
    out.Key("message"), out.Text(issue.message);
    out.EndObject();
  }
  out.EndArray();
}

int PrintIssues(const Issues& issues) {
  if (collected_issues != nullptr) {
    collected_issues->insert(collected_issues->end(), issues.begin(), issues.end());
    return kBadInput;
  }
  if (issues_are_json) {
    JsonWriter out(false);
    out.BeginObject();
    WriteIssues(issues, out);
    out.EndObject();
    fmt::print(stderr, "{}\n", out.Take());
    return kBadInput;
  }
  for (const Issue& issue : issues) {
    fmt::print(stderr, "{}{}{}\n", Printable(issue.path), issue.path.empty() ? "" : ": ",
               Printable(issue.message));
  }
  return kBadInput;
}

Issues Labelled(const std::string& label, Issues issues) {
  for (Issue& issue : issues) {
    issue.path = label + (label.empty() || issue.path.empty() ? "" : ", ") + issue.path;
  }
  return issues;
}

Result<std::string> ReadFile(const std::string& path, std::size_t most_bytes) {
  std::string text;
  const std::optional<Issue> issue = ReadPieces(path, most_bytes, [&text](std::string_view piece) {
    text += piece;
    return true;
  });
  if (issue) return *issue;
  return text;
}

Result<std::string> ScenarioText(const std::string& name) {
  const auto preset = ScenarioPreset(name);
  if (preset) return std::string(*preset);
  // Standard input can be read once; a comparison asks for its document again and again.
  if (name == "-") {
    static const Result<std::string> piped = ReadFile(name, kMostScenarioBytes);
    return piped;
  }
  Result<std::string> text = ReadFile(name, kMostScenarioBytes);
  if (text.ok() || text.issues()[0].message != kCannotOpen) return text;
  const std::string near = NearestScenarioPreset(name);
  return Issue{name, "is neither a preset (see servecast catalog) nor a file that can be opened" +
                         (near.empty() ? "" : "; did you mean " + near + "?")};
}

Result<Trace> LoadTrace(const std::string& path) {
  if (path.empty()) return Trace{};
  const std::size_t slash = path.find_last_of('/');
  TraceReader reader(slash == std::string::npos ? path : path.substr(slash + 1));
  const std::optional<Issue> issue = ReadPieces(
      path, kMostTraceBytes, [&reader](std::string_view piece) { return reader.Add(piece); });
  if (issue) return *issue;
  Result<Trace> trace = reader.Finish();
  if (trace.ok()) {
    fmt::print(stderr, "{}: read as {}; {} requests\n", Printable(path),
               Printable(trace.value().reading), trace.value().rows.size());
    return trace;
  }
  return Labelled(path, trace.issues());
}

namespace {

namespace fs = std::filesystem;

// Files of `folder` and of the folders in it, but of none twice: links may go in circles.
void AddFilesOf(const fs::path& folder, const fs::path& root, std::set<fs::path>& seen,
                std::vector<std::string>& paths) {
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  if (error || !seen.insert(whole).second) return;
  std::vector<std::pair<bool, fs::path>> folders;  // those that are links last
  fs::directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) {
      folders.emplace_back(at->is_symlink(ignored), at->path());
    } else if (at->is_regular_file(ignored)) {
      paths.push_back(at->path().lexically_relative(root).generic_string());
    }
  }
  std::sort(folders.begin(), folders.end());
  for (const auto& [link, inner] : folders) AddFilesOf(inner, root, seen, paths);
}

}  // namespace

std::vector<std::string> FilesBelow(const std::string& folder) {
  std::set<fs::path> seen;
  std::vector<std::string> paths;
  AddFilesOf(folder, folder, seen, paths);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace servecast
