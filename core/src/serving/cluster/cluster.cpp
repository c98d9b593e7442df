#include "serving/cluster/cluster.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"

namespace servecast {
namespace {

bool HaveRoles(const std::vector<FleetPool>& pools) {
  return std::any_of(pools.begin(), pools.end(),
                     [](const FleetPool& pool) { return pool.each.role != PoolRole::kMixed; });
}

KvLink LinkOf(const DisaggregationSpec& spec, double gb_s) {
  return {static_cast<TimeNs>(std::nearbyint(spec.base_latency_us * 1e3)),
          static_cast<std::int64_t>(std::nearbyint(gb_s * 1e9))};
}

// Replicas are the same throughout.
bool AllStay(const Cluster::Input& input) {
  return input.rolling_update == nullptr && input.failures == nullptr &&
         std::all_of(input.pools.begin(), input.pools.end(),
                     [](const FleetPool& pool) { return pool.scaling == nullptr; });
}

}  // namespace

Cluster::Cluster(const Input& input)
    : Fleet(input.pools, input.clients),
      clients_(input.clients),
      horizon_(std::min(any().horizon, kClockEnd)),
      session_of_(SessionsOf(any().requests)),
      above_tokens_(input.disaggregation.above_tokens),
      roles_(HaveRoles(pools_)),
      by_vidur_(!roles_ && any().engine.compat == Compat::kVidur && !input.router->ignores_load),
      coupled_(roles_ || !any().requests.think.empty() || input.clients.InLoop()),
      independent_(!coupled_ && AllStay(input) && input.router->ignores_load),
      lags_(!coupled_ && AllStay(input) && !input.router->reads_engines && !by_vidur_),
      active_(static_cast<std::int32_t>(nodes_.size())),
      epp_(input.epp),
      link_(LinkOf(input.disaggregation, input.disaggregation.bandwidth_gb_s.value_or(0))),
      embeddings_link_(LinkOf(input.disaggregation, input.embeddings_gb_s)),
      embed_bytes_(input.embed_bytes),
      of_embeddings_(0) {
  const auto open = [&](PoolRole role) {
    return Open(role, *input.router, input.router_params, input.seed);
  };
  if (input.failures != nullptr) {
    const auto replicas = static_cast<std::int32_t>(nodes_.size());
    failures_.emplace(*input.failures, input.seed, replicas, horizon_);
    for (std::int32_t i = 0; i < replicas; ++i) Replace(i, failures_->DiesAt(i), 0, 0);
  }
  const bool cuts_off = std::any_of(pools_.begin(), pools_.end(),
                                    [](const FleetPool& pool) { return pool.grace < kNever; });
  if (failures_ || cuts_off) placed_.resize(nodes_.size());
  const bool turns_away = epp_ != nullptr && epp_->ControlsFlow();
  if (!placed_.empty() || turns_away) {
    any().results.lost_at.assign(any().requests.arrival.size(), -1);
  }
  if (!AllStay(input)) {
    std::vector<Membership::Pool> pools;
    for (const FleetPool& pool : pools_) {
      const bool plans = pool.scaling != nullptr && FindScaler(pool.scaling->policy).plans;
      if (plans && !planner_view_) planner_view_.emplace();
      pools.push_back({.scaling = pool.scaling,
                       .planned = PlannedFrom(pool),
                       .cold_start = pool.cold_start,
                       .wake = pool.wake,
                       .initial = pool.replicas});
    }
    membership_ =
        MakeMembership({.pools = std::move(pools), .rolling_update = input.rolling_update});
  }
  // Draws for all replicas of a request are independent of each other.
  const std::uint64_t own = Mix64(static_cast<std::uint64_t>(input.seed));
  if (Members(PoolRole::kDecode).empty()) {
    open(PoolRole::kMixed);
  } else {
    Open(PoolRole::kDecode, *input.decode_router, input.decode_router_params,
         static_cast<std::int64_t>(own));
    if (above_tokens_ > 0) {
      const bool mixed = !Members(PoolRole::kMixed).empty();
      whole_ = open(mixed ? PoolRole::kMixed : PoolRole::kDecode);
    }
    prefill_ = open(PoolRole::kPrefill);
    any().results.hand_overs.resize(any().requests.arrival.size());
  }
  if (Members(PoolRole::kEncode).empty()) return;
  encode_ = Open(PoolRole::kEncode, *input.encode_router, input.encode_router_params,
                 static_cast<std::int64_t>(Mix64(own)));
  any().results.encodings.resize(any().requests.arrival.size());
}

std::size_t Cluster::Open(PoolRole role, const RouterEntry& router,
                          const std::vector<double>& params, std::int64_t seed) {
  gateways_.push_back(Gateway({.router = router,
                               .params = params,
                               .seed = seed,
                               .role = role,
                               .members = Members(role),
                               .requests = any().requests,
                               .results = any().results,
                               .sessions = session_of_,
                               .epp = epp_}));
  if (router.hears_first_tokens) HearFirstTokens();
  for (const auto& node : nodes_) {
    if (any().requests.Hedges()) node->inbox.HearEndsOfOthers();
  }
  return gateways_.size() - 1;
}

bool Cluster::Advance(std::int64_t max_steps) {
  for (std::int64_t steps = 0; steps < max_steps;) {
    const TimeNs event = NextEvent();
    const bool comes = event < horizon_;
    if (comes && (independent_ || active_.empty() || active_.TopKey() >= event)) {
      Process(event);
      // Scrapes or failures without end are no reason to stay here.
      if (membership_ != nullptr) ++steps;
    } else if (!active_.empty()) {
      const std::int32_t index = active_.TopId();
      active_.Remove(index);
      steps += Run(index, LimitOf(index, comes ? event : kNever), max_steps - steps);
    } else {
      return Close();
    }
  }
  return false;
}

// The next moment at which something happens that all replicas must have come to. Where they are
// coupled, one may bring a request to a gateway at any moment from the slowest clock on.
TimeNs Cluster::NextEvent() {
  TimeNs next = clients_.NextEnqueue();
  if (roles_) next = std::min({next, link_.Next(), embeddings_link_.Next()});
  if (!handed_on_.empty()) next = std::min(next, handed_on_.front().time);
  if (!first_tokens_.empty()) next = std::min(next, first_tokens_.front().time);
  const TimeNs by = coupled_ && !active_.empty() ? std::min(next, active_.TopKey()) : next;
  for (Gateway& gateway : gateways_) {
    next = std::min({next, gateway.NextLook(by), gateway.NextOfHeld()});
  }
  if (ReplicasMayFail()) next = std::min(next, failures_->Next());
  return MembersMayChange() ? std::min(next, membership_->Next()) : next;
}

// How far a replica may run that the others are not behind.
TimeNs Cluster::LimitOf(std::int32_t index, TimeNs event) const {
  if (!coupled_) return event;
  if (active_.empty()) return std::min(event, kNever - 1);  // it may bring some itself
  // At one time the lowest goes first, however the run is sliced.
  return std::min(event, active_.TopKey() + (index < active_.TopId() ? 1 : 0));
}

// One thing that happens at `time`, that of the next event.
void Cluster::Process(TimeNs time) {
  if (roles_ && link_.Next() == time) return PassLink(time);
  if (roles_ && embeddings_link_.Next() == time) return PassEmbeddings(time);
  if (!first_tokens_.empty() && first_tokens_.front().time == time) return PassFirstToken();
  if (ReplicasMayFail() && failures_->Next() == time) return PassFailure(time);
  if (MembersMayChange() && membership_->Next() == time) return PassMembership(time);
  changed_ = time;
  for (Gateway& gateway : gateways_) {
    if (ProcessAt(gateway, time)) return;
  }
  if (clients_.NextEnqueue() == time) {
    const RequestId request = clients_.TakeNext();
    if (clients_.Arrives(request, {})) return;
    const bool encodes = encode_ > 0 && !any().requests.ImagesOf(request).empty();
    Route(encodes ? gateways_[encode_] : GatewayOfPrompt(request), request, time);
  } else {
    const RequestId request = handed_on_.front().request;
    std::pop_heap(handed_on_.begin(), handed_on_.end(), Later);
    handed_on_.pop_back();
    GoOn(request, time);
  }
}

Gateway& Cluster::GatewayOfPrompt(RequestId request) {
  const std::int64_t prompt = any().requests.prompt_tokens[static_cast<std::size_t>(request)];
  return gateways_[prompt > above_tokens_ ? prefill_ : whole_];
}

// False: nothing of the gateway's own does.
bool Cluster::ProcessAt(Gateway& gateway, TimeNs time) {
  if (gateway.LooksAt(time)) {
    gateway.Look(time);
    return true;
  }
  if (gateway.NextOfHeld() > time) return false;
  if (gateway.NextTimeout() <= time) {
    const RequestId request = gateway.GiveUp();
    clients_.GaveUp(request, time);
    if (any().results.HandedOver(static_cast<std::size_t>(request))) Free(request, time);
    return true;
  }
  if (gateway.queues()) {
    if (!gateway.SweepsAt(time)) Cycle(gateway, time);
    for (const RequestId request : gateway.Sweep(time)) clients_.TurnedAway(request, time);
    return true;
  }
  for (auto next = gateway.ChooseForHeld(time); next.place != Router::kHold;
       next = gateway.ChooseForHeld(time)) {
    Place(gateway, next.request, next.place, time);
  }
  return true;
}

// Of a queue of the router's own.
void Cluster::Cycle(Gateway& gateway, TimeNs time) {
  const Gateway::Placement next = gateway.Cycle(time);
  if (next.place != Router::kHold) Place(gateway, next.request, next.place, time);
}

void Cluster::Route(Gateway& gateway, RequestId request, TimeNs time) {
  if (gateway.queues()) {
    if (!gateway.Queue(request, time)) clients_.TurnedAway(request, time);
    return Cycle(gateway, time);
  }
  const std::int32_t place = by_vidur_ ? LeastWaiting() : gateway.Choose(request, time);
  if (place != Router::kHold) Place(gateway, request, place, time);
}

// Vidur's: what runs does not count.
std::int32_t Cluster::LeastWaiting() const {
  const auto waiting = [](const std::unique_ptr<Node>& node) {
    return node->replica->queued() + node->inbox.unread();
  };
  const auto least =
      std::min_element(nodes_.begin(), nodes_.end(),
                       [&](const auto& a, const auto& b) { return waiting(a) < waiting(b); });
  return static_cast<std::int32_t>(least - nodes_.begin());
}

void Cluster::Place(const Gateway& gateway, RequestId request, std::int32_t place, TimeNs time) {
  for (Gateway& other : gateways_) {
    if (other.role() == gateway.role()) other.Placed(place);
  }
  const std::int32_t index = gateway.ReplicaAt(place);
  if (membership_ != nullptr) membership_->Placed(index);
  std::int32_t& replica = any().results.replica[static_cast<std::size_t>(request)];
  if (planner_view_ && replica < 0) planner_view_->Placed(request);
  replica = index;
  if (failures_ && !failures_->Up(index)) return Refuse(index, request, time);
  if (!placed_.empty()) placed_[static_cast<std::size_t>(index)].push_back(request);
  NodeAt(index).inbox.Send(request, time);
  Activate(index, time);
}

// Steps that it took.
std::int64_t Cluster::Run(std::int32_t index, TimeNs until, std::int64_t max_steps) {
  Node& node = NodeAt(index);
  const std::int64_t before = node.recorder.steps();
  bool to_departure = false;
  for (const Gateway& gateway : gateways_) {
    to_departure |= gateway.held() > 0 && gateway.role() == node.role;
  }
  node.inbox.AllowUntil(until, to_departure);
  const bool idle = node.replica->Advance(max_steps);
  if (!idle) {
    active_.Push(index, lags_ ? node.replica->QuietUntil() : node.replica->ready(), index);
  } else if (const TimeNs wakes = roles_ ? node.replica->Wakes() : kNever; wakes < horizon_) {
    active_.Push(index, std::max(wakes, node.replica->now()), index);
  }
  PassDepartures(index);
  if (roles_) PassHandOvers(node);
  return node.recorder.steps() - before;
}

void Cluster::PassDepartures(std::int32_t index) {
  Node& node = NodeAt(index);
  for (const Inbox::Timed& left : node.inbox.departures()) {
    if (by_vidur_) break;
    const bool decoded = any().results.HandedOver(static_cast<std::size_t>(left.request));
    if (membership_ != nullptr) {
      membership_->Left(index, left.time, decoded && node.role == PoolRole::kPrefill);
    }
    TellGateways(index, left.time, left.request);
  }
  node.inbox.departures().clear();
  for (const Inbox::Timed& first : node.inbox.first_tokens()) {
    if (any().requests.Hedges()) {
      first_tokens_.push_back({first.time, first.request});
      std::push_heap(first_tokens_.begin(), first_tokens_.end(), Later);
    }
    for (Gateway& gateway : gateways_) {
      if (gateway.role() == node.role) gateway.FirstToken({first.time, node.place, first.request});
    }
  }
  node.inbox.first_tokens().clear();
}

// All before the replica that a request leaves it; it is that one's own which placed it.
void Cluster::TellGateways(std::int32_t index, TimeNs time, RequestId request) {
  const Node& node = NodeAt(index);
  const bool decoded = any().results.HandedOver(static_cast<std::size_t>(request));
  for (Gateway& gateway : gateways_) {
    if (gateway.role() != node.role) continue;
    const bool own = node.role != PoolRole::kDecode || decoded == (&gateway == &gateways_[0]);
    gateway.Left({time, node.place, request, own});
  }
}

// What a replica has to say to others.
void Cluster::PassHandOvers(Node& node) {
  for (const Inbox::HandOverEvent& event : node.inbox.events()) {
    if (event.kind == Inbox::HandOverEvent::Kind::kPrefilled ||
        event.kind == Inbox::HandOverEvent::Kind::kEncoded) {
      handed_on_.push_back({event.time, event.request});
      std::push_heap(handed_on_.begin(), handed_on_.end(), Later);
    } else if (event.kind == Inbox::HandOverEvent::Kind::kReserved) {
      HandOver& hand_over = any().results.hand_overs[static_cast<std::size_t>(event.request)];
      hand_over.bytes = event.blocks * pools_[node.pool].block_bytes;
      link_.Start(event.request, hand_over.bytes, event.time);
    } else {
      Free(event.request, event.time);
    }
  }
  node.inbox.events().clear();
}

void Cluster::PassLink(TimeNs time) {
  for (const RequestId request : link_.Pass()) {
    const std::int32_t index = any().results.replica[static_cast<std::size_t>(request)];
    NodeAt(index).replica->Arrive(request, time);
    Activate(index, time);
    Free(request, time);
  }
}

// The client of the request keeps this attempt, unless it has a token of the other already.
void Cluster::PassFirstToken() {
  const Timed first = first_tokens_.front();
  std::pop_heap(first_tokens_.begin(), first_tokens_.end(), Later);
  first_tokens_.pop_back();
  const RequestId other = any().requests.OtherAttempt(first.request);
  const auto o = static_cast<std::size_t>(other);
  RequestResults& results = any().results;
  const TimeNs token = results.first_token[o];
  const bool late = token >= 0 && std::pair(token, other) < std::pair(first.time, first.request);
  const RequestState state = results.state[o];
  if (late || any().requests.arrival[o] < 0 || state == RequestState::kCompleted || IsLost(state)) {
    return;
  }
  clients_.Cancel(other, first.time);
  if (token > first.time) results.first_token[o] = -1;  // on its way to the client
  if (const std::int32_t index = results.replica[o]; index >= 0) {
    NodeAt(index).inbox.Cancel(other);
    if (active_.Has(index)) Activate(index, first.time);
  } else if (results.enqueue[o] >= 0 && results.enqueue[o] < first.time) {
    gateways_.front().Cancel(other, first.time);  // it is held there
  }
}

// Up to the horizon; without one while there is work. Requests that no replica will ever serve are
// no work an hour after the last other event.
bool Cluster::MembersMayChange() const {
  constexpr TimeNs kPatience = 3600 * kNsPerS;
  if (membership_ == nullptr) return false;
  if (horizon_ < kClockEnd || clients_.NextEnqueue() < kNever) return true;
  const TimeNs next = membership_->Next(), left = membership_->LastLeft();
  if (left >= next) return true;
  std::int64_t waiting = membership_->Staying();
  for (const Gateway& gateway : gateways_) waiting += gateway.held();
  return waiting > 0 && (!active_.empty() || membership_->Expects() ||
                         next <= std::max(changed_, left) + kPatience);
}

void Cluster::PassMembership(TimeNs time) {
  for (const std::int32_t index : membership_->CutOff(time)) {
    EndReplica(index, time);
    if (failures_) failures_->Retire(index);
  }
  for (const std::int32_t index : membership_->ComeUp(time)) SetAvailable(index, true);
  if (membership_->ScrapesAt(time)) PassScrape(time);
  while (membership_->DecidesAt(time)) PassChange(membership_->Decide(time), time);
  if (membership_->RollsAt(time)) PassChange(membership_->Roll(time), time);
  PlaceHeld(time);
}

void Cluster::PassScrape(TimeNs time) {
  std::vector<Membership::Scraped> scraped(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!membership_->Serves(static_cast<std::int32_t>(i))) continue;
    const Engine& replica = *nodes_[i]->replica;
    scraped[i] = {.load = replica.LoadAt(time),
                  .kv_blocks = pools_[nodes_[i]->pool].each.pool_blocks - 1,
                  .step = replica.LastStepAt(time)};
  }
  std::vector<std::int64_t> held;
  for (const FleetPool& pool : pools_) held.push_back(HeldBefore(pool.each.role));
  ServedTotals served;
  if (planner_view_) {
    served = planner_view_->Look(time, any().requests, any().results, counts(), scraped);
  }
  membership_->Scrape(time, scraped, held, served);
}

