// Changes of a scenario, each run: asked for once a verdict stands and misses a target, so of the
// whole module.
#include <string>
#include <utility>

#include "bound_asked.h"
#include "experiment/advice.h"

namespace servecast {
namespace {

// A scenario that replays a trace waits for it.
class BoundAdvice final : public BoundAsked<BoundAdvice, Advice> {
 public:
  explicit BoundAdvice(const std::string& document) : document_(document) { Begin({}); }

  Result<Advice> Make(Trace trace) { return Advice::Create(document_, std::move(trace)); }
  std::string Summary() const { return asked_ ? asked_->Json(/*with_documents=*/true) : "null"; }

 private:
  std::string document_;
};

EMSCRIPTEN_BINDINGS(servecast_advice) {
  BindAsked<BoundAdvice>("Advice").constructor<std::string>().function("summary",
                                                                       &BoundAdvice::Summary);
}

}  // namespace
}  // namespace servecast
