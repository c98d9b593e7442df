// What drafts change, in the reference of one replica: rules S1 to S31 of the golden traces with
// drafts, read a second time.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/base.h"
#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast::testing {

class ReferenceDrafts {
 public:
  // All outlive it.
  ReferenceDrafts(const EngineSpec& engine, const RequestTable& requests, std::int64_t seed)
      : engine_(engine),
        spec_(engine.speculative),
        requests_(requests),
        seed_(seed),
        rates_(Rates(0)) {
    for (const double length : requests.acceptance_length) of_length_[length] = Rates(length);
  }

  bool On() const { return spec_.method != DraftMethod::kNone; }
  std::int64_t Most() const { return On() ? spec_.num_speculative_tokens : 0; }
  std::int64_t Lookahead() const;  // S1
  std::int64_t Budget() const;     // S2
  bool DropsLastHit() const;       // S18
  bool Pads() const;               // S9
  bool HostLooksUp() const { return spec_.method == DraftMethod::kNgram; }
  std::int64_t AfterStepOf(std::int64_t members) const;  // S28

  // The n-th entry of a request, from 0 on; the engine's law where there is no list.
  std::int64_t Accepted(std::int64_t row, std::int64_t n, std::int64_t drafts) const;
  std::int64_t Proposed(std::int64_t row, std::int64_t n, std::int64_t most) const;

  std::int32_t Lora(std::int64_t row) const {
    return requests_.lora.empty() ? 0 : requests_.lora[static_cast<std::size_t>(row)];
  }

 private:
  // Of a mean length; 0: of the engine.
  std::vector<double> Rates(double length) const;

  const EngineSpec& engine_;
  const SpeculativeSpec& spec_;
  const RequestTable& requests_;
  std::int64_t seed_;
  std::vector<double> rates_;
  std::map<double, std::vector<double>> of_length_;
};

}  // namespace servecast::testing
