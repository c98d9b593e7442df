// See pack_json.h.
#include "calibrate/pack_json.h"

#include <string_view>
#include <utility>

namespace servecast {
namespace {

using Ordered = nlohmann::ordered_json;

}  // namespace

Ordered PackHead(std::string_view backend) {
  return {{"kind", kPackKind},
          {"schema", kPackSchema},
          {"spec_version", kCalibrationSpecVersion},
          {"backend", backend}};
}

Ordered OriginJson(const PackOrigin& origin) {
  return {{"model", origin.model},
          {"gpu", origin.gpu},
          {"engine", origin.engine},
          {"with", origin.with},
          {"tensor_parallel", origin.tensor_parallel},
          {"files", origin.files},
          {"measurements", origin.measurements},
          {"date", origin.date}};
}

Ordered ReplayJson(const std::vector<ReplayDistance>& before,
                   const std::vector<ReplayDistance>& after) {
  Ordered list = Ordered::array();
  for (const ReplayDistance& d : after) {
    Ordered one = {{"figure", d.figure},
                   {"values", d.measured},
                   {"ks", PackNumber(d.ks)},
                   {"measured_p50_ms", PackNumber(d.measured_p50_ms)},
                   {"simulated_p50_ms", PackNumber(d.simulated_p50_ms)},
                   {"met", d.met}};
    for (const ReplayDistance& b : before) {
      if (std::string_view(b.figure) == d.figure) one["ks_before"] = PackNumber(b.ks);
    }
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace servecast
