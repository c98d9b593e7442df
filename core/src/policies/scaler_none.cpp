#include "serving/scaling/scaler.h"

namespace servecast::scaler_none {

extern const ScalerEntry kEntry = {"none", "the number of replicas is fixed", nullptr};

}  // namespace servecast::scaler_none
