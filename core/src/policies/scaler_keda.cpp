#include "serving/scaling/hpa_params.h"
#include "serving/scaling/scaler.h"

namespace servecast::scaler_keda {
namespace {

constexpr auto kParams = [] {
  std::array<ParamSpec, kHpaParams.size() + 2> params = {};
  std::size_t i = 0;
  for (; i < kHpaParams.size(); ++i) params[i] = kHpaParams[i];
  params[i++] = {"polling_s", "s", 1, 3600, 30, "time between looks at whether there is load"};
  params[i] = {"cooldown_s", "s", 0, 1e5, 300, "time without load before the last replica stops"};
  return params;
}();

}  // namespace

extern const ScalerEntry kEntry = {"keda", "KEDA above an HPA: to zero and from zero",
                                   MakeKedaScaler, kParams, true};

}  // namespace servecast::scaler_keda
