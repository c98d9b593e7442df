#include "serving/replica/draft_rules.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "serving/replica/acceptance_curves.h"

namespace servecast {
namespace {

std::int64_t Lookahead(const SpeculativeSpec& s) {
  switch (s.method) {
    case DraftMethod::kNone:
    case DraftMethod::kNgram:
    case DraftMethod::kNgramGpu:
      return 0;
    case DraftMethod::kDflash:
      return s.num_speculative_tokens + 1;
    case DraftMethod::kEagle:
    case DraftMethod::kEagle3:
    case DraftMethod::kMtp:
    case DraftMethod::kDraftModel:
    case DraftMethod::kDspark:
      break;
  }
  return s.num_speculative_tokens;
}

// The probability by which each draft is accepted if all before it are, when a step of `drafts`
// yields `length` tokens on average: of a + a^2 + ... = length - 1. By halving, so that every
// compiler finds the same.
double ConstantRate(double length, std::int64_t drafts) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double a = (low + high) / 2;
    double power = 1, sum = 0;
    for (std::int64_t d = 0; d < drafts; ++d) sum += power *= a;
    (sum < length - 1 ? low : high) = a;
  }
  return high;
}

std::vector<double> RatesOfLength(double length, std::int64_t drafts) {
  const double rate = ConstantRate(length, drafts);
  std::vector<double> rates;
  double power = 1;
  for (std::int64_t i = 0; i < drafts; ++i) rates.push_back(power *= rate);
  return rates;
}

// A draw of 52 bits stands for the middle of its interval: (draw + 1/2) / 2^52 < rate. Exact.
Acceptance::Law LawFrom(const std::vector<double>& rates, std::int64_t drafts) {
  Acceptance::Law law(static_cast<std::size_t>(drafts), 0);
  for (std::size_t i = 0; i < rates.size() && i < law.size(); ++i) {
    if (rates[i] > 0) law[i] = static_cast<std::uint64_t>(std::ceil(rates[i] * 0x1p52 - 0.5));
  }
  return law;
}

std::int64_t EntryOf(const std::vector<std::int32_t>& list, std::int64_t n) {
  return list.empty() ? 0 : list[static_cast<std::size_t>(n) % list.size()];
}

}  // namespace

bool NeedsHiddenStates(DraftMethod method) {
  return method == DraftMethod::kEagle || method == DraftMethod::kEagle3 ||
         method == DraftMethod::kMtp || method == DraftMethod::kDflash ||
         method == DraftMethod::kDspark;
}

std::int64_t TokenBudget(const EngineSpec& engine) {
  const SpeculativeSpec& s = engine.speculative;
  if (!s.On()) return engine.max_num_batched_tokens;
  std::int64_t slots = s.DraftsAtOnce() ? s.num_speculative_tokens - 1 : 0;
  if (s.method == DraftMethod::kDraftModel) ++slots;
  return engine.max_num_batched_tokens - slots * engine.max_num_seqs;
}

DraftRules::DraftRules(const EngineSpec& engine) : budget(TokenBudget(engine)) {
  const SpeculativeSpec& s = engine.speculative;
  if (!s.On()) return;
  most = s.num_speculative_tokens;
  lookahead = Lookahead(s);
  drops_last_hit = NeedsHiddenStates(s.method);
  varies = s.method == DraftMethod::kNgram;
  pads_one_token = s.pads_one_token && s.num_speculative_tokens_per_batch_size.empty();
  for (const std::vector<double>& row : s.num_speculative_tokens_per_batch_size) {
    by_members.push_back({static_cast<std::int64_t>(row[0]), static_cast<std::int64_t>(row[2])});
  }
}

std::int64_t DraftRules::After(std::int64_t members) const {
  if (by_members.empty()) return most;
  std::int64_t drafts = 0;
  for (const Range& range : by_members) {
    if (range.from <= members) drafts = range.drafts;
  }
  return std::min(drafts, most);
}

std::vector<double> AcceptanceRates(const SpeculativeSpec& s) {
  if (s.acceptance_as != "none") return RatesOfCurve(s.acceptance_as, s.num_speculative_tokens);
  std::vector<double> rates;
  const auto most = static_cast<std::size_t>(s.num_speculative_tokens);
  for (const std::vector<double>& row : s.acceptance_rates) {
    if (rates.size() < most) rates.push_back(row[1]);
  }
  if (!rates.empty()) return rates;
  return RatesOfLength(s.acceptance_length, s.num_speculative_tokens);
}

Acceptance::Acceptance(const SpeculativeSpec& spec, const RequestTable& requests, std::int64_t seed)
    : law_(LawFrom(AcceptanceRates(spec), spec.num_speculative_tokens)),
      draft_share_(spec.draft_share),
      requests_(requests),
      seed_(seed) {
  for (const double length : requests.acceptance_length) {
    const bool known = std::any_of(lengths_.begin(), lengths_.end(),
                                   [length](const Length& l) { return l.length == length; });
    if (length == 0 || known) continue;
    const std::int64_t drafts = spec.num_speculative_tokens;
    lengths_.push_back({length, LawFrom(RatesOfLength(length, drafts), drafts)});
  }
}

const Acceptance::Law& Acceptance::LawOf(RequestId request) const {
  if (lengths_.empty()) return law_;
  const double length = requests_.acceptance_length[static_cast<std::size_t>(request)];
  for (const Length& own : lengths_) {
    if (own.length == length) return own.law;
  }
  return law_;
}

std::uint64_t Acceptance::KeyOf(RequestId request, std::int64_t n) const {
  return RandomKey(seed_, Stream::kAcceptance, request, n);
}

std::int64_t Acceptance::Accepted(RequestId request, std::int64_t n, std::int64_t drafts) const {
  if (!Draws()) {
    const auto r = static_cast<std::size_t>(request);
    return std::min(EntryOf(requests_.accepted_drafts[r], n), drafts);
  }
  const std::uint64_t draw = DrawOf(KeyOf(request, n));
  std::int64_t accepted = 0;
  for (const std::uint64_t below : LawOf(request)) accepted += draw < below ? 1 : 0;
  return std::min(accepted, drafts);
}

std::int64_t Acceptance::Proposed(RequestId request, std::int64_t n, std::int64_t most) const {
  if (!requests_.proposed_drafts.empty()) {
    const auto r = static_cast<std::size_t>(request);
    return std::clamp<std::int64_t>(EntryOf(requests_.proposed_drafts[r], n), 0, most);
  }
  return Uniform(seed_, Stream::kProposal, request, n) < draft_share_ ? most : 0;
}

}  // namespace servecast
