// servecast sweep and merge: every combination of some values, a line of JSON each, in parts that
// may run anywhere and be put together again.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "band.h"
#include "base/hash.h"
#include "base/printable.h"
#include "commands.h"
#include "host/files.h"
#include "host/process.h"
#include "host/workers.h"
#include "io/axes.h"
#include "io/json_writer.h"
#include "progress.h"
#include "ranges.h"
#include "suggest.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr const char* kSweepHelp =
    "servecast sweep FILE|PRESET --over path=a,b,c [--over ...] [--shard i/n] [options]\n"
    "\n"
    "Runs every combination of the values and prints one line of JSON for each, in order, the "
    "last\n"
    "--over changing fastest: point (its number), of, sweep (what was asked, as a hash), over "
    "(its\n"
    "values), and report, the summary of servecast run, or issues where it cannot run.\n"
    "\n"
    "  --over path=a,b,c  values as in --set; in brackets, braces and quotes a comma is a comma;\n"
    "                     10..100:10 is 10, 20 ... 100, and 1..4 is 1, 2, 3, 4\n"
    "  --shard i/n        every n-th point beginning with the i-th, 1 <= i <= n; servecast merge\n"
    "                     puts the lines of all shards together: the same bytes as one run's\n"
    "  --threads N        points that run at once (default: all cores); the bytes do not depend on "
    "it\n"
    "  --once             one run a point: no intervals, faster\n"
    "  --sampling         intervals of sampling alone, in half the time\n"
    "  --set, --trace, --coefficients  as in run\n"
    "  -o FORM            text (a table; default on a terminal), jsonl (these lines; default "
    "else),\n"
    "                     json (a list of them) or csv (a row for each)\n"
    "  --fields A,B, --color WHEN  as in run\n"
    "\n"
    "Exit 0: some point ran. 2: bad input, or no point ran. 70: a bug of servecast.\n";

constexpr const char* kMergeHelp =
    "servecast merge FILE...\n"
    "\n"
    "Prints the lines of one sweep's shards in order of their points. The same point may be in\n"
    "several files if its line is the same; a last line that is cut short counts as missing. Exit "
    "2\n"
    "when points are missing, differ, or are of different sweeps: nothing is printed then.\n";

// Of the lines of a shard; WebAssembly can address no more than 4 GiB.
constexpr std::size_t kMostLines = static_cast<std::size_t>(
    std::min(std::uint64_t{1} << 36, std::uint64_t{std::numeric_limits<std::size_t>::max()}));
constexpr std::size_t kMostPoints = 10'000'000;

struct Shard {
  std::size_t index = 1, count = 1;
};

std::optional<Shard> ShardOf(const std::string& text) {
  Shard shard;
  const char *begin = text.data(), *end = begin + text.size();
  const auto first = std::from_chars(begin, end, shard.index);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '/') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, shard.count);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  if (shard.index < 1 || shard.index > shard.count) return std::nullopt;
  return shard;
}

class Sweep {
 public:
  Sweep(std::string document, Trace trace, std::vector<Axis> axes, Depth depth)
      : document_(std::move(document)),
        trace_(std::move(trace)),
        axes_(std::move(axes)),
        depth_(depth) {
    Hasher hasher;
    hasher.Add(kEngineVersion);
    hasher.Add(document_);
    hasher.Add(static_cast<std::uint64_t>(depth_));
    for (const TraceRow& row : trace_.rows) {
      hasher.Add(row.arrival_ns);
      hasher.Add(std::int64_t{row.prompt_tokens});
      hasher.Add(std::int64_t{row.output_tokens});
    }
    for (const Axis& axis : axes_) {
      hasher.Add(axis.path);
      for (const std::string& value : axis.values) hasher.Add(value);
      points_ = points_ > kMostPoints ? points_ : points_ * axis.values.size();
    }
    hash_ = HashText(hasher.Finish());
  }

  std::size_t points() const { return points_; }

