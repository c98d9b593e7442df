// The dictionary of columns: what files, the catalogue and the page call them.
#include "servecast/report.h"

namespace servecast {

const std::vector<Column>& Columns() {
  static const std::vector<Column> kColumns = {
      {"arrival_s", "s", "request", "when the request arrived"},
      {"class", "", "request", "class of the workload that it belongs to; none without classes"},
      {"session", "", "request", "conversation that it belongs to, counted from 0"},
      {"turn", "", "request", "its place in the conversation, counted from 0"},
      {"replica", "", "request", "replica that serves it, counted from 0; none until it is placed"},
      {"prompt_tokens", "tokens", "request", "length of its prompt"},
      {"cached_tokens", "tokens", "request",
       "prompt tokens found in the prefix cache at its first admission"},
      {"output_tokens", "tokens", "request", "tokens generated so far"},
      {"scheduling_delay_ms", "ms", "request", "time from arrival to its first step"},
      {"ttft_ms", "ms", "request", "time to first token, from arrival"},
      {"tpot_ms", "ms", "request", "(E2E - TTFT) / (output tokens - 1); none for a single token"},
      {"e2e_ms", "ms", "request", "time from arrival to its last token"},
      {"host_ms", "ms", "request",
       "part of E2E: delay before the queue, and of output tokens on the way to the client; with "
       "retries also all attempts before the last"},
      {"queue_ms", "ms", "request",
       "part of E2E: wait in the queue until its first step, in both queues where another replica "
       "encodes its images"},
      {"prefill_ms", "ms", "request",
       "part of E2E: steps until its prompt is computed, or computed again after a preemption"},
      {"encode_ms", "ms", "request",
       "part of prefill: time by which images, its own or others', made the steps of its prompt "
       "longer, or of its steps on a replica that encodes for the others; none without images"},
      {"decode_ms", "ms", "request",
       "part of E2E: steps that make its tokens, without the next two"},
      {"interference_ms", "ms", "request",
       "part of E2E: time by which prefills made its decode steps longer"},
      {"preempted_ms", "ms", "request", "part of E2E: from a preemption to its next step"},
      {"transfer_ms", "ms", "request",
       "part of E2E: time by which loads from KV tiers made its steps longer; or transfer of its "
       "KV blocks from prefill to decode, and of what its images became"},
      {"handover_ms", "ms", "request",
       "part of E2E: wait between prefill and decode, without the transfer"},
      {"prefill_replica", "", "request", "replica that prefilled it, where another one decodes"},
      {"prefilled_s", "s", "request", "end of its prefill, where another replica decodes"},
      {"transfer_start_s", "s", "request", "when the transfer of its KV blocks began"},
      {"deadline_missed", "", "request",
       "1: its first token came, or can only come, after its class's deadline; none without one"},
      {"attempts", "", "request",
       "how often its client sent it; its figures are of the last attempt, its times from the "
       "first on"},
      {"preemptions", "", "request",
       "how often it was preempted: lost its KV blocks and was computed again"},
      {"state", "", "request",
       "0 pending (not arrived), 1 queued, 2 running, 3 completed, 4 dropped, 5 timed out, 6 "
       "rejected, 7 lost with a replica; words in files"},
      {"finish_reason", "", "request",
       "why it ended: 0 stop, 1 length (cut at the longest sequence), 2 dropped, 3 timed_out, 4 "
       "unfinished, 5 rejected, 6 lost; words in files"},
      {"series_time_s", "s", "series", "start of the interval"},
      {"series_running", "requests", "series", "mean number of requests in the running batch"},
      {"series_waiting", "requests", "series", "mean number of requests in the queue"},
      {"series_batch_tokens", "tokens", "series", "mean number of tokens in the running step"},
      {"series_kv_usage", "1", "series", "mean share of KV blocks in use"},
      {"series_output_tokens_per_s", "tokens/s", "series", "output tokens generated"},
      {"series_preemptions", "", "series", "preemptions in the interval"},
      {"series_mfu", "1", "series", "FLOPs that the steps need, as a share of the GPU's peak"},
      {"series_bandwidth_use", "1", "series",
       "bytes of weights and KV that the steps need to read, as a share of the GPU's memory "
       "bandwidth"},
      {"series_power_w", "W", "series",
       "mean power of a GPU, by its law; none where the power of a GPU is not known"},
      {"series_replicas_up", "replicas", "series",
       "mean number of replicas that serve, those that drain among them; none where their "
       "number stays"},
      {"series_replicas_starting", "replicas", "series",
       "mean number of replicas in a cold start or a restart; none where their number stays"},
      {"series_prefill_replicas_up", "replicas", "series",
       "those of series_replicas_up that prefill; none without roles"},
      {"series_prefill_replicas_starting", "replicas", "series",
       "those of series_replicas_starting that prefill; none without roles"},
      {"series_decode_replicas_up", "replicas", "series",
       "those of series_replicas_up that decode; none without roles"},
      {"series_decode_replicas_starting", "replicas", "series",
       "those of series_replicas_starting that decode; none without roles"},
      {"cdf_fraction", "1", "cdf", "share of samples at or below"},
      {"cdf_ttft_ms", "ms", "cdf", "time to first token, over requests"},
      {"cdf_itl_ms", "ms", "cdf", "inter-token latency, over tokens"},
      {"cdf_tpot_ms", "ms", "cdf", "time per output token, over requests"},
      {"cdf_e2e_ms", "ms", "cdf", "end-to-end latency, over requests"},
  };
  return kColumns;
}

const std::vector<Column>& BatchColumns() {
  static const std::vector<Column> kColumns = {
      {"replica", "", "batch", "replica that ran it, counted from 0"},
      {"batch", "", "batch", "number of the step on its replica, counted from 0"},
      {"start_s", "s", "batch", "when it began"},
      {"duration_ms", "ms", "batch", "how long it took"},
      {"end_s", "s", "batch", "when its tokens were available"},
      {"prefill_tokens", "tokens", "batch",
       "tokens of prompts, computed for the first time or again after a preemption"},
      {"decode_tokens", "tokens", "batch", "tokens of decodes, one each"},
      {"batch_size", "requests", "batch", "requests that it computed a token of"},
      {"running", "requests", "batch", "requests in the running list when it was formed"},
      {"waiting", "requests", "batch", "requests in the queue when it was formed"},
      {"kv_blocks", "blocks", "batch", "KV blocks in use when it was formed"},
      {"bound", "", "batch", "what it spent most of its time on: overhead, compute or bandwidth"},
      {"interference_ms", "ms", "batch", "time by which its prefills delayed its decodes"},
      {"transfer_ms", "ms", "batch", "time by which loads from KV tiers made it longer"},
      {"finished", "requests", "batch", "requests that made their last token in it"},
      {"preempted", "requests", "batch", "requests that were preempted when it was formed"},
  };
  return kColumns;
}

const std::vector<double>& Report::ColumnOf(std::string_view column) const {
  static const std::vector<double> kEmpty;
  for (std::size_t i = 0; i < Columns().size() && i < columns.size(); ++i) {
    if (Columns()[i].name == column) return columns[i];
  }
  return kEmpty;
}

}  // namespace servecast
