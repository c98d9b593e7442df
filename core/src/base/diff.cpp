// See diff.h.
#include "base/diff.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace servecast {
namespace {

using Lines = std::vector<std::string_view>;

// With their ends.
Lines LinesOf(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// A line that stayed (' '), was taken out ('-') or put in ('+').
struct Step {
  char sign;
  std::string_view line;
};

// Of what is between the first and the last change, by the longest common subsequence.
void AddSteps(const Lines& a, const Lines& b, std::vector<Step>& steps) {
  constexpr std::size_t kMost = 1'000'000;
  const std::size_t rows = a.size() + 1, columns = b.size() + 1;
  std::vector<std::size_t> common(rows * columns <= kMost ? rows * columns : 0, 0);
  for (std::size_t i = a.size(); i-- > 0 && !common.empty();) {
    for (std::size_t j = b.size(); j-- > 0;) {
      common[i * columns + j] =
          a[i] == b[j] ? 1 + common[(i + 1) * columns + j + 1]
                       : std::max(common[(i + 1) * columns + j], common[i * columns + j + 1]);
    }
  }
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (!common.empty() && i < a.size() && j < b.size() && a[i] == b[j]) {
      steps.push_back({' ', a[i]}), ++i, ++j;
    } else if (i < a.size() && (j == b.size() || common.empty() ||
                                common[(i + 1) * columns + j] >= common[i * columns + j + 1])) {
      steps.push_back({'-', a[i++]});
    } else {
      steps.push_back({'+', b[j++]});
    }
  }
}

// "12,3": from 1 on; of no lines the one before.
std::string HunkRange(std::size_t begin, std::size_t count) {
  const std::size_t first = count == 0 ? begin : begin + 1;
  return count == 1 ? Format("{}", first) : Format("{},{}", first, count);
}

}  // namespace

std::string UnifiedDiff(std::string_view before, std::string_view after, std::string_view name) {
  constexpr std::size_t kAround = 3;
  const Lines a = LinesOf(before), b = LinesOf(after);
  if (a == b) return "";
  std::size_t same = 0, tail = 0;
  while (same < std::min(a.size(), b.size()) && a[same] == b[same]) ++same;
  const std::size_t most = std::min(a.size(), b.size()) - same;
  while (tail < most && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  std::vector<Step> steps;
  for (std::size_t i = 0; i < same; ++i) steps.push_back({' ', a[i]});
  const auto middle = [same, tail](const Lines& lines) {
    return Lines(lines.begin() + static_cast<std::ptrdiff_t>(same),
                 lines.end() - static_cast<std::ptrdiff_t>(tail));
  };
  AddSteps(middle(a), middle(b), steps);
  for (std::size_t i = a.size() - tail; i < a.size(); ++i) steps.push_back({' ', a[i]});

  // patch reads a name with a blank up to a tab.
  const char* tab = name.find(' ') == std::string_view::npos ? "" : "\t";
  std::string out = Format("--- {}{}\n+++ {}{}\n", name, tab, name, tab);
  std::size_t of_a = 0, of_b = 0;  // lines before steps[k]
  for (std::size_t k = 0; k < steps.size();) {
    if (steps[k].sign == ' ') {
      ++k, ++of_a, ++of_b;
      continue;
    }
    std::size_t end = k, last = k;  // up to a run of lines that stayed, longer than two surrounds
    for (; end < steps.size() && end - last <= 2 * kAround; ++end) {
      if (steps[end].sign != ' ') last = end;
    }
    end = std::min(last + 1 + kAround, steps.size());
    const std::size_t lead = std::min(kAround, k);
    const auto from = steps.begin() + static_cast<std::ptrdiff_t>(k - lead);
    const auto until = steps.begin() + static_cast<std::ptrdiff_t>(end);
    const auto count = [&](char sign) {
      return static_cast<std::size_t>(
          std::count_if(from, until, [sign](const Step& s) { return s.sign != sign; }));
    };
    out += Format("@@ -{} +{} @@\n", HunkRange(of_a - lead, count('+')),
                  HunkRange(of_b - lead, count('-')));
    for (auto step = from; step != until; ++step) {
      out += Format("{}{}", std::string(1, step->sign), step->line);
      if (!step->line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
    }
    for (; k < end; ++k) {
      of_a += steps[k].sign != '+' ? 1 : 0;
      of_b += steps[k].sign != '-' ? 1 : 0;
    }
  }
  return out;
}

}  // namespace servecast
