// decode-filter and prefill-filter: by the label of an endpoint's role.
#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::filter_role {
namespace {

class RoleFilter final : public Plugin {
 public:
  explicit RoleFilter(bool (*takes)(Role)) : takes_(takes) {}

  void Filter(const Request&, Endpoints endpoints, Survivors& survivors) override {
    KeepIf(endpoints, survivors, [&](const Endpoint& e) { return takes_(e.role); });
  }

 private:
  bool (*takes_)(Role);
};

}  // namespace

namespace decode {
extern const PluginEntry kEntry = {.type = "decode-filter",
                                   .help = "keeps endpoints that decode, and those without a role",
                                   .filters = true,
                                   .make = [](const Settings&) -> std::unique_ptr<Plugin> {
                                     return std::make_unique<RoleFilter>(TakesDecode);
                                   }};
}  // namespace decode

namespace prefill {
extern const PluginEntry kEntry = {.type = "prefill-filter",
                                   .help = "keeps endpoints whose role takes prefills",
                                   .filters = true,
                                   .make = [](const Settings&) -> std::unique_ptr<Plugin> {
                                     return std::make_unique<RoleFilter>(TakesPrefill);
                                   }};
}  // namespace prefill

}  // namespace servecast::epp::filter_role