std::int64_t Cluster::HeldBefore(PoolRole role) const {
  std::int64_t held = 0;
  for (const Gateway& gateway : gateways_) held += gateway.role() == role ? gateway.held() : 0;
  return held;
}

// For all gateways before the replica.
void Cluster::SetAvailable(std::int32_t index, bool available) {
  const Node& node = NodeAt(index);
  for (Gateway& gateway : gateways_) {
    if (gateway.role() == node.role) gateway.SetAvailable(node.place, available);
  }
}

void Cluster::PassChange(const Membership::Change& change, TimeNs time) {
  const TimeNs grace = pools_[change.pool].grace;
  for (const std::int32_t index : change.drain) {
    SetAvailable(index, false);
    if (grace == kNever) continue;
    const auto by = static_cast<TimeNs>(std::min(WideInt{time} + grace, WideInt{kClockEnd}));
    membership_->EndsBy(index, NodeAt(index).replica->EndBy(time, by));
  }
  for (const std::int32_t index : change.gone) {
    SetAvailable(index, false);
    if (failures_) failures_->Retire(index);
  }
  for (std::int64_t i = 0; i < change.start; ++i) {
    const auto index = static_cast<std::int32_t>(nodes_.size());
    const TimeNs up = membership_->Started(index, change.pool, time);
    if (failures_) failures_->Add(up);
    if (!placed_.empty()) placed_.emplace_back();
    AddNode(change.pool, failures_ ? failures_->DiesAt(index) : kNever);
    if (any().requests.Hedges()) NodeAt(index).inbox.HearEndsOfOthers();
    for (Gateway& gateway : gateways_) {
      if (gateway.role() != NodeAt(index).role) continue;
      gateway.AddMember(MemberAt(static_cast<std::size_t>(index)));
    }
    active_.Grow();
  }
}

