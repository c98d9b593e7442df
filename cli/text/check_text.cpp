// servecast check for a person: its lines with marks, and the exit code.
#include <fmt/format.h>

#include "text/figures.h"
#include "text/texts.h"

namespace servecast {

std::string CheckText(View answer, const Style& style) {
  const auto tone_of = [](const std::string& outcome) {
    return outcome == "met" ? Tone::kGood : outcome == "missed" ? Tone::kBad : Tone::kUnsure;
  };
  std::string out;
  for (const View finding : answer["findings"].Elements()) {
    const std::string outcome = finding["outcome"].Words();
    const Tone tone = tone_of(outcome);
    const std::string head =
        style.In(tone, style.Mark(tone) + " " + fmt::format("{:<10}", outcome));
    out += Wrapped(style, head + " ", finding["name"].Words() + ": " + finding["text"].Words());
  }
  return out + fmt::format("exit {}\n", answer["exit"].Plain());
}

}  // namespace servecast
