#include "serving/scaling/hpa_params.h"
#include "serving/scaling/scaler.h"

namespace servecast::scaler_hpa {

extern const ScalerEntry kEntry = {"hpa", "Kubernetes' HPA on a metric with an average target",
                                   MakeHpaScaler, kHpaParams};

}  // namespace servecast::scaler_hpa
