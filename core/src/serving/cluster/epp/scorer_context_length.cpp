// context-length-aware: endpoints whose label has a range of context lengths. Narrow ranges and
// room above the prompt score higher.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::scorer_context_length {
namespace {

using Kind = ContextRange::Kind;

bool Contains(const ContextRange& range, std::int64_t tokens) {
  return tokens >= range.least && tokens <= range.most;
}

double ScoreOf(const ContextRange& range, std::int64_t tokens) {
  if (range.kind == Kind::kNone) return 0.5;
  if (range.kind == Kind::kUnreadable) return 0;
  if (!Contains(range, tokens)) {
    const std::int64_t distance = tokens < range.least ? range.least - tokens : tokens - range.most;
    return 0.3 / (1 + Real(distance) / 1000);
  }
  const double width = Real(range.most - range.least);
  if (width == 0) return 1;
  const double narrow = 1 / (1 + width / 10000), room = Real(range.most - tokens) / width;
  return 0.3 + (0.7 * narrow + 0.3 * room) * 0.7;
}

class ContextLength final : public Plugin {
 public:
  explicit ContextLength(const Settings& settings) : filters_(settings.Flag("enableFiltering")) {}

  void Filter(const Request& request, Endpoints endpoints, Survivors& survivors) override {
    if (!filters_) return;
    KeepIf(endpoints, survivors, [&](const Endpoint& endpoint) {
      return endpoint.context.kind == Kind::kNone ||
             (endpoint.context.kind == Kind::kRange && Contains(endpoint.context, request.tokens));
    });
  }

  void Score(const Request& request, Endpoints endpoints, const Survivors& survivors,
             std::span<double> scores) override {
    ScoreEach(endpoints, survivors, scores,
              [&](const Endpoint& e) { return ScoreOf(e.context, request.tokens); });
  }

 private:
  bool filters_;
};

constexpr SettingSpec kSettings[] = {{.path = "enableFiltering", .kind = SettingSpec::Kind::kFlag},
                                     {.path = "label", .kind = SettingSpec::Kind::kText}};

}  // namespace

extern const PluginEntry kEntry = {
    .type = "context-length-aware",
    .help = "endpoints whose range of context lengths contains the prompt",
    .filters = true,
    .scores = true,
    .make = [](const Settings& settings) -> std::unique_ptr<Plugin> {
      return std::make_unique<ContextLength>(settings);
    },
    .settings = kSettings};

}  // namespace servecast::epp::scorer_context_length
