// What other programs say of a deployment, as a scenario: launch commands, config files, benchmark
// results, metrics, lists of GPUs. Pure: who calls it reads the files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "servecast/result.h"

namespace servecast {

struct ImportText {
  std::string name;  // of the file, for remarks; "" when there is one text only
  std::string_view text;
};

// A member of the scenario ("engine.max_num_seqs = 128") and the words that it came from, or words
// that were left out and why. Safe to show.
struct ImportNote {
  std::string what, why;

  friend bool operator==(const ImportNote&, const ImportNote&) = default;
};

// What a text says was measured or logged of its server. Latencies and rates have the names that
// reports have: "ttft_ms.p99", "requests_per_s". Of others: kv_tokens (room of the KV cache of one
// replica), max_concurrency (requests of max_concurrency_tokens that fit into it), running_peak and
// waiting_peak (most requests in a line of a log), concurrency_peak (most at a client) and
// concurrency_limit (that a client with a rate keeps), prefix_hit_share (of prompt tokens), and
// prompt_tokens_mean and output_tokens_mean, where a text has no more of its lengths.
struct MeasuredValue {
  std::string name;
  double value = 0;
  std::string from;  // "what vllm bench serve printed"

  friend bool operator==(const MeasuredValue&, const MeasuredValue&) = default;
};

struct Imported {
  std::string document;            // indented JSON; "" when nothing was understood
  std::vector<std::string> kinds;  // what was found in the texts, in their order
  std::size_t servers = 0;         // that the texts start, a pool each
  // What the answer depends on most, and is not as a text has it: to be read first.
  std::vector<std::string> warnings;
  std::vector<ImportNote> taken;
  std::vector<ImportNote> ignored;
  std::vector<std::string> remarks;     // what was assumed, and what was measured
  std::vector<MeasuredValue> measured;  // a name once: of two texts the later counts
  // Paths of members that a text says for certain ("engine.max_num_seqs"), in no order; a path may
  // come twice. Not among them: a GPU of which several cards are sold, arrivals by a mean.
  std::vector<std::string> said;
  // Members that no text says and that change the answer: "model.top_p_by_default".
  std::vector<std::string> assumed;
  Issues issues;  // of the document, or why there is none
};

// The scenario that the texts tell together; of two that differ the later wins, and a remark says
// so. What no text says is as in `base`, a scenario document, except a model or a GPU that is named
// and not known: the document has none then. O(size of the texts).
Imported Import(const std::vector<ImportText>& texts, std::string_view base);

// Of one text; the rest is as in the scenario preset llama-3.1-8b-h100-chat.
Imported Import(std::string_view text);

// What a file is that a person opens, by its text (a large one's beginning will do) and its name:
// "scenario", "calibration", "coefficients", "trace", or "import": what Import reads. O(size).
const char* FileKind(std::string_view text, std::string_view name);

}  // namespace servecast
