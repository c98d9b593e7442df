// Answers as a person reads them, each from its JSON: at most 80 columns, the verdict first, what
// to ask next at the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/style.h"
#include "text/view.h"

namespace servecast {

// `shown`: the scenario and its options as they were typed, for the commands to type next; `plans`:
// whether servecast plan takes the scenario.
std::string RunText(View report, const Style& style, const std::string& shown, bool plans);

std::string CheckText(View answer, const Style& style);
std::string ExplainText(View answer, const Style& style, const std::string& shown);
std::string DiagnoseText(View answer, const Style& style);
std::string AdviseText(View answer, const Style& style, const std::string& shown);
// `question`: by its name; `sentence`: the plan's own, which its JSON does not have.
std::string PlanText(View answer, const Style& style, std::string_view question,
                     const std::string& sentence, const std::string& shown);
std::string SearchText(View answer, const Style& style, const std::string& sentence,
                       const std::string& shown);
// Of the lines of a sweep.
std::string SweepText(const std::vector<View>& points, const Style& style);
std::string CompareText(View answer, const Style& style);

// Parts of it that other answers have, too.
std::string TargetTable(View report, const Style& style);

}  // namespace servecast
