// See options.h.
#include "observe/options.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/printable.h"
#include "base/text.h"
#include "io/issues.h"

namespace servecast {
namespace {

constexpr std::int64_t kMostConcurrency = 10'000;
constexpr std::int64_t kMostRetries = 20;
constexpr std::int64_t kMostWarmUps = 1'000;
constexpr std::int64_t kMostSent = 200'000;             // requests
constexpr std::int64_t kMostPromptTokens = 4'000'000;   // of one
constexpr std::int64_t kMostOutputTokens = 10'000'000;  // of all: a result of 120 MB

// Reads words into options; what is wrong becomes an issue of the option's name.
class OptionReader {
 public:
  explicit OptionReader(const std::vector<std::string>& words) : words_(words) {
    Text("-o", out_.out);
    values_["--model"] = [this](const std::string& value) {
      if (Printable(value) != value) {
        Refuse("--model",
               "found " + ShownText(value) + ", allowed a name without control characters");
      }
      out_.model = value;
    };
    Text("--trace", out_.trace);
    values_["--set"] = [this](const std::string& value) { out_.overrides.push_back(value); };
    values_["--prompts"] = [this](const std::string& value) { Prompts(value); };
    values_["--salt"] = [this](const std::string& value) {
      std::int64_t salt = 0;
      if (Count("--salt", value, 0, 999'999'999'999'999, salt)) {
        out_.salt = static_cast<std::uint64_t>(salt);
      }
    };
    values_["--max-concurrency"] = [this](const std::string& value) {
      std::int64_t most = 0;
      if (Count("--max-concurrency", value, 1, kMostConcurrency, most)) out_.max_concurrency = most;
    };
    values_["--retries"] = [this](const std::string& value) {
      Count("--retries", value, 0, kMostRetries, out_.retries);
    };
    values_["--warm-up"] = [this](const std::string& value) {
      Count("--warm-up", value, 0, kMostWarmUps, out_.warm_up);
    };
    values_["--timeout"] = [this](const std::string& value) {
      if (const auto time = Time("--timeout", value)) out_.timeout = *time;
    };
    values_["--stall"] = [this](const std::string& value) { out_.stall = Time("--stall", value); };
  }

  Result<ObserveOptions> Read(const char* key) {
    for (at_ = 0; at_ < words_.size(); ++at_) Word(words_[at_]);
    if (out_.help) return out_;
    if (!url_) Refuse("URL", "found none, allowed http://HOST:PORT or https://HOST");
    if (url_) Url(*url_);
    if (out_.scenario.empty()) {
      Refuse("scenario", "found none, allowed a file, a preset, or - for stdin");
    }
    if (key != nullptr) Key(key);
    if (!issues_.empty()) return Bounded(std::move(issues_));
    return out_;
  }