// Before all replicas, as long as there is room.
void Cluster::PlaceHeld(TimeNs time) {
  for (Gateway& gateway : gateways_) {
    for (auto next = gateway.ChooseForHeld(time); next.place != Router::kHold;
         next = gateway.ChooseForHeld(time)) {
      Place(gateway, next.request, next.place, time);
    }
  }
}

ScalingReport Cluster::ScalingTo(TimeNs end) const {
  if (membership_ == nullptr) return {};
  std::vector<Failures::Outage> outages;
  if (failures_) outages = failures_->OutagesTo(end);
  ScalingReport report = membership_->ReportTo(end, outages);
  if (placed_.empty()) return report;
  report.failures.on = true;
  const RequestResults& results = any().results;
  for (std::size_t r = 0; r < results.state.size(); ++r) {
    if (results.state[r] != RequestState::kLost) continue;
    ++report.failures.lost_attempts;
    report.failures.tokens_lost += results.generated[r];
  }
  return report;
}

// The prefill side needs the request's blocks no more.
void Cluster::Free(RequestId request, TimeNs time) {
  const std::int32_t index =
      any().results.hand_overs[static_cast<std::size_t>(request)].prefill_replica;
  NodeAt(index).replica->FreeHandedOver(request, time);
  if (membership_ != nullptr) membership_->KvWent(index, time);
  Activate(index, time);
}

