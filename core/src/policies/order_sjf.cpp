#include "serving/policy.h"

namespace servecast::order_sjf {
namespace {

double Key(const QueuedRequest& r, Params) { return static_cast<double>(r.prompt_tokens); }

}  // namespace

extern const OrderEntry kEntry = {"sjf", "Shortest prompt first", Key};

}  // namespace servecast::order_sjf
