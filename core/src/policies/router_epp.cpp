#include "serving/cluster/epp/picker_router.h"
#include "serving/cluster/router.h"

namespace servecast::router_epp {
namespace {

constexpr ParamSpec kParams[] = {kPoll};

}  // namespace

extern const RouterEntry kEntry = {
    .name = "epp",
    .help = "llm-d's endpoint picker: filters, weighted scorers, a picker",
    .make = epp::MakePickerRouter,
    .params = kParams,
    .reads_content = true,
    .reads_engines = true,
    .reads_tokens = true,
    .hears_first_tokens = true};

}  // namespace servecast::router_epp
