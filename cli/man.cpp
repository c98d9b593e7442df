// servecast man: the manual page, made of the helps, so that it says what they say.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "arguments.h"
#include "commands.h"
#include "servecast/report.h"

namespace servecast {
namespace {

constexpr const char* kManHelp =
    "servecast man\n"
    "\n"
    "Prints the manual page, the help of every command, in the form that man reads:\n"
    "  servecast man > servecast.1 && man ./servecast.1\n"
    "\n"
    "Exit 0: done. 2: bad input. 70: a bug of servecast.\n";

// A line as roff prints it unchanged.
std::string Literal(std::string_view line) {
  std::string out;
  // Else it would be a request.
  if (!line.empty() && (line[0] == '.' || line[0] == '\'')) out += "\\&";
  for (const char c : line) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

// Lines as they stand, from the left margin: they are up to 80 columns wide.
std::string Lines(std::string_view text) {
  std::string out = ".in 0\n.nf\n";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += Literal(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + ".fi\n.in\n";
}

std::string Section(std::string_view name, const std::string& help) {
  if (help.empty()) return "";
  return fmt::format(".SS \"servecast {}\"\n{}", Literal(name), Lines(help));
}

}  // namespace

int ManCommand(const Words& words) {
  if (!words.empty() && (words[0] == "--help" || words[0] == "-h")) return PrintHelp(kManHelp);
  if (!words.empty()) return Usage("man takes no words, found " + words[0]);
  std::string page = fmt::format(
      ".TH SERVECAST 1 \"\" \"servecast {}\"\n"
      ".SH NAME\nservecast \\- forecast how an LLM serving deployment behaves\n"
      ".SH SYNOPSIS\n\\fBservecast\\fR \\fICOMMAND\\fR [\\fIFILE\\fR|\\fIPRESET\\fR] "
      "[\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\n{}.SH COMMANDS\n",
      kEngineVersion, Lines(HelpOf({})));
  for (const std::string& name : CommandNames()) {
    page += Section(name, HelpOf({name}));
    if (name == "plan") page += Section("plan search", HelpOf({"plan", "search"}));
  }
  fmt::print("{}", page);
  return 0;
}

}  // namespace servecast