  // Ends with a line break.
  std::string LineOf(std::size_t point) const {
    Words changes;
    JsonWriter out(false);
    out.BeginObject();
    out.Key("point"), out.Integer(static_cast<std::int64_t>(point));
    out.Key("of"), out.Integer(static_cast<std::int64_t>(points_));
    out.Key("sweep"), out.Text(hash_);
    out.Key("over"), out.BeginObject();
    std::size_t block = points_;
    for (const Axis& axis : axes_) {
      block /= axis.values.size();
      const std::string& value = axis.values[point / block % axis.values.size()];
      out.Key(axis.path), WriteAxisValue(value, out);
      changes.push_back(axis.path + "=" + value);
    }
    out.EndObject();
    const Result<std::string> report = ReportOf(changes);
    if (report.ok()) {
      out.Key("report"), out.Raw(report.value());
    } else {
      WriteIssues(report.issues(), out);
    }
    out.EndObject();
    return out.Take() + "\n";
  }

 private:
  Result<std::string> ReportOf(const Words& changes) const {
    const Result<std::string> text = ApplyOverrides(document_, changes);
    if (!text.ok()) return text;
    const Result<Scenario> scenario = ParseScenario(text.value());
    if (!scenario.ok()) return Issues(scenario.issues());
    const Result<Judgement> judged = Judge({}, scenario.value(), trace_, depth_, nullptr);
    if (!judged.ok()) return Issues(judged.issues());
    return judged.value().Json(ReportParts::kLine);
  }

  std::string document_;
  Trace trace_;
  std::vector<Axis> axes_;
  Depth depth_;
  std::size_t points_ = 1;
  std::string hash_;
};

// ---- merge ------------------------------------------------------------------------------------

// What a line says of itself, in the form that LineOf writes it.
struct Head {
  std::size_t point = 0, of = 0;
  std::string_view sweep;
};

std::optional<Head> HeadOf(std::string_view line) {
  Head head;
  const auto take = [&line](std::string_view expected) {
    if (line.substr(0, expected.size()) != expected) return false;
    line.remove_prefix(expected.size());
    return true;
  };
  const auto number = [&line](std::size_t& value) {
    const auto read = std::from_chars(line.data(), line.data() + line.size(), value);
    if (read.ec != std::errc()) return false;
    line.remove_prefix(static_cast<std::size_t>(read.ptr - line.data()));
    return true;
  };
  if (!take("{\"point\":") || !number(head.point) || !take(",\"of\":") || !number(head.of) ||
      !take(",\"sweep\":\"") || line.size() < 17 || head.point >= head.of ||
      head.of > kMostPoints || line[16] != '"') {
    return std::nullopt;
  }
  head.sweep = line.substr(0, 16);
  return head;
}

// Of a line: its point ran.
bool HasReport(const std::string& line) { return line.find(",\"report\":{") != std::string::npos; }

class Merge {
 public:
  // Issues, each with its file and line.
  Issues Add(const std::string& file, std::string_view text) {
    Issues issues;
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = text.find('\n');
      if (end == std::string_view::npos) return issues;  // cut short
      const std::string_view line = text.substr(0, end + 1);
      text.remove_prefix(end + 1);
      const std::string problem = Take(line);
      if (!problem.empty()) issues.push_back({fmt::format("{}:{}", file, number), problem});
    }
    return issues;
  }

  // Points that no file has, as ranges; at most some of them are named.
  std::string Missing() const {
    std::string text;
    std::size_t ranges = 0;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (!lines_[i].empty()) continue;
      const std::size_t from = i;
      while (i + 1 < lines_.size() && lines_[i + 1].empty()) ++i;
      if (++ranges > 10) return text + ", and more";
      text += text.empty() ? "" : ", ";
      text += from == i ? fmt::format("{}", from) : fmt::format("{} to {}", from, i);
    }
    return text;
  }

  const Words& lines() const { return lines_; }

 private:
  std::string Take(std::string_view line) {
    const std::optional<Head> head = HeadOf(line);
    if (!head) return "is no line of servecast sweep";
    if (sweep_.empty()) {
      sweep_ = head->sweep;
      lines_.resize(head->of);
    }
    if (head->sweep != sweep_ || head->of != lines_.size()) {
      return fmt::format("is of sweep {} with {} points, allowed one sweep: {} with {}",
                         head->sweep, head->of, sweep_, lines_.size());
    }
    std::string& mine = lines_[head->point];
    if (!mine.empty() && mine != line) {
      return fmt::format("point {} differs from an earlier line of it", head->point);
    }
    mine = line;
    return "";
  }

  std::string sweep_;
  Words lines_;  // by point; "": missing
};

}  // namespace

