#include "serving/policy.h"

namespace servecast {
namespace {

double Key(const QueuedRequest& r, Params) { return static_cast<double>(r.prompt_tokens); }

}  // namespace

extern const OrderEntry kOrderSjf;
const OrderEntry kOrderSjf = {"sjf", "Shortest prompt first", Key};

}  // namespace servecast
