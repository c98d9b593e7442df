// Texts of other programs as commands are given them: files, stdin, or the texts themselves.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer.h"
#include "servecast/import.h"
#include "servecast/result.h"

namespace servecast {

struct TextArguments {
  std::vector<std::string> files;  // or texts
  std::string scenario = "llama-3.1-8b-h100-chat";
  std::vector<std::string> overrides;  // --set, where the command answers
  AnswerWords answer;                  // likewise -o, --fields and --color
};

// An exit code when there is nothing to do: help was asked for and given, or the words are wrong.
// `answers`: the command takes --set, -o, --fields and --color.
std::optional<int> ReadTextArguments(const std::vector<std::string>& words,
                                     std::string_view command, const char* help, TextArguments& out,
                                     bool answers = false);

// An argument that is a text itself: it has a blank in it, and is no file.
bool IsText(const std::string& argument);
// Of a file, of stdin for -, or the argument itself.
Result<std::string> TextOf(const std::string& argument);

// What they say together. Issues: a file cannot be read, or nothing in them is understood.
Result<Imported> ImportTexts(const TextArguments& args);

// On stderr: warnings, and what was found, taken, left out, assumed and wrong.
void PrintNotes(const Imported& imported);

// Of a document with issues; 3 where it waits for one more answer, a model or a GPU.
int CodeOf(const Imported& imported);

}  // namespace servecast
