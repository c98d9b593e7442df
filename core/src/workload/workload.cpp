// See workload.h. A session at a time: whose it is, when it starts, what its turns say.
#include "workload/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "servecast/workload_spec.h"
#include "workload/adapters.h"
#include "workload/arrivals.h"
#include "workload/content.h"
#include "workload/image_drawer.h"
#include "workload/replay.h"

namespace servecast {

template class Boxed<WorkloadSpec>;
namespace {

// Sessions of one class, or of a workload without classes.
struct Kind {
  std::int64_t seed;  // of what is its own; the workload's when rows count alike
  LengthDrawer prompts, outputs;
  std::int64_t turns;
  double think_time_s;
  PrefixSpec prefix;
  std::int64_t first_group;  // of those that all kinds have together
  AdapterDrawer adapters;
  std::int32_t first_adapter;  // likewise; -1: it has none
  std::int64_t images;         // of a turn
  const ClassSpec* spec;       // nullptr: without classes
};

// Where sessions come from, one counting its own.
struct Source {
  Source(const Kind* k, ArrivalStream s) : kind(k), stream(std::move(s)) { Advance(); }
  Source(const Kind* k, UnderWayStream s) : kind(k), stream(s) { Advance(); }

  bool UnderWay() const { return stream.index() == 1; }
  void Advance() {
    next = std::visit([](auto& s) { return s.Next(); }, stream);
  }

  const Kind* kind;  // nullptr: by share
  std::variant<ArrivalStream, UnderWayStream> stream;
  std::int64_t started = 0;
  std::optional<TimeNs> next;
};

struct Session {
  const Kind* kind;
  std::int64_t number;  // in its source; below 0: it was under way at 0
  TimeNs start;         // of the first turn of the run; -1: when a client is free
  std::int64_t first_turn = 0;
  std::int32_t adapter = 0;  // 0: none
};

class Maker {
 public:
  Maker(const Scenario& scenario, const Trace& trace, const Replay* replay)
      : w_(*scenario.workload),
        seed_(scenario.seed),
        trace_(trace),
        replay_(replay),
        images_(MakeImageDrawer(scenario)) {
    MakeKinds();
    for (const Kind& kind : kinds_) {
      content_ |= kind.images > 0 && w_.images.distinct > 0;
      shares_ |= kind.spec == nullptr || !kind.spec->rate_per_s;
      content_ |= kind.turns > 1 || kind.prefix.groups > 0;
      adapters_ |= kind.first_adapter >= 0;
    }
    traced_adapters_ = !trace.adapters.empty() && ServesAdapters(scenario);
    adapters_ |= traced_adapters_;
    MakeSources();
  }

  // Before the first Fill.
  void Size(RequestTable& table);
  // At least so many rows more, if there are. False: a start is beyond what a run can hold.
  bool Fill(std::int64_t rows, RequestTable& table);
  std::size_t filled() const { return row_; }
  std::size_t size() const {
    return replay_ != nullptr ? replay_->positions.size() : static_cast<std::size_t>(w_.requests);
  }

 private:
  void MakeKinds();
  void MakeSources();
  void AddUnderWay(const Kind& kind, double sessions_per_s);
  std::optional<Session> NextSession();
  std::int64_t SaidBefore(const Session& session) const;
  std::int64_t ImageTokensOf(const Kind& kind) const {
    return images_ ? kind.images * images_->tokens() : 0;
  }
  const Kind& KindByShare(std::int64_t session);
  void SizeColumns(std::size_t n, RequestTable& table) const;
  void AddTurn(const Session& session, std::int64_t turn, std::size_t row, RequestTable& table);
  std::int32_t AdapterOf(const Session& session) const;
  void AddSegment(const Session& session, RequestTable& table);
  std::int32_t PrefixOf(std::int64_t group, std::int32_t adapter, RequestTable& table);
  static ImageDrawer::Session OwnImages(const Session& session);

