// For each request: what the gateway knows of each replica (facts.h) -> the scheduler's profile ->
// a draw among the chances of its picker -> the prompt's blocks go into the index, its tokens and
// the request into what is in flight.
#include "serving/cluster/epp/picker_router.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "serving/cluster/epp/approximate_index.h"
#include "serving/cluster/epp/flow_control.h"
#include "serving/cluster/epp/producers.h"
#include "serving/cluster/epp/profiles.h"
#include "serving/cluster/epp/scheduler.h"

namespace servecast::epp {
namespace {

// The survivor at `u` of the cumulated chances; the last possible one where rounding leaves none.
std::int32_t PickAt(const ProfileRun& run, double u) {
  double sum = 0;
  std::size_t chosen = 0;
  for (std::size_t s = 0; s < run.chances.size(); ++s) {
    if (run.chances[s] <= 0) continue;
    sum += run.chances[s];
    chosen = s;
    if (u < sum) break;
  }
  return run.survivors[chosen];
}

// Bytes of a request's body by tokens of its prompt: as English text has, about.
constexpr std::int64_t kBytesPerToken = 4;

class PickerRouter final : public Router, private FlowQueue {
 public:
  explicit PickerRouter(const RouterInput& input)
      : seed_(input.seed),
        spec_(*input.epp),
        scheduler_(ConfigOf(spec_)),
        prefix_(PrefixSettingsOf(ConfigOf(spec_))),
        load_(LoadSettingsOf(ConfigOf(spec_))),
        block_tokens_(BlockTokens(prefix_, input.replicas.front().kv_block_size)),
        index_(input.replicas.size()),
        inflight_(input.replicas.size(), load_.estimates_output),
        matched_(input.replicas.size()),
        endpoints_(input.replicas.size()) {
    for (std::size_t i = 0; i < endpoints_.size(); ++i) {
      endpoints_[i].id = static_cast<std::int32_t>(i);
      capacities_.push_back(prefix_.auto_tune ? input.replicas[i].kv_blocks : prefix_.lru_capacity);
    }
    if (!spec_.ControlsFlow()) return;
    detector_ = DetectorOf(ConfigOf(spec_));
    control_.emplace(FlowSettingsOf(ConfigOf(spec_)), *detector_);
  }

  std::int32_t Choose(const RoutedRequest& routed, const ReplicaLoads& loads) override {
    const Request request = Describe(routed);
    DescribeEndpoints(request, routed, loads);
    const Choice choice = scheduler_.Schedule(
        request, endpoints_, [&](const Profile&, const ProfileRun& run) -> std::int32_t {
          return PickAt(run, Uniform(seed_, Stream::kRouter, routed.number));
        });
    SERVECAST_CHECK(choice.primary >= 0, "a profile that is modelled leaves an endpoint");
    Send(routed, choice.primary);
    return choice.primary;
  }

  // Of an answer of one token the engine is done before that is delivered.
  void FirstToken(RequestId request) override {
    InflightLoad::Holding& holding = HoldingOf(request);
    if (holding.primary >= 0) inflight_.FirstChunk(holding);
  }
  void Left(RequestId request, std::int32_t) override { inflight_.Ended(HoldingOf(request)); }

  FlowQueue* flow_queue() override { return control_ ? this : nullptr; }

 private:
  bool Comes(const RoutedRequest& routed) override {
    return control_->Arrive({.number = routed.number,
                             .flow = routed.of_class,
                             .priority = routed.priority,
                             .bytes = routed.prompt_tokens * kBytesPerToken,
                             .arrival = routed.time,
                             .slo_ttft = routed.ttft_deadline});
  }
  RequestId Cycle(TimeNs time, TimeNs signals, const ReplicaLoads& loads) override {
    DescribeLoads(time - signals, loads);
    const std::int64_t request = control_->Cycle(endpoints_, time);
    return request < 0 ? kNoRequest : static_cast<RequestId>(request);
  }
  TimeNs Next(TimeNs look, TimeNs departure) const override {
    return control_->Next(look, departure);
  }
  bool SweepsAt(TimeNs time) const override { return control_->NextSweep() == time; }
  void Sweep(TimeNs time, std::vector<RequestId>& expired) override {
    std::vector<std::int64_t> numbers;
    control_->Sweep(time, numbers);
    for (const std::int64_t number : numbers) expired.push_back(static_cast<RequestId>(number));
  }
  void GaveUp(RequestId request) override { control_->End(request); }