 private:
  void Refuse(const std::string& what, const std::string& message) {
    issues_.push_back({what, message});
  }
  void Text(const std::string& name, std::string& to) {
    values_[name] = [&to](const std::string& value) { to = value; };
  }
  void Word(const std::string& word) {
    if (word == "--help" || word == "-h") {
      out_.help = true;
    } else if (const auto found = values_.find(word); found != values_.end()) {
      const bool last = at_ + 1 == words_.size();
      if (last || words_[at_ + 1].empty()) {
        Refuse(word, "found nothing behind it, allowed a value");
        at_ += last ? 0 : 1;
      } else {
        found->second(words_[++at_]);
      }
    } else if (word.size() > 1 && word[0] == '-') {
      std::vector<std::string> names;
      for (const auto& [name, read] : values_) names.push_back(name);
      const std::string near = NearestWord(word, names);
      Refuse(ShownText(word), "found an unknown option, allowed those of --help" +
                                  (near.empty() ? "" : "; did you mean " + near + "?"));
    } else if (!url_) {
      url_ = word;
    } else if (out_.scenario.empty()) {
      out_.scenario = word;
    } else {
      Refuse("scenario", "found another one, " + ShownText(word) + ", allowed one");
    }
  }
  bool Count(const std::string& name, const std::string& value, std::int64_t least,
             std::int64_t most, std::int64_t& to) {
    const auto count = ParseCount(value);
    if (!count || *count < least || *count > most) {
      Refuse(name, Format("found {}, allowed a whole number from {} to {}", ShownText(value), least,
                          most));
      return false;
    }
    to = *count;
    return true;
  }
  std::optional<TimeNs> Time(const std::string& name, const std::string& value) {
    const auto time = ParseDecimalNs(value, kNsPerS);
    if (!time || *time < kNsPerMs || *time > 86'400 * kNsPerS) {
      Refuse(name, "found " + ShownText(value) + ", allowed seconds from 0.001 to 86400");
      return std::nullopt;
    }
    return time;
  }
  void Prompts(const std::string& value) {
    if (value != "ids" && value != "words") {
      Refuse("--prompts", "found " + ShownText(value) + ", allowed ids or words");
    }
    out_.prompts = value == "words" ? PromptForm::kWords : PromptForm::kTokenIds;
  }
  void Url(std::string url) {
    const std::size_t scheme = url.find("://");
    const std::string name = LowerCase(url.substr(0, scheme));
    const std::string rest = scheme == std::string::npos ? "" : url.substr(scheme + 3);
    const std::string host = rest.substr(0, rest.find('/'));
    const bool plain =
        std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 127; });
    if (rest.find('@') !=
        std::string::npos) {  // The text has a password in it: it is not repeated.
      return Refuse("URL",
                    "found a name or a password in it, allowed none: a key is read from "
                    "OPENAI_API_KEY");
    }
    if ((name != "http" && name != "https") || host.empty() || !plain ||
        url.find_first_of("?#") != std::string::npos) {
      return Refuse("URL", "found " + ShownText(url) +
                               ", allowed http://HOST:PORT or https://HOST, with or without /v1");
    }
    for (const std::string end : {"/", "/completions", "/"}) {
      if (url.size() > end.size() && url.compare(url.size() - end.size(), end.size(), end) == 0) {
        url.resize(url.size() - end.size());
      }
    }
    // Where there is no path the API's own is meant.
    out_.url = url.find('/', scheme + 3) == std::string::npos ? url + "/v1" : url;
  }
  void Key(const std::string& key) {
    const bool plain =
        std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; });
    if (!plain) {
      Refuse("OPENAI_API_KEY", "found characters that no header may have, allowed a key alone");
    }
    out_.key = key;
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  std::map<std::string, std::function<void(const std::string&)>> values_;
  std::optional<std::string> url_;
  ObserveOptions out_;
  Issues issues_;
};

}  // namespace

Result<ObserveOptions> ReadObserveOptions(const std::vector<std::string>& words, const char* key) {
  return OptionReader(words).Read(key);
}

std::int64_t AskedTokens(const RequestTable& table, std::int64_t row) {
  const auto r = static_cast<std::size_t>(row);
  const std::int32_t output = table.output_tokens[r];
  return table.max_new_tokens.empty() ? output : std::min(output, table.max_new_tokens[r]);
}

Issues CheckRequests(const RequestTable& table) {
  Issues issues;
  if (table.size() > kMostSent) {
    issues.push_back(
        {"/workload/requests",
         Format("found {} requests, allowed up to {} to a server", table.size(), kMostSent)});
  }
  std::int64_t longest = 0, outputs = 0;
  for (std::int64_t row = 0; row < table.size(); ++row) {
    longest = std::max<std::int64_t>(longest, table.prompt_tokens[static_cast<std::size_t>(row)]);
    outputs += AskedTokens(table, row);
  }
  if (longest > kMostPromptTokens) {
    issues.push_back({"/workload/prompt_tokens",
                      Format("found a prompt of {} tokens, allowed up to {} to a server", longest,
                             kMostPromptTokens)});
  }
  if (outputs > kMostOutputTokens) {
    issues.push_back({"/workload/output_tokens",
                      Format("found {} tokens of all outputs, allowed up to {}, as the time of "
                             "each is kept",
                             outputs, kMostOutputTokens)});
  }
  return issues;
}

}  // namespace servecast