  const WorkloadSpec& w_;
  const std::int64_t seed_;
  const Trace& trace_;
  const Replay* replay_;                       // nullptr: arrivals are not of the trace
  const std::shared_ptr<ImageDrawer> images_;  // nullptr: no request has any
  std::vector<Kind> kinds_;
  std::vector<double> until_;  // running sums of the shares
  std::size_t last_shared_ = 0;
  bool shares_ = false, content_ = false, adapters_ = false, traced_adapters_ = false;
  std::int64_t groups_ = 0;
  // Segments of a group's prefix as an adapter computes it.
  std::map<std::pair<std::int64_t, std::int32_t>, std::int32_t> adapted_;
  std::vector<Source> sources_;
  std::int64_t started_ = 0;  // sessions without a source
  std::size_t row_ = 0;       // the next to fill
};

void Maker::MakeKinds() {
  groups_ = w_.prefix.groups;
  std::int64_t adapters = w_.adapters.count;
  const auto or_workloads = [](const LengthSpec& own, const LengthSpec& workloads) {
    return LengthDrawer(own.distribution == LengthDistribution::kWorkload ? workloads : own);
  };
  const auto add = [&](std::int64_t seed, const ClassSpec& c, const ClassSpec* spec) {
    const PrefixSpec prefix = {c.prefix_groups.value_or(w_.prefix.groups),
                               c.prefix_tokens.value_or(w_.prefix.tokens)};
    const AdapterSpec lora = {c.adapters.value_or(w_.adapters.count),
                              c.adapter_theta.value_or(w_.adapters.theta)};
    const std::int64_t first_adapter = lora.count == 0 ? -1 : c.adapters ? adapters : 0;
    kinds_.push_back(
        {seed, or_workloads(c.prompt_tokens, w_.prompt_tokens),
         or_workloads(c.output_tokens, w_.output_tokens), c.turns.value_or(w_.sessions.turns),
         c.think_time_s.value_or(w_.sessions.think_time_s), prefix, c.prefix_groups ? groups_ : 0,
         AdapterDrawer(lora), static_cast<std::int32_t>(first_adapter),
         c.images_per_request.value_or(w_.images.per_request), spec});
    if (c.prefix_groups) groups_ += *c.prefix_groups;
    if (c.adapters) adapters += *c.adapters;
  };
  if (w_.classes.empty()) add(seed_, ClassSpec{}, nullptr);
  for (const ClassSpec& c : w_.classes) {
    Hasher name;
    name.Add(std::string_view(c.name));
    const auto own = static_cast<std::int64_t>(name.Finish());
    const bool counts_alone = c.rate_per_s || c.turns;
    add(counts_alone ? static_cast<std::int64_t>(RandomBits(seed_, Stream::kOwnDraws, own)) : seed_,
        c, &c);
    until_.push_back((until_.empty() ? 0 : until_.back()) + (c.rate_per_s ? 0 : c.share));
    if (!c.rate_per_s) last_shared_ = until_.size() - 1;
  }
}

void Maker::MakeSources() {
  if (!HasRate(w_.arrivals.process)) return;
  if (shares_) {
    sources_.push_back({nullptr, ArrivalStream(w_.arrivals, w_.arrivals.rate_per_s, seed_)});
  }
  const double shares = until_.empty() ? 0 : until_.back();
  for (const Kind& kind : kinds_) {
    if (kind.spec == nullptr) {
      AddUnderWay(kind, w_.arrivals.rate_per_s);
    } else if (!kind.spec->rate_per_s) {
      AddUnderWay(kind, w_.arrivals.rate_per_s * kind.spec->share / shares);
    } else {
      sources_.push_back({&kind, ArrivalStream(w_.arrivals, *kind.spec->rate_per_s, kind.seed)});
      AddUnderWay(kind, *kind.spec->rate_per_s);
    }
  }
}

void Maker::AddUnderWay(const Kind& kind, double sessions_per_s) {
  if (!BeginsUnderWay(w_.arrivals) || kind.turns <= 1 || kind.think_time_s <= 0) return;
  const double conversations =
      sessions_per_s * static_cast<double>(kind.turns - 1) * kind.think_time_s;
  const std::int64_t seed =
      static_cast<std::int64_t>(RandomBits(kind.seed, Stream::kUnderWay, &kind - kinds_.data()));
  sources_.push_back({&kind, UnderWayStream(conversations, kind.think_time_s, seed)});
}

const Kind& Maker::KindByShare(std::int64_t session) {
  if (kinds_.size() == 1) return kinds_[0];
  const double u = Uniform(seed_, Stream::kClass, session);
  const auto at = std::upper_bound(until_.begin(), until_.end(), u * until_.back());
  return kinds_[std::min(static_cast<std::size_t>(at - until_.begin()), last_shared_)];
}

std::optional<Session> Maker::NextSession() {
  if (sources_.empty()) {
    const std::int64_t session = started_++;
    const bool waits =
        w_.arrivals.process == ArrivalProcess::kClosedLoop && session >= w_.arrivals.concurrency;
    const Kind& kind = KindByShare(session);
    TimeNs start = waits ? -1 : 0;
    if (replay_ != nullptr) {
      const std::int64_t position = replay_->positions[static_cast<std::size_t>(session)];
      start = ReplayedArrival(w_.arrivals, trace_, *replay_, position);
    } else if (w_.arrivals.process == ArrivalProcess::kClosedLoop &&
               w_.arrivals.start == LoadStart::kSpread && !waits) {
      start =
          DrawStart(kind.seed, session, {w_.arrivals.think_time_s, kind.turns, kind.think_time_s});
    }
    return Session{&kind, session, start};
  }
  Source* first = nullptr;
  for (Source& source : sources_) {
    if (source.next && (first == nullptr || *source.next < *first->next)) first = &source;
  }
  if (first == nullptr) return std::nullopt;
  const std::int64_t count = first->started++;
  const Kind& kind = first->kind != nullptr ? *first->kind : KindByShare(count);
  Session session{&kind, count, *first->next};
  if (first->UnderWay()) {
    // A number that no other session with the same seed has.
    const auto kinds = static_cast<std::int64_t>(kinds_.size());
    session.number = -1 - (count * kinds + (&kind - kinds_.data()));
    const double u = Uniform(kind.seed, Stream::kUnderWay, session.number);
    session.first_turn = std::min(
        1 + static_cast<std::int64_t>(u * static_cast<double>(kind.turns - 1)), kind.turns - 1);
  }
  first->Advance();
  return session;
}

// Tokens that the turns before the run's first one have come to, shared beginning and all.
std::int64_t Maker::SaidBefore(const Session& session) const {
  const Kind& kind = *session.kind;
  std::int64_t said = kind.prefix.groups > 0 ? kind.prefix.tokens : 0;
  for (std::int64_t turn = 0; turn < session.first_turn; ++turn) {
    const std::int64_t key = session.number * kind.turns + turn;
    const std::int64_t prompt = kind.prompts.Draw({kind.seed, false, key}, 0, 0);
    said = std::min(said + ImageTokensOf(kind) + prompt, kMostTokens);
    said += kind.outputs.Draw({kind.seed, true, key}, 0, prompt);
  }
  return said;
}

// The columns that some class needs.
void Maker::SizeColumns(std::size_t n, RequestTable& table) const {
  bool turns = false, priorities = false, deadlines = false, timeouts = false, drafts = false;
  for (const Kind& kind : kinds_) {
    turns |= kind.turns > 1;
    if (kind.spec == nullptr) continue;
    priorities |= kind.spec->priority != 0;
    deadlines |= kind.spec->ttft_deadline_ms.has_value();
    timeouts |= kind.spec->timeout_s.has_value();
    drafts |= kind.spec->acceptance_length.has_value();
  }
  const auto size = [n](bool wanted, auto& column) {
    if (wanted) column.resize(n);
  };
  size(true, table.arrival);
  size(true, table.prompt_tokens);
  size(true, table.output_tokens);
  size(turns, table.think);
  const bool capped = CapsClients(w_.arrivals);
  size(w_.arrivals.process == ArrivalProcess::kClosedLoop || capped, table.pause);
  size(capped, table.due);
  size(priorities, table.priority);
  size(deadlines, table.ttft_deadline);
  size(timeouts, table.timeout);
  size(drafts, table.acceptance_length);
  size(adapters_, table.lora);
  size(!trace_.accepted_drafts.empty(), table.accepted_drafts);
  size(!w_.classes.empty(), table.of_class);
  size(content_, table.content);
  size(images_ != nullptr, table.images_until);
}

// A trace's own, or drawn.
std::int32_t Maker::AdapterOf(const Session& session) const {
  if (traced_adapters_) {
    const std::size_t at =
        replay_ != nullptr ? static_cast<std::size_t>(replay_->positions[row_]) : row_;
    return trace_.adapters[at % trace_.adapters.size()];
  }
  const Kind& kind = *session.kind;
  if (kind.first_adapter < 0) return 0;
  return kind.first_adapter + kind.adapters.Draw(kind.seed, session.number);
}

// Keys and values are of the weights that made them, so no two adapters share any.
std::int32_t Maker::PrefixOf(std::int64_t group, std::int32_t adapter, RequestTable& table) {
  if (adapter == 0) return static_cast<std::int32_t>(group);
  const auto [at, is_new] =
      adapted_.try_emplace({group, adapter}, static_cast<std::int32_t>(table.segments.size()));
  if (is_new) table.segments.emplace_back();
  return at->second;
}

void Maker::AddSegment(const Session& session, RequestTable& table) {
  const PrefixSpec& prefix = session.kind->prefix;
  ContentSegment segment;
  if (prefix.groups > 0) {
    const double u = Uniform(session.kind->seed, Stream::kPrefixGroup, session.number);
    const std::int64_t group = std::min(
        static_cast<std::int64_t>(u * static_cast<double>(prefix.groups)), prefix.groups - 1);
    segment = {PrefixOf(session.kind->first_group + group, session.adapter, table),
               static_cast<std::int32_t>(prefix.tokens)};
  }
  if (images_) images_->Extend(OwnImages(session), segment, table);
  table.segments.push_back(segment);
}

// Whose the images of a session are.
ImageDrawer::Session Maker::OwnImages(const Session& session) {
  const Kind& kind = *session.kind;
  return {kind.seed, session.number * kind.turns, kind.images, session.first_turn};
}

void Maker::AddTurn(const Session& session, std::int64_t turn, std::size_t row,
                    RequestTable& table) {
  const Kind& kind = *session.kind;
  const std::int64_t key = session.number * kind.turns + turn;
  const bool first = turn == session.first_turn;
  table.arrival[row] = first ? session.start : -1;
  if (!table.think.empty()) {
    table.think[row] = first ? -1 : DrawThinkTime(kind.seed, key, kind.think_time_s);
  }
  if (!table.due.empty()) {
    const bool waits = static_cast<std::int64_t>(row) >= *w_.arrivals.max_concurrency;
    table.due[row] = session.start;
    table.pause[row] = waits ? 0 : -1;
    if (waits) table.arrival[row] = -1;
  } else if (!table.pause.empty()) {
    const bool waits = first && session.start < 0;
    table.pause[row] = waits ? DrawThinkTime(kind.seed, key, w_.arrivals.think_time_s) : -1;
  }
  TraceRow traced;
  if (!trace_.rows.empty()) {
    const std::size_t position =
        replay_ != nullptr ? static_cast<std::size_t>(replay_->positions[row]) : row;
    traced = trace_.rows[position % trace_.rows.size()];
    if (!trace_.accepted_drafts.empty()) {
      table.accepted_drafts[row] = trace_.accepted_drafts[position % trace_.rows.size()];
    }
  }
  const std::int64_t prompt = kind.prompts.Draw({kind.seed, false, key}, traced.prompt_tokens, 0);
  const std::int64_t output =
      kind.outputs.Draw({kind.seed, true, key}, traced.output_tokens, prompt);
  // What it sends: the shared beginning, and all that was said before.
  const std::int64_t before =
      first ? SaidBefore(session)
            : std::int64_t{table.prompt_tokens[row - 1]} + table.output_tokens[row - 1];
  table.prompt_tokens[row] =
      static_cast<std::int32_t>(std::min(before + ImageTokensOf(kind) + prompt, kMostTokens));
  if (images_) images_->Add(OwnImages(session), turn, before, row, table);
  table.output_tokens[row] = static_cast<std::int32_t>(output);
  if (content_) table.content[row] = static_cast<std::int32_t>(table.segments.size()) - 1;
  if (adapters_) table.lora[row] = session.adapter;
  if (kind.spec == nullptr) return;
  const auto in_ns = [](const std::optional<double>& value, double unit_ns) {
    return value ? NearestNs(*value * unit_ns) : kNever;
  };
  const ClassSpec& c = *kind.spec;
  table.of_class[row] = static_cast<std::uint8_t>(&c - w_.classes.data());
  if (!table.priority.empty()) table.priority[row] = static_cast<std::int32_t>(c.priority);
  if (!table.ttft_deadline.empty()) table.ttft_deadline[row] = in_ns(c.ttft_deadline_ms, 1e6);
  if (!table.timeout.empty()) table.timeout[row] = in_ns(c.timeout_s, 1e9);
  if (!table.acceptance_length.empty()) {
    table.acceptance_length[row] = c.acceptance_length.value_or(0);
  }
}

void Maker::Size(RequestTable& table) {
  SizeColumns(size(), table);
  if (content_) table.segments.resize(static_cast<std::size_t>(groups_));
}

bool Maker::Fill(std::int64_t rows, RequestTable& table) {
  const std::size_t n = size();
  const std::size_t until = row_ + std::min(n - row_, static_cast<std::size_t>(rows));
  while (row_ < until) {
    std::optional<Session> session = NextSession();
    if (!session) return false;
    session->adapter = AdapterOf(*session);
    if (content_) AddSegment(*session, table);
    std::int64_t turn = session->first_turn;
    for (; turn < session->kind->turns && row_ < n; ++turn, ++row_) {
      AddTurn(*session, turn, row_, table);
    }
  }
  return true;
}

// At the mean, what is sure not to fit the time of a run.
std::optional<Issue> RateBeyondARun(const WorkloadSpec& w) {
  constexpr double kMostSeconds =
      1e8;  // about three years; gaps of a million runs stay in int64 ns
  const ArrivalSpec& a = w.arrivals;
  const bool as_it_is = a.profile == RateProfile::kFlat && a.spikes.empty();
  const bool alone = std::none_of(w.classes.begin(), w.classes.end(),
                                  [](const ClassSpec& c) { return c.rate_per_s || c.turns; });
  const double sessions = static_cast<double>(CeilDiv(w.requests, w.sessions.turns));
  if (!HasRate(a.process) || !as_it_is || !alone || sessions / a.rate_per_s <= kMostSeconds)
    return std::nullopt;
  return Issue{"/workload/arrivals/rate_per_s",
               Format("{} {} at this rate take more than {} s, the longest that a run can hold",
                      NumberText(sessions), w.sessions.turns > 1 ? "sessions" : "requests",
                      NumberText(kMostSeconds))};
}

// What does not go together with a trace whose hash ids say what its prompts share.
std::optional<Issue> OtherContent(const WorkloadSpec& w) {
  const auto issue = [](std::string path, const std::string& found, const char* allowed) {
    return Issue{std::move(path), Format("found {}, allowed {} with this trace: its hash ids "
                                         "say what its prompts share",
                                         found, allowed)};
  };
  if (w.prefix.groups > 0) {
    return issue("/workload/prefix/groups", Format("{}", w.prefix.groups), "0");
  }
  if (w.adapters.count > 0) {
    return issue("/workload/adapters/count", Format("{}", w.adapters.count), "0");
  }
  if (w.HasImages()) return issue("/workload/images/per_request", "images", "0");
  for (std::size_t i = 0; i < w.classes.size(); ++i) {
    const ClassSpec& c = w.classes[i];
    const std::string path = Format("/workload/classes/{}/", i);
    if (c.adapters.value_or(0) > 0) {
      return issue(path + "adapters", Format("{}", *c.adapters), "0");
    }
    if (c.prefix_groups.value_or(0) > 0) {
      return issue(path + "prefix_groups", Format("{}", *c.prefix_groups), "0");
    }
    if (c.prompt_tokens.distribution != LengthDistribution::kWorkload) {
      return issue(path + "prompt_tokens", "lengths of its own", "the workload's");
    }
  }
  return std::nullopt;
}

// Adapters of a trace are served by every pool, or by none, which then are all the model itself.
std::optional<Issue> PoolWithoutSeats(const Scenario& s) {
  if (!ServesAdapters(s)) return std::nullopt;
  for (std::size_t i = 0; i < s.cluster.pools.size(); ++i) {
    const PoolSpec& pool = s.cluster.pools[i];
    if ((pool.engine ? *pool.engine : s.engine).max_loras > 0) continue;
    return Issue{Format("/cluster/pools/{}/engine/max_loras", i),
                 "found 0, allowed from 1 up: the trace has adapters, and other pools serve them"};
  }
  return std::nullopt;
}

}  // namespace

struct RequestDrawing::State {
  State(const Scenario& s, const Trace& t, bool arrivals_from_trace, Replay r)
      : scenario(s),
        trace(t),
        replay(std::move(r)),
        maker(s, t, arrivals_from_trace ? &replay : nullptr) {}