  Request Describe(const RoutedRequest& routed) {
    keys_.clear();
    pieces_.clear();
    for (const ContentRange& range : routed.content) {
      pieces_.push_back({range.segment, range.first, range.last});
    }
    AppendKeys(prefix_, block_tokens_, /*context=*/0, pieces_, keys_);
    Request request;
    request.tokens = routed.prompt_tokens;
    request.session = routed.session;
    request.named_endpoint = At(sessions_, routed.session, kNone);
    request.total_blocks = BlocksOf(routed.prompt_tokens);
    request.block_tokens = block_tokens_;
    request.time = routed.time;
    return request;
  }

  // Blocks of a prompt that the index takes, whether or not others share them.
  std::int64_t BlocksOf(std::int64_t tokens) const {
    const std::int64_t blocks = CeilDiv(tokens, block_tokens_);
    if (prefix_.most_tokens > 0) return std::min(blocks, prefix_.most_tokens / block_tokens_);
    return prefix_.most_blocks > 0 ? std::min(blocks, prefix_.most_blocks) : blocks;
  }

  void DescribeLoads(TimeNs age, const ReplicaLoads& loads) {
    for (std::size_t i = 0; i < endpoints_.size(); ++i) {
      const auto id = static_cast<std::int32_t>(i);
      const EngineSignals& engine = loads.Engine(id);
      Endpoint& endpoint = endpoints_[i];
      endpoint.waiting = engine.waiting;
      endpoint.running = engine.running;
      endpoint.kv = Real(engine.kv_blocks_used) / Real(engine.kv_blocks);
      endpoint.age = age;
      endpoint.inflight_requests = inflight_.requests(id);
      endpoint.inflight_tokens = inflight_.tokens(id);
    }
  }

  void DescribeEndpoints(const Request& request, const RoutedRequest& routed,
                         const ReplicaLoads& loads) {
    DescribeLoads(routed.time - routed.signals, loads);
    std::fill(matched_.begin(), matched_.end(), 0);
    index_.Match(keys_, matched_);
    const std::int64_t output = EstimatedOutput(load_, request.tokens, 0);
    for (std::size_t i = 0; i < endpoints_.size(); ++i) {
      Endpoint& endpoint = endpoints_[i];
      endpoint.matched_blocks = matched_[i];
      endpoint.uncached_tokens = UncachedTokens(request, matched_[i]) + output;
    }
  }

  void Send(const RoutedRequest& routed, std::int32_t chosen) {
    const auto place = static_cast<std::size_t>(chosen);
    index_.Add(keys_, chosen, capacities_[place]);
    InflightLoad::Holding& holding = HoldingOf(routed.number);
    holding.primary = chosen;
    holding.primary_tokens = endpoints_[place].uncached_tokens;
    inflight_.Sent(holding);
    At(sessions_, routed.session, kNone) = chosen;
  }

  InflightLoad::Holding& HoldingOf(RequestId request) { return At(holdings_, request, {}); }

  template <class T>
  static T& At(std::vector<T>& of, std::int64_t number, const T& absent) {
    const auto at = static_cast<std::size_t>(number);
    if (at >= of.size()) of.resize(std::max(at + 1, of.size() * 2), absent);
    return of[at];
  }

  static constexpr std::int32_t kNone = static_cast<std::int32_t>(kUnknown);

