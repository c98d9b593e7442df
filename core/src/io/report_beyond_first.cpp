// Figures as JSON of what the page's first module never runs; see json_put.h.
#include "io/json_put.h"
#include "io/report_work.h"

namespace servecast {

void VisitScaling(const ScalingReport& scaling, JsonPut& put) {
  VisitScaling<JsonPut>(scaling, put);
}
void VisitFailures(const ScalingReport& scaling, JsonPut& put) {
  VisitFailures<JsonPut>(scaling, put);
}
void VisitRetries(const RetryReport& retries, JsonPut& put) { VisitRetries<JsonPut>(retries, put); }
void VisitSpeculation(const SchedulerCounts& counts, JsonPut& put) {
  VisitSpeculation<JsonPut>(counts, put);
}
void VisitImages(const Report& report, JsonPut& put) { VisitImages<JsonPut>(report, put); }

}  // namespace servecast
