#include "serving/scaling/scaler.h"

namespace servecast::scaler_schedule {

extern const ScalerEntry kEntry = {
    "schedule", "replicas by the clock", MakeScheduledScaler, {}, true, true};

}  // namespace servecast::scaler_schedule
