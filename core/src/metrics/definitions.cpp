// What the words of latencies and rates mean; the catalogue, the page and the documents have them
// from here.
#include "servecast/report.h"

namespace servecast {

const std::vector<Definition>& Definitions() {
  static const std::vector<Definition> kDefinitions = {
      {"TTFT", "time to first token",
       "From a request's arrival until its client has the first token: waiting, prefill, and host "
       "time on both ways."},
      {"TPOT", "time per output token",
       "Of one request: (E2E - TTFT) / (output tokens - 1). A request of one token has none."},
      {"ITL", "inter-token latency",
       "The gap between two tokens of a request that follow each other, over all such gaps of all "
       "requests."},
      {"E2E", "end-to-end latency",
       "From a request's arrival until its client has the last token."},
      {"p99", "99th percentile",
       "The value that 99 of 100 samples are at most: by linear interpolation, of requests, and of "
       "gaps for ITL."},
      {"attainment", "attainment",
       "The share of requests that are within every limit that is theirs. Unfinished, dropped and "
       "timed-out ones are not."},
      {"goodput", "goodput",
       "Complete requests per second that are within every limit that is theirs."},
      {"throughput", "throughput",
       "Output tokens, or complete requests, per second while load is offered: without warm-up and "
       "drain."},
      {"overloaded", "overloaded",
       "Requests come faster than they are served, so waiting grows for as long as they come."},
      {"interval", "95 % interval",
       "Where the long-run value lies with a probability of 95 %, from independent runs. It says "
       "how many requests were simulated, not how good the model is."},
  };
  return kDefinitions;
}

}  // namespace servecast
