// What a command answers, in the form that is asked for: text for a person, JSON, a line of JSON, a
// table, or single fields for a shell. Text, table and fields are made of the JSON.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "servecast/result.h"
#include "text/style.h"
#include "text/view.h"

namespace servecast {

// kAuto: text where stdout is a terminal, else what the command has always printed there.
enum class Form { kAuto, kText, kJson, kJsonl, kCsv };

// -o, --fields and --color, as typed.
struct AnswerWords {
  std::string form, fields, colour = "auto";
};

// How an answer is asked for.
struct AnswerForm {
  Form form = Form::kAuto;
  std::vector<std::string> fields;  // none: all
  Style style;
  bool terminal = false;  // stdout is one

  // Whether a person's text is printed.
  bool ForPeople() const {
    return fields.empty() && (form == Form::kText || (form == Form::kAuto && terminal));
  }
  // Whether what the command has always printed is.
  bool AsEver() const { return fields.empty() && form == Form::kAuto && !terminal; }
};

// nullopt: what is wrong with the words has been said on stderr.
std::optional<AnswerForm> FormOf(const AnswerWords& words);

struct Answer {
  std::string json;  // with its indentation; no line break at the end
  std::function<std::string(View, const Style&)> text;
  // Of CSV, and of fields: the rows; without, the answer is one.
  std::function<std::vector<View>(View)> rows = nullptr;
  // What a pipe has always got where that is not `json` with a line break.
  std::optional<std::string> as_ever = std::nullopt;
};

// An answer and issues that were not printed.
struct Collected {
  std::string text, json;
  Issues issues;
};
// Until it is called with nullptr, PrintAnswer and PrintIssues write there: the answer as text for
// a person, in UTF-8 without colours, and as JSON.
void CollectAnswers(Collected* into);

// On stdout. Returns an exit code: 0; kBadInput where a field is in no row.
int PrintAnswer(const AnswerForm& form, const Answer& answer);

// The lines of some answers, each one JSON, of which there may be many: the whole of a sweep.
int PrintLines(const AnswerForm& form, const std::vector<std::string>& lines,
               const std::function<std::string(const std::vector<View>&, const Style&)>& text);

}  // namespace servecast
