// The time of a step by the tables of presets/operators as they stand in the files, composed slowly
// and plainly: a second reading of docs/model.md. Dense, expert (shared by replicas, too) and
// sliding-window models with plain attention; GPUs that have tables; no launch options.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "servecast/scenario.h"
#include "serving/batch.h"

namespace servecast::testing {

class OperatorReference {
 public:
  // `gpu`: the preset's id, for whose figures the scenario is.
  OperatorReference(const std::string& gpu, const Scenario& scenario);
  ~OperatorReference();

  double StepNs(const BatchShape& shape) const;

 private:
  struct Tables;
  double Product(double rows, double n, double k, const std::string& type, double weight_bytes,
                 double peak) const;
  double ExpertNs(double tokens) const;
  double AllReduceNs(double group, double elements) const;
  double TokensNs(double tokens) const;
  double DecodeNs(double sequences, double contexts) const;
  double PrefillNs(const char* of, double rows) const;
  double DecodeTable(double sequences, double contexts) const;
  double PrefillTable(const std::vector<double>& values, double rows) const;
  double AttentionOfLayer(const BatchShape& shape, bool windowed) const;

  Scenario s_;
  std::unique_ptr<Tables> tables_;
  double tp_, shared_, heads_, kv_heads_, layers_, bytes_, windowed_;
};

}  // namespace servecast::testing
