#include "io/draft_checks.h"

#include "base/text.h"
#include "servecast/workload_spec.h"
#include "serving/replica/acceptance_curves.h"
#include "serving/replica/draft_rules.h"

namespace servecast {
namespace {

void CheckRates(const SpeculativeSpec& s, Issues& issues) {
  if (s.acceptance_as != "none") {
    if (s.num_speculative_tokens > kMeasuredDrafts) {
      issues.push_back({"/engine/speculative/num_speculative_tokens",
                        Format("found {}, allowed up to {}, as many as were measured, with "
                               "acceptance_as",
                               s.num_speculative_tokens, kMeasuredDrafts)});
    }
    return;
  }
  const NumberTable& rows = s.acceptance_rates;
  const auto most = static_cast<std::size_t>(s.num_speculative_tokens);
  if (rows.empty()) {
    const auto longest = static_cast<double>(1 + s.num_speculative_tokens);
    if (s.acceptance_length > longest) {
      issues.push_back({"/engine/speculative/acceptance_length",
                        Format("found {}, allowed up to {}: each of num_speculative_tokens drafts "
                               "and the model's own token",
                               NumberText(s.acceptance_length), NumberText(longest))});
    }
    return;
  }
  bool good = rows.size() >= most;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    good = good && rows[i][0] == static_cast<double>(i + 1);
    good = good && rows[i][1] <= (i == 0 ? 1 : rows[i - 1][1]);
  }
  if (!good) {
    issues.push_back({"/engine/speculative/acceptance_rates",
                      Format("found {} rows, allowed positions 1, 2, ... up to "
                             "num_speculative_tokens {} at least, with rates from 1 down that do "
                             "not rise",
                             rows.size(), most)});
  }
}

void CheckTable(const SpeculativeSpec& s, Issues& issues) {
  const NumberTable& rows = s.num_speculative_tokens_per_batch_size;
  bool good = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double from = rows[i][0], to = rows[i][1], drafts = rows[i][2];
    for (const double number : {from, to, drafts}) {
      good = good && number == static_cast<double>(static_cast<std::int64_t>(number));
    }
    good = good && (i == 0 ? from == 1 : from > rows[i - 1][1]) && to >= from;
    good = good && drafts <= static_cast<double>(s.num_speculative_tokens);
  }
  if (!good) {
    issues.push_back({"/engine/speculative/num_speculative_tokens_per_batch_size",
                      Format("found {} rows, allowed whole numbers: ranges that begin at 1, ascend "
                             "and do not overlap, and drafts up to num_speculative_tokens {}",
                             rows.size(), s.num_speculative_tokens)});
  }
}

}  // namespace

void CheckDrafts(const Scenario& s, Issues& issues) {
  const EngineSpec& e = s.engine;
  const SpeculativeSpec& drafts = e.speculative;
  if (!drafts.On()) return;
  const std::int64_t threshold = e.long_prefill_token_threshold;
  if (drafts.pads_one_token && threshold > 0 && threshold <= drafts.num_speculative_tokens) {
    issues.push_back({"/engine/long_prefill_token_threshold",
                      "found %, allowed 0 or above num_speculative_tokens: it would cut a padded "
                      "admission, of which vLLM's counts do not fit"});
  }
  if (TokenBudget(e) < 1) {
    issues.push_back({"/engine/max_num_batched_tokens",
                      Format("found {}, allowed from {} up: the drafter keeps slots of it for each "
                             "of max_num_seqs {} requests",
                             e.max_num_batched_tokens,
                             e.max_num_batched_tokens - TokenBudget(e) + 1, e.max_num_seqs)});
  }
  for (std::size_t i = 0; i < s.workload->classes.size(); ++i) {
    const std::optional<double>& length = s.workload->classes[i].acceptance_length;
    const auto longest = static_cast<double>(1 + drafts.num_speculative_tokens);
    if (!length || *length <= longest) continue;
    issues.push_back({Format("/workload/classes/{}/acceptance_length", i),
                      Format("found {}, allowed up to {}: each of num_speculative_tokens drafts "
                             "and the model's own token",
                             NumberText(*length), NumberText(longest))});
  }
  CheckRates(drafts, issues);
  CheckTable(drafts, issues);
}

}  // namespace servecast
