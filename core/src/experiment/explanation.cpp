// See explanation.h.
#include "experiment/explanation.h"

#include <string_view>
#include <vector>

namespace servecast {
namespace {

void WriteSide(std::string_view key, const Blame::Side& side, bool per_token, JsonWriter& out) {
  out.Key(key), out.BeginObject();
  out.Key("requests"), out.Integer(side.requests);
  const std::int64_t of = per_token ? side.tokens : side.requests;
  const auto mean_ms = [of](std::int64_t ns) {
    return of > 0 ? static_cast<double>(ns) / 1e6 / static_cast<double>(of) : 0;
  };
  out.Key("mean_ms"), out.Number(mean_ms(side.total_ns));
  out.Key("parts_ms"), out.BeginObject();
  for (std::size_t p = 0; p < side.parts_ns.size(); ++p) {
    out.Key(TimeSplitReport::kNames[p]), out.Number(mean_ms(side.parts_ns[p]));
  }
  out.EndObject();
  out.Key("total_ns"), out.Integer(side.total_ns);
  out.Key("parts_ns"), out.BeginObject();
  for (std::size_t p = 0; p < side.parts_ns.size(); ++p) {
    out.Key(TimeSplitReport::kNames[p]), out.Integer(side.parts_ns[p]);
  }
  out.EndObject();
  out.EndObject();
}

void WriteBlames(const std::vector<Blame>& blames, JsonWriter& out) {
  out.Key("blame"), out.BeginObject();
  for (const Blame& blame : blames) {
    out.Key(blame.metric), out.BeginObject();
    out.Key("from_ms"), out.Number(blame.from_ms);
    const bool per_token = blame.metric == "tpot";
    WriteSide("slowest", blame.slowest, per_token, out);
    WriteSide("all", blame.all, per_token, out);
    out.EndObject();
  }
  out.EndObject();
}

}  // namespace

void WriteExplanation(const Experiment& experiment, JsonWriter& out) {
  out.Key("limits"), out.BeginArray();
  for (const Relief& relief : experiment.Reliefs()) {
    out.BeginObject();
    out.Key("name"), out.Text(relief.name);
    out.Key("gain"), out.Number(relief.gain);
    if (!relief.pools.empty()) {
      out.Key("pools"), out.BeginArray();
      for (const double gain : relief.pools) out.Number(gain);
      out.EndArray();
    }
    out.EndObject();
  }
  out.EndArray();
  WriteBlames(experiment.Blames(), out);
}

}  // namespace servecast