  std::int64_t seed_;
  EppSpec spec_;
  Scheduler scheduler_;
  PrefixSettings prefix_;
  LoadSettings load_;
  std::int64_t block_tokens_;
  ApproximateIndex index_;
  InflightLoad inflight_;
  std::vector<std::int64_t> capacities_;         // of the index, by endpoint
  std::vector<InflightLoad::Holding> holdings_;  // by request
  std::vector<std::int32_t> sessions_;           // where their last requests went, or kNone
  std::unique_ptr<Plugin> detector_;
  std::optional<FlowControl> control_;  // none: it is off

  // Of the request that is placed.
  std::vector<TextPiece> pieces_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::int64_t> matched_;
  std::vector<Endpoint> endpoints_;
};

// Why not of a plugin that the profile refers to; `parameters` null: its defaults.
std::string WhyNot(std::string_view type, const EppParameters* parameters) {
  const auto of = [&](const char* path) -> const EppValue* {
    const auto found = parameters == nullptr ? EppParameters::const_iterator()
                                             : parameters->find(std::string_view(path));
    return parameters == nullptr || found == parameters->end() ? nullptr : &found->second;
  };
  if (type == "lora-affinity-scorer") return "needs the adapters that servers report";
  if (const EppValue* producer = of("prefixMatchInfoProducerName");
      producer != nullptr && *producer != EppValue(std::string("approx-prefix-cache-producer"))) {
    return "needs KV events of the servers: only approx-prefix-cache-producer is modelled";
  }
  if (type == "utilization-filter" && parameters != nullptr) {
    for (const auto& [path, value] : *parameters) {
      constexpr std::string_view kLimit = ".maxValue";
      if (!path.ends_with(kLimit)) continue;
      const std::string condition = path.substr(0, path.size() - kLimit.size());
      if (of((condition + ".metric").c_str()) == nullptr) return "has no metric in " + condition;
    }
  }
  const EppValue* falls_back = of("fallbackOnEmpty");
  if (type == "prefill-filter" || type == "concurrency-detector" ||
      (type == "utilization-filter" && (falls_back == nullptr || *falls_back == EppValue(false)))) {
    return "may leave no endpoint, and requests that a gateway turns away are not modelled";
  }
  return "";
}

// What would keep flow control from ending, or would count what no run does.
std::string NotModelled(const EppFlowControl& flow, const EppConfig& config) {
  if (FlowSettingsOf(config).ceilings == FlowSettings::Ceilings::kSoftReflective) {
    return flow.limits + " counts cycles of an idle picker, which are not modelled";
  }
  const PluginEntry& type = *TypeOf(config, flow.detector);
  const EppPlugin* plugin = PluginOf(config, flow.detector);
  if (plugin == nullptr || !plugin->parameters.contains("metricsStalenessThreshold")) return "";
  const Settings settings(type.settings, plugin->parameters);
  if (settings.Duration("metricsStalenessThreshold") >= FlowControl::kTick) return "";
  return flow.detector + " needs metricsStalenessThreshold of 1ms at least: shorter, a pool may " +
         "look saturated for ever";
}

}  // namespace

std::string NotModelled(const EppConfig& config) {
  if (config.profiles.size() > 1) {
    return "prefill and decode profiles are not modelled: this router serves requests whole";
  }
  if (config.flow) {
    const std::string reason = NotModelled(*config.flow, config);
    if (!reason.empty()) return reason;
  }
  if (config.profiles.empty()) return "";
  for (const EppReference& reference : config.profiles.front().plugins) {
    const EppPlugin* plugin = PluginOf(config, reference.plugin);
    const std::string reason = WhyNot(plugin == nullptr ? reference.plugin : plugin->type,
                                      plugin == nullptr ? nullptr : &plugin->parameters);
    if (!reason.empty()) return reference.plugin + " " + reason;
  }
  return "";
}

std::unique_ptr<Router> MakePickerRouter(const RouterInput& input) {
  return std::make_unique<PickerRouter>(input);
}

}  // namespace servecast::epp
