// Takes the place of BLIS's engine in the page's module, which would not fit the page's budget with
// it (decision 014); Simulation::Create then says that the command has it.
#include "serving/blis_replica.h"

namespace servecast {

std::unique_ptr<AnyReplica> MakeBlisReplica(const BlisInput&) { return nullptr; }

}  // namespace servecast