  const Scenario& scenario;
  const Trace& trace;
  Replay replay;
  Maker maker;
  RequestTable table;
  bool content_from_trace = false, too_late = false;
};

RequestDrawing::RequestDrawing(std::unique_ptr<State> state) : state_(std::move(state)) {}
RequestDrawing::RequestDrawing(RequestDrawing&&) noexcept = default;
RequestDrawing& RequestDrawing::operator=(RequestDrawing&&) noexcept = default;
RequestDrawing::~RequestDrawing() = default;

Result<RequestDrawing> RequestDrawing::Begin(const Scenario& s, const Trace& trace) {
  const WorkloadSpec& w = *s.workload;
  const bool arrivals_from_trace = w.arrivals.process == ArrivalProcess::kTrace;
  const bool prompts_from_trace = w.prompt_tokens.distribution == LengthDistribution::kTrace;
  const bool any_trace = arrivals_from_trace || prompts_from_trace ||
                         w.output_tokens.distribution == LengthDistribution::kTrace;
  if (any_trace && trace.rows.empty()) {
    return Issue{"/workload", "the scenario replays a trace, and no trace was given",
                 "trace_missing"};
  }
  if (arrivals_from_trace && !trace.has_arrivals) {
    return Issue{
        "/workload/arrivals/process",
        "found \"trace\", allowed a process with a rate, such as \"poisson\": the trace has "
        "lengths only"};
  }
  const bool content_from_trace = prompts_from_trace && !trace.prefixes.empty();
  if (content_from_trace) {
    if (auto issue = OtherContent(w)) return *std::move(issue);
  }
  if (any_trace && !trace.adapters.empty()) {
    if (auto issue = PoolWithoutSeats(s)) return *std::move(issue);
  }
  if (auto issue = RateBeyondARun(w)) return *std::move(issue);
  Replay replay;
  if (arrivals_from_trace) {
    Result<Replay> found = ReplayOf(w, s.seed, trace);
    if (!found.ok()) return Issues(found.issues());
    replay = std::move(found.value());
  }
  auto state = std::make_unique<State>(s, trace, arrivals_from_trace, std::move(replay));
  state->content_from_trace = content_from_trace;
  state->maker.Size(state->table);
  return RequestDrawing(std::move(state));
}

bool RequestDrawing::Draw(std::int64_t rows) {
  State& s = *state_;
  s.too_late |= !s.too_late && !s.maker.Fill(std::max<std::int64_t>(rows, 1), s.table);
  return s.too_late || s.maker.filled() == s.maker.size();
}

double RequestDrawing::Progress() const {
  const State& s = *state_;
  if (s.too_late || s.maker.size() == 0) return 1;
  return static_cast<double>(s.maker.filled()) / static_cast<double>(s.maker.size());
}

Result<RequestTable> RequestDrawing::Take() {
  State& s = *state_;
  if (s.too_late) {
    return Issue{"/workload/arrivals/rate_per_s",
                 Format("found arrivals later than {} s, the longest that a run can hold; "
                        "allowed a higher rate, a smaller cv, fewer requests, or a profile "
                        "that brings them earlier",
                        NumberText(std::floor(kLatestNs * 1e-9)))};
  }
  if (s.content_from_trace) {
    FillContent(s.trace, s.replay.positions, s.scenario.workload->prompt_tokens.scale, s.table);
  }
  return std::move(s.table);
}

Result<RequestTable> MakeRequests(const Scenario& scenario, const Trace& trace) {
  Result<RequestDrawing> drawing = RequestDrawing::Begin(scenario, trace);
  if (!drawing.ok()) return Issues(drawing.issues());
  while (!drawing.value().Draw(INT64_MAX)) {
  }
  return drawing.value().Take();
}

}  // namespace servecast
