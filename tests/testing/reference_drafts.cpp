#include "testing/reference_drafts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/random.h"

namespace servecast::testing {

std::int64_t ReferenceDrafts::Lookahead() const {
  const std::set<DraftMethod> of_k = {DraftMethod::kEagle, DraftMethod::kEagle3, DraftMethod::kMtp,
                                      DraftMethod::kDspark, DraftMethod::kDraftModel};
  if (spec_.method == DraftMethod::kDflash) return Most() + 1;
  return of_k.count(spec_.method) > 0 ? Most() : 0;
}

std::int64_t ReferenceDrafts::Budget() const {
  std::int64_t slots = 0;
  const bool always = spec_.method == DraftMethod::kDflash || spec_.method == DraftMethod::kDspark;
  if (On() && (always || spec_.parallel_drafting)) slots += Most() - 1;
  if (spec_.method == DraftMethod::kDraftModel) slots += 1;
  return engine_.max_num_batched_tokens - slots * engine_.max_num_seqs;
}

bool ReferenceDrafts::DropsLastHit() const {
  const std::set<DraftMethod> hidden = {DraftMethod::kEagle, DraftMethod::kEagle3,
                                        DraftMethod::kMtp, DraftMethod::kDflash,
                                        DraftMethod::kDspark};
  return hidden.count(spec_.method) > 0;
}

bool ReferenceDrafts::Pads() const {
  return On() && spec_.pads_one_token && spec_.num_speculative_tokens_per_batch_size.empty();
}

std::int64_t ReferenceDrafts::AfterStepOf(std::int64_t members) const {
  const NumberTable& rows = spec_.num_speculative_tokens_per_batch_size;
  if (rows.empty()) return Most();
  for (std::size_t i = rows.size(); i > 0; --i) {
    if (rows[i - 1][0] <= static_cast<double>(members)) {
      return std::min(static_cast<std::int64_t>(rows[i - 1][2]), Most());
    }
  }
  return 0;
}

std::vector<double> ReferenceDrafts::Rates(double wanted) const {
  std::vector<double> rates;
  if (wanted == 0) {
    for (const auto& row : spec_.acceptance_rates) rates.push_back(row[1]);
    wanted = spec_.acceptance_length;
  }
  if (rates.empty()) {
    // One rate for each if those before are accepted: found by small steps, then smaller ones.
    double rate = 0;
    for (double step = 0.1; step > 1e-15; step /= 10) {
      const auto length = [this](double a) {
        double sum = 1;
        for (std::int64_t i = 1; i <= Most(); ++i) sum += std::pow(a, static_cast<double>(i));
        return sum;
      };
      while (rate + step <= 1 && length(rate + step) <= wanted) rate += step;
    }
    for (std::int64_t i = 1; i <= Most(); ++i) {
      rates.push_back(std::pow(rate, static_cast<double>(i)));
    }
  }
  rates.resize(std::min(rates.size(), static_cast<std::size_t>(Most())));
  return rates;
}

std::int64_t ReferenceDrafts::Accepted(std::int64_t row, std::int64_t n,
                                       std::int64_t drafts) const {
  if (!requests_.accepted_drafts.empty()) {
    const std::vector<std::int32_t>& list =
        requests_.accepted_drafts[static_cast<std::size_t>(row)];
    const auto at = static_cast<std::size_t>(n) % list.size();
    return std::min<std::int64_t>(list[at], drafts);
  }
  const double draw = Uniform(seed_, Stream::kAcceptance, row, n);
  const bool own = !requests_.acceptance_length.empty();
  const std::vector<double>& rates =
      own ? of_length_.at(requests_.acceptance_length[static_cast<std::size_t>(row)]) : rates_;
  std::int64_t accepted = 0;
  while (accepted < drafts && accepted < static_cast<std::int64_t>(rates.size()) &&
         draw < rates[static_cast<std::size_t>(accepted)]) {
    ++accepted;
  }
  return accepted;
}

std::int64_t ReferenceDrafts::Proposed(std::int64_t row, std::int64_t n, std::int64_t most) const {
  if (!requests_.proposed_drafts.empty()) {
    const std::vector<std::int32_t>& list =
        requests_.proposed_drafts[static_cast<std::size_t>(row)];
    return std::min<std::int64_t>(list[static_cast<std::size_t>(n) % list.size()], most);
  }
  return Uniform(seed_, Stream::kProposal, row, n) < spec_.draft_share ? most : 0;
}

}  // namespace servecast::testing
