// presets/evidence.json as arrays, which cmake/embed_evidence.cmake writes.
#pragma once

#include <span>
#include <string_view>

#include "evidence/error_field.h"

namespace servecast {

struct EvidenceSetup {
  std::string_view laboratory, model, form, weights, gpu, engine, run;
  bool expert_parallel;
  double tensor_parallel, active_billions, gpus;
};
struct EvidenceRow {
  std::size_t setup;
  double prompt, output, clients, error;
};

std::span<const EvidenceSetup> EvidenceSetups();
std::span<const EvidenceRow> EvidenceRows();

}  // namespace servecast
