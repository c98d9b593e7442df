// Files as the command reads and writes them, and issues as it prints them.
#pragma once

#include <string>
#include <vector>

#include "servecast/result.h"
#include "servecast/trace.h"

namespace servecast {

class JsonWriter;

inline constexpr int kBadInput = 2;

// On stderr, one a line, safe for a terminal; after PrintIssuesAsJson() all on one line as JSON:
// {"issues":[{"path":"...","message":"..."}]}. Returns kBadInput.
int PrintIssues(const Issues& issues);
void PrintIssuesAsJson();
bool IssuesAreJson();
// Until it is called with nullptr, PrintIssues adds them there instead, unchanged.
void CollectIssues(Issues* into);
// The member "issues" of an object.
void WriteIssues(const Issues& issues, JsonWriter& out);

// "label, path", so that an issue says what it is of; "" says nothing.
Issues Labelled(const std::string& label, Issues issues);

// The issue of a file that is not there, or may not be read.
inline constexpr const char* kCannotOpen = "cannot be opened";
// Others of files that are read.
inline constexpr const char* kDamagedFile = "cannot be read: damaged gzip, or not a file";
inline constexpr const char* kShortFile = "the gzip data ends too early";
std::string TooLargeFile(std::size_t most_bytes);

// Decompressed when it is gzip; "-" is stdin.
Result<std::string> ReadFile(const std::string& path, std::size_t most_bytes);

// A preset by name, else a file; "-" is stdin, which is kept for whoever asks again.
Result<std::string> ScenarioText(const std::string& name);

// Decompressed when it is gzip; read in pieces. Says on stderr what it was read as. No trace of the
// path "".
Result<Trace> LoadTrace(const std::string& path);

// Paths below `folder`, at any depth, relative to it, ascending; none when it is no folder. Links
// to folders are followed, and no folder is read twice.
std::vector<std::string> FilesBelow(const std::string& folder);

}  // namespace servecast
