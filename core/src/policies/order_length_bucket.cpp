// Requests of similar length together, as SFLLM's documents have it: what a batch computes is then
// least longer than what it must compute, for an engine that pads a batch's prompts to the longest.
#include <cmath>

#include "serving/policy.h"

namespace servecast::order_length_bucket {
namespace {

constexpr ParamSpec kParams[] = {
    {"bucket_tokens", "tokens", 1, 1e6, 64, "width of a length bucket of the queue", true}};

double Key(const QueuedRequest& r, Params params) {
  return std::floor(static_cast<double>(r.prompt_tokens) / params[0]);
}

}  // namespace

extern const OrderEntry kEntry = {
    "length_bucket",
    "Shortest prompts first, by buckets of lengths; first come, first served within a bucket",
    Key,
    kParams,
    false,
    true};

}  // namespace servecast::order_length_bucket
