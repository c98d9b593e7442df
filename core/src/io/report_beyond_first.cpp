// Figures as JSON of what the page's first module never runs; see json_put.h.
#include "io/json_put.h"
#include "io/report_work.h"

namespace servecast {

void VisitPools(const Report& report, Scope scope, JsonPut& put) {
  VisitPools<JsonPut>(report, scope, put);
}
void VisitReplicas(const Report& report, JsonPut& put) { VisitReplicas<JsonPut>(report, put); }
void VisitScaling(const ScalingReport& scaling, JsonPut& put) {
  VisitScaling<JsonPut>(scaling, put);
}
void VisitFailures(const ScalingReport& scaling, JsonPut& put) {
  VisitFailures<JsonPut>(scaling, put);
}
void VisitSlow(const SlowReport& slow, JsonPut& put) { VisitSlow<JsonPut>(slow, put); }
void VisitRetries(const RetryReport& retries, JsonPut& put) { VisitRetries<JsonPut>(retries, put); }
void VisitSpeculation(const SchedulerCounts& counts, JsonPut& put) {
  VisitSpeculation<JsonPut>(counts, put);
}
void VisitImages(const Report& report, JsonPut& put) { VisitImages<JsonPut>(report, put); }

}  // namespace servecast
