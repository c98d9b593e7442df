// The subcommands, each in a file of its name (validate in estimate.cpp, merge in sweep.cpp, init
// in show.cpp). From the words behind it to an exit code: 0 done, 2 bad input with every issue on
// stderr.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace servecast {

int RunCommand(const std::vector<std::string>& words);
int CompareCommand(const std::vector<std::string>& words);
int AdviseCommand(const std::vector<std::string>& words);
int DiagnoseCommand(const std::vector<std::string>& words);
int ExplainCommand(const std::vector<std::string>& words);
int PlanCommand(const std::vector<std::string>& words);
int SearchCommand(const std::vector<std::string>& words);  // behind "plan search"
int CalibrateCommand(const std::vector<std::string>& words);
int StepTraceCommand(const std::vector<std::string>& words);
int CheckCommand(const std::vector<std::string>& words);
int SweepCommand(const std::vector<std::string>& words);
int MergeCommand(const std::vector<std::string>& words);
int EstimateCommand(const std::vector<std::string>& words);
int ValidateCommand(const std::vector<std::string>& words);
int FitTraceCommand(const std::vector<std::string>& words);
int CardCommand(const std::vector<std::string>& words);
int ExportCommand(const std::vector<std::string>& words);
int RewriteCommand(const std::vector<std::string>& words);
int ImportCommand(const std::vector<std::string>& words);
int LinkCommand(const std::vector<std::string>& words);
int CatalogCommand(const std::vector<std::string>& words);
int ShowCommand(const std::vector<std::string>& words);
int InitCommand(const std::vector<std::string>& words);
int CompletionCommand(const std::vector<std::string>& words);
int CoefficientsCommand(const std::vector<std::string>& words);
int McpCommand(const std::vector<std::string>& words);
int ManCommand(const std::vector<std::string>& words);

// All of them, by the names that are typed.
std::vector<std::string> CommandNames();

// The questions of plan, by the names that are typed.
std::vector<std::string> PlanQuestions();

// The presets of a kind as a table, on stdout: all, or those whose id or name has the word.
int PrintPresets(std::string_view kind, std::string_view word);

// The help of a command, and of a question of plan that has its own; of no words, the overview. ""
// of a program beside this one.
std::string HelpOf(const std::vector<std::string>& words);

// The options of a command, and of a question of plan, from the tables that it reads them by; those
// of a program beside this one are not known here.
std::vector<std::string> OptionsOfCommand(const std::vector<std::string>& words);

}  // namespace servecast