int SweepCommand(const Words& words) {
  Arguments args;
  std::vector<Axis> axes;
  std::string shard_text, threads_text;
  bool once = false, sampling = false;
  Options options{.help = kSweepHelp, .answers = true};
  options.flags = {{"--once", &once}, {"--sampling", &sampling}};
  options.values = {{"--shard", &shard_text}, {"--threads", &threads_text}};
  options.lists = {{"--over", [&axes](const std::string& text) -> std::string {
                      std::optional<Axis> axis = AxisOrRange(text);
                      if (!axis) return "--over: found " + text + kAllowedOver;
                      for (const Axis& other : axes) {
                        if (other.path == axis->path)
                          return "--over: found " + axis->path + " twice";
                      }
                      axes.push_back(*std::move(axis));
                      return "";
                    }}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  if (axes.empty()) return Usage("sweep needs --over path=a,b,c");
  for (const Axis& axis : axes) {
    if (auto meant = Suggestion(axis.path + "=" + axis.values[0])) return PrintIssues({*meant});
  }
  const std::optional<Shard> shard = ShardOf(shard_text.empty() ? "1/1" : shard_text);
  if (!shard) return Usage("--shard: found " + shard_text + ", allowed i/n with 1 <= i <= n");
  const std::optional<std::size_t> threads = ThreadsOf(threads_text);
  if (!threads) return Usage("--threads: found " + threads_text + ", allowed 1 to 1024");
  Result<Trace> trace = LoadTrace(args.trace);
  if (!trace.ok()) return PrintIssues(trace.issues());
  Result<std::string> document = LoadDocument(args, !trace.value().has_arrivals);
  if (document.ok()) document = ApplyOverrides(document.value(), {});  // is it an object at all?
  if (!document.ok()) return PrintIssues(document.issues());
  const Sweep sweep(std::move(document.value()), std::move(trace.value()), std::move(axes),
                    DepthOf(once, sampling));
  if (sweep.points() > kMostPoints) {
    return Usage(fmt::format("--over: allowed {} combinations at most", kMostPoints));
  }
  const std::size_t first = shard->index - 1;
  const std::size_t count =
      sweep.points() > first ? (sweep.points() - first - 1) / shard->count + 1 : 0;
  std::vector<std::string> lines;
  const bool at_once =
      args.form.AsEver() || (args.form.form == Form::kJsonl && args.form.fields.empty());
  std::size_t done = 0, ran = 0;
  Progress progress;
  const bool good = InOrder(
      count, *threads, [&](std::size_t i) { return sweep.LineOf(first + i * shard->count); },
      [&](const std::string& line) {
        ++done;
        if (HasReport(line)) ++ran;
        if (at_once) {
          progress.Wipe();
          fmt::print("{}", line);
          std::fflush(stdout);  // a shard that is stopped leaves whole lines
        } else {
          lines.push_back(line);
        }
        progress.Show(static_cast<double>(done) / static_cast<double>(count),
                      fmt::format("{} of {} points", done, count));
      });
  progress.Wipe();
  if (!good) {
    fmt::print(stderr, "servecast: a worker process ended before its work was done\n");
    return kBug;
  }
  if (!at_once) {
    if (const int printed = PrintLines(args.form, lines, SweepText); printed != 0) return printed;
  }
  return count > 0 && ran == 0 ? kBadInput : 0;
}

int MergeCommand(const Words& words) {
  Merge merge;
  Issues issues;
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      return PrintHelp(kMergeHelp);
    }
    const Result<std::string> text = ReadFile(word, kMostLines);
    const Issues found = text.ok() ? merge.Add(word, text.value()) : text.issues();
    issues.insert(issues.end(), found.begin(), found.end());
  }
  if (words.empty()) return Usage("no file given");
  if (issues.empty() && merge.lines().empty()) issues.push_back({"", "no file has a line"});
  if (const std::string missing = merge.Missing(); issues.empty() && !missing.empty()) {
    issues.push_back({"", "missing points: " + missing});
  }
  if (!issues.empty()) return PrintIssues(issues);
  for (const std::string& line : merge.lines()) fmt::print("{}", line);
  return 0;
}

}  // namespace servecast
