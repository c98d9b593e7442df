// Figures of answers as words: the same digits as the verdict's sentences and the page have.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/style.h"
#include "text/table.h"
#include "text/view.h"

namespace servecast {

// ms as "26.7 ms" or "1.85 s"; "-" where there is none.
std::string Milliseconds(View ms);
// "25.8 to 28.0 ms"; "" where an end is missing. An open end: "25.8 ms and more".
std::string MillisecondRange(View low, View high);
// "71.8 %".
std::string ShareText(View share);
// Three digits: "55.1", "6,332".
std::string FigureText(View number);
// "$0.110".
std::string DollarText(View number);
// 0.8: "80 %", of bars.
std::string WholePercent(double share);
// "97 %", ">99 %", "<1 %".
std::string ProbabilityText(double probability);
// As a verdict has it (Sureness).
Tone ToneOfProbability(double probability);

// What a word of a state ("meets", "does_not_fit") says, and in which tone.
struct StateLook {
  std::string word;
  Tone tone = Tone::kPlain;
};
StateLook LookOfState(std::string_view state);

// "✓ MEETS  Llama-3.1-8B on 1 x H100 meets both targets ...".
std::string VerdictLine(const Style& style, std::string_view state, std::string_view sentence);

// "TTFT p99", "TPOT p99 of chat", "attainment".
std::string TargetName(View slo);
// The limit of a target: "200 ms", "99 %".
std::string TargetLimit(View slo);
// Its band, or its interval of sampling where it has none: "13.6 to 16.8 ms"; "" of neither.
std::string RangeOfTarget(View slo);

// "  name       text", with the name in a quiet tone; "" of no text.
std::string NamedLine(const Style& style, std::string_view name, std::string_view text);

// The end of a text: what to type next. `shown`: what stands behind the command's name, of words as
// a shell takes them. The first command goes on in further lines where it is too long for one, as
// shells read it; of others that would be "[same options]" stands for them.
struct Next {
  std::string_view command, why;
};
std::string NextLines(const Style& style, const std::vector<Next>& commands,
                      const std::string& shown);

}  // namespace servecast
