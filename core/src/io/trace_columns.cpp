// See trace_columns.h.
#include "io/trace_columns.h"

#include <algorithm>

#include "base/text.h"
#include "workload/workload.h"

namespace servecast {
namespace {

struct Known {
  const char* format;
  const char* label;
  std::array<std::string_view, 3> columns;  // arrival, prompt, output
  std::int64_t unit_ns;                     // 0: calendar times
  std::string_view mark;                    // another column that tells it; "": none
};

// BLIS: sim/workload of inference-sim/inference-sim, 27 columns and more.
constexpr Known kKnown[] = {
    {"servecast_csv",
     "Servecast CSV: columns",
     {"arrival_s", "input_tokens", "output_tokens"},
     kNsPerS,
     ""},
    {"azure_csv", "Azure CSV: columns", {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, 0, ""},
    {"vidur_csv",
     "Vidur CSV: columns",
     {"arrived_at", "num_prefill_tokens", "num_decode_tokens"},
     kNsPerS,
     ""},
    {"blis_tracev2",
     "BLIS TraceV2: columns",
     {"arrival_time_us", "input_tokens", "output_tokens"},
     1000,
     "request_id"},
};

// Names as `Plain` makes them, the most telling first.
constexpr std::string_view kArrivals[] = {"arrival",    "arrivaltime", "arrivedat", "arrivedtime",
                                          "timestamp",  "time",        "starttime", "requesttime",
                                          "submittime", "createdat",   "start",     "ts"};
constexpr std::string_view kPrompts[] = {
    "inputtokens",    "prompttokens",  "contexttokens", "numprefilltokens", "numprompttokens",
    "numinputtokens", "inputlength",   "promptlength",  "inputlen",         "promptlen",
    "contextlength",  "prefilltokens", "requesttokens", "inputtokencount",  "prompttokencount",
    "inputtoks",      "isl",           "input",         "prompt",           "context"};
constexpr std::string_view kOutputs[] = {"outputtokens",
                                         "completiontokens",
                                         "generatedtokens",
                                         "numdecodetokens",
                                         "numoutputtokens",
                                         "numgeneratedtokens",
                                         "outputlength",
                                         "completionlength",
                                         "outputlen",
                                         "completionlen",
                                         "generatedlength",
                                         "decodetokens",
                                         "responsetokens",
                                         "responselength",
                                         "responselen",
                                         "outputtokencount",
                                         "completiontokencount",
                                         "outputtoks",
                                         "osl",
                                         "output",
                                         "completion",
                                         "generated"};

struct Unit {
  std::string_view suffix;
  std::int64_t ns;
};
constexpr Unit kUnits[] = {{"", kNsPerS},
                           {"s", kNsPerS},
                           {"sec", kNsPerS},
                           {"seconds", kNsPerS},
                           {"ms", kNsPerMs},
                           {"msec", kNsPerMs},
                           {"milliseconds", kNsPerMs},
                           {"us", 1000},
                           {"usec", 1000},
                           {"microseconds", 1000},
                           {"ns", 1},
                           {"nanoseconds", 1}};

// "Context Tokens", "context_tokens" and "ContextTokens" are one name: lower-case letters, digits.
std::string PlainName(std::string_view name) {
  std::string plain;
  for (const char c : name.substr(0, 64)) {
    if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
  }
  return plain;
}

// Where the first of `wanted` that stands in `names` stands.
template <class Range>
std::optional<std::size_t> FirstOf(const Range& wanted, const std::vector<std::string>& names) {
  for (const std::string_view want : wanted) {
    const auto found = std::find(names.begin(), names.end(), want);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  return std::nullopt;
}

// Days from 1970-01-01 of a civil date (Howard Hinnant's days_from_civil).
std::int64_t DaysFromCivil(std::int64_t y, std::int64_t m, std::int64_t d) {
  y -= m <= 2 ? 1 : 0;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t year_of_era = y - era * 400;
  const std::int64_t day_of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719468;
}

// "2023-11-16 18:15:46.6805900", also with T between, Z or +00:00 behind. ns since 1970.
std::optional<TimeNs> ParseTimestamp(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' ||
      (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  if (text.back() == 'Z') text.remove_suffix(1);
  if (text.size() >= 25 && text.substr(text.size() - 6) == "+00:00") text.remove_suffix(6);
  const auto year = ParseCount(text.substr(0, 4)), month = ParseCount(text.substr(5, 2)),
             day = ParseCount(text.substr(8, 2)), hour = ParseCount(text.substr(11, 2)),
             minute = ParseCount(text.substr(14, 2));
  const auto second_ns = ParseDecimalNs(text.substr(17), kNsPerS);
  if (!year || !month || !day || !hour || !minute || !second_ns || *year < 2000 || *year > 2199 ||
      *month < 1 || *month > 12 || *day < 1 || *hour > 23 || *minute > 59 ||
      *second_ns >= 61 * kNsPerS) {
    return std::nullopt;
  }
  const std::int64_t days = DaysFromCivil(*year, *month, *day);
  const std::int64_t next_month =
      *month < 12 ? DaysFromCivil(*year, *month + 1, 1) : DaysFromCivil(*year + 1, 1, 1);
  if (days >= next_month) return std::nullopt;
  return ((days * 24 + *hour) * 60 + *minute) * 60 * kNsPerS + *second_ns;
}

const char* AllowedTimes(std::int64_t unit_ns) {
  if (unit_ns == kNsPerS) return "seconds from 0 to 4,611,686,018";
  if (unit_ns == kNsPerMs) return "ms from 0 to 4,611,686,018,427";
  if (unit_ns == 1000) return "us from 0 to 4,611,686,018,427,387";
  return "ns from 0 to 4,611,686,018,427,387,904";
}

}  // namespace

bool TraceColumns::ChooseKnown(const std::vector<std::string_view>& names) {
  const auto where = [&names](std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? std::nullopt
                                : std::optional(static_cast<std::size_t>(found - names.begin()));
  };
  for (const Known& known : kKnown) {
    if (!known.mark.empty() && !where(known.mark)) continue;
    for (std::size_t r = 0; r < 3; ++r) at_[r] = where(known.columns[r]);
    if (!at_[kArrival] || !at_[kPrompt] || !at_[kOutput]) continue;
    format_ = known.format;
    label_ = known.label;
    calendar_ = known.unit_ns == 0;
    if (known.unit_ns > 0) unit_ns_ = known.unit_ns;
    if (!known.mark.empty()) at_[kStatus] = where("status");
    return true;
  }
  at_ = {};
  return false;
}

bool TraceColumns::Choose(const std::vector<std::string_view>& names) {
  if (!ChooseKnown(names)) {
    std::vector<std::string> plain;
    plain.reserve(names.size());
    for (const std::string_view name : names) plain.push_back(PlainName(name));
    at_[kPrompt] = FirstOf(kPrompts, plain);
    at_[kOutput] = FirstOf(kOutputs, plain);
    for (const std::string_view base : kArrivals) {
      for (const Unit& unit : kUnits) {
        const std::array<std::string, 1> wanted = {std::string(base) + std::string(unit.suffix)};
        if (at_[kArrival]) break;
        at_[kArrival] = FirstOf(wanted, plain);
        if (!at_[kArrival]) continue;
        unit_ns_ = unit.ns;
        if (!unit.suffix.empty()) calendar_ = false;
      }
    }
  }
  for (std::size_t r = 0; r < kRoles; ++r) {
    if (at_[r]) names_[r] = std::string(names[*at_[r]].substr(0, 64));
  }
  // As its README says (HPMLL/BurstGPT); in another trace 0 tokens are a fault.
  failed_have_none_ = PlainName(names_[kOutput]) == "responsetokens";
  if (!at_[kPrompt]) {
    missing_ = "the prompt's tokens (input_tokens, prompt_tokens, context_tokens, prompt_len, ...)";
  } else if (!at_[kOutput]) {
    missing_ =
        "the output's tokens (output_tokens, completion_tokens, generated_tokens, output_len, ...)";
  }
  return at_[kPrompt] && at_[kOutput];
}

void TraceColumns::ChooseNamed(std::string arrival, std::string prompt, std::string output) {
  at_ = {0, 1, 2, std::nullopt};
  names_ = {std::move(arrival), std::move(prompt), std::move(output), ""};
  calendar_ = false;
}

bool TraceColumns::Failed(std::string_view status) const {
  return at_[kStatus] && !status.empty() && status != "ok";
}

std::optional<TimeNs> TraceColumns::Arrival(const TraceField& field, TraceLines& lines) {
  if (!at_[kArrival]) return 0;
  if (!calendar_) calendar_ = ParseTimestamp(field.text).has_value();
  const auto time = *calendar_ ? ParseTimestamp(field.text) : ParseDecimalNs(field.text, unit_ns_);
  if (!time) {
    lines.Add(
        field.column,
        Format("found {} as {}, allowed {}{}", Shown(field.text), names_[kArrival],
               *calendar_ ? "a time such as 2023-11-16 18:15:46.6805900" : AllowedTimes(unit_ns_),
               field.text.find(',') < field.text.size() ? ", with a point before decimals" : ""));
  }
  return time;
}

std::optional<std::int64_t> TraceColumns::PromptOf(std::string_view text) {
  const auto tokens = ParseCount(text);
  return tokens && *tokens >= 1 && *tokens <= kMostTokens ? tokens : std::nullopt;
}

bool TraceColumns::AddRow(const std::array<TraceField, kRoles>& fields, TraceLines& lines,
                          std::span<const std::uint64_t> hash_ids) {
  if (Failed(fields[kStatus].text) || (failed_have_none_ && fields[kOutput].text == "0")) {
    lines.AddFailed();
    return true;
  }
  const auto arrival = Arrival(fields[kArrival], lines);
  const auto prompt = lines.Tokens(fields[kPrompt].text, names_[kPrompt], fields[kPrompt].column),
             output = lines.Tokens(fields[kOutput].text, names_[kOutput], fields[kOutput].column);
  if (!arrival || !prompt || !output) return true;
  return lines.AddRow({*arrival, *prompt, *output}, hash_ids);
}

std::string TraceColumns::Reading() const { return Reading(label_); }

std::string TraceColumns::Reading(const char* label) const {
  const auto shown = [this](Role role) {
    const std::string quoted = Shown(names_[role]);
    return quoted.substr(1, quoted.size() - 2);
  };
  std::string text = Format("{} ", label);
  if (at_[kArrival]) {
    const char* unit = unit_ns_ == kNsPerS    ? "s"
                       : unit_ns_ == kNsPerMs ? "ms"
                       : unit_ns_ == 1000     ? "us"
                                              : "ns";
    text += shown(kArrival) + (calendar_.value_or(false) ? "" : Format(" ({})", unit)) + ", ";
  }
  return text + shown(kPrompt) + ", " + shown(kOutput);
}

std::string KnownHeaders() {
  std::string known;
  for (const Known& k : kKnown) {
    known += Format("{},{},{} or ", k.columns[0], k.columns[1], k.columns[2]);
  }
  return known +
         "other names for these, input_tokens,output_tokens alone, lines of JSON with timestamp, "
         "input_length and output_length, or a result of vllm bench serve";
}

}  // namespace servecast