// Something comes to a replica that may sleep, or wait for a batch while another could be formed.
void Cluster::Activate(std::int32_t index, TimeNs time) {
  const TimeNs matters = std::max(time, NodeAt(index).replica->ready());
  if (active_.Has(index)) {
    if (active_.KeyOf(index) <= matters) return;
    active_.Remove(index);
  }
  active_.Push(index, matters, index);
}

std::int64_t Cluster::queued() const {
  std::int64_t sum = Fleet::queued() + travelling_;
  for (const Gateway& gateway : gateways_) sum += gateway.held();
  return sum;
}

std::int64_t Cluster::timed_out() const {
  std::int64_t sum = Fleet::timed_out();
  for (const Gateway& gateway : gateways_) sum += gateway.timed_out();
  return sum;
}

std::int64_t Cluster::rejected() const {
  std::int64_t sum = 0;
  for (const Gateway& gateway : gateways_) sum += gateway.rejected();
  return sum;
}

void Cluster::WriteRecords(TimeNs end, Recorder& recorder) const {
  Fleet::WriteRecords(end, recorder);
  for (const Gateway& gateway : gateways_) recorder.Add(gateway.recorder(), end);
  if (encode_ > 0) recorder.Add(of_embeddings_, end);
}

std::unique_ptr<Engine> MakeCluster(const Cluster::Input& input) {
  return std::make_unique<Cluster>(input);
}

}  // namespace servecast
