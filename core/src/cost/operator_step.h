// The device's part of a step's time, composed from measured operators: what one GPU of a
// tensor-parallel group takes. Everything that a step varies is a table over it, made here once, so
// each function below is O(1). Nanoseconds; not decreasing in any argument; no faster than the
// work of ModelCost at the peaks.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "cost/group_all_reduce.h"
#include "cost/matrix_operators.h"
#include "cost/model_cost.h"
#include "cost/octaves.h"
#include "cost/operator_grid.h"

namespace servecast {

// The attention of a step. Of layers with a sliding window, what they see.
struct AttentionWork {
  std::int64_t decodes = 0, contexts = 0;  // tokens, the decodes' own included
  // Prefill chunks, added up; those of OperatorStep::Add.
  double tokens = 0, rows = 0;               // with what its last tile has more
  double pairs = 0, windowed_pairs = 0;      // of a query and a key
  double keys = 0, windowed_keys = 0;        // tokens whose K and V are read
  double slowest = 0, windowed_slowest = 0;  // ns of the pairs of the chunk that takes longest
};

class OperatorStep {
 public:
  enum class For {
    kSteps,
    kCoverage,  // only what the tables cover is asked for, which takes a third as long to make
  };
  OperatorStep(const Scenario& scenario, const ModelCost& cost, For use = For::kSteps);

  // Matrix products, experts, the small kernels between them, all-reduces; >= 1 token.
  double Tokens(std::int64_t tokens) const { return tokens_.At(tokens); }
  // Of a rank whose group computes so many, see BatchShape::group_tokens: experts and their
  // exchange see the mean of all.
  double Tokens(std::int64_t tokens, std::int64_t group) const {
    if (group == 0 || replicas_ == 1) return Tokens(tokens);
    return Tokens(tokens) + shared_.At(CeilDiv(group, replicas_)) - shared_.At(tokens);
  }
  double Head(std::int64_t sampled) const { return head_.At(sampled); }
  // A chunk of so many tokens, with so many before it.
  void Add(std::int64_t tokens, std::int64_t context, AttentionWork& work) const;
  double Attention(const AttentionWork& work) const;
  // So many (query, key) pairs of decodes with several queries each, at the GPU's share of its
  // peak.
  double DecodePairs(std::int64_t pairs) const {
    return (full_layers_ + windowed_layers_) * static_cast<double>(pairs) * least_decode_pair_ns_ /
           hardware_.attention_efficiency;
  }

  std::int64_t ComputeBoundFrom() const { return compute_bound_from_; }  // tokens
  // The table at hand, whether it is of this very GPU, and of a step of 32 decodes and a chunk of
  // 512 tokens, contexts of 1,024, the share of time that no table covers and the operators that
  // are extrapolated there.
  const OperatorSet& Set() const { return *set_; }
  bool Exact() const { return exact_; }
  double ExtrapolatedShare() const { return total_ns_ > 0 ? extrapolated_ns_ / total_ns_ : 0; }
  const std::vector<std::string>& Extrapolated() const { return extrapolated_; }

 private:
  // Of all matrices that are stored and multiplied alike.
  struct MatrixGrid {
    MatrixOperator like;  // one of them
    bool measured;
    OperatorGrid grid;
  };
  void MakeTokens(const Scenario& s, const ModelCost& cost);
  void MakeHead(const ModelCost& cost, const MatrixOperator& head, const MatrixGrid& matrix);
  void MakeDecode(const Scenario& s, const ModelCost& cost);
  void MakePrefill(const Scenario& s, const ModelCost& cost);
  struct Chunks {
    double pairs, keys, slowest;
  };
  double OfLayer(const AttentionWork& work, std::int64_t contexts, const Chunks& chunks) const;
  // nullptr: there is none yet.
  static const MatrixGrid* GridOf(const MatrixOperator& m, const std::list<MatrixGrid>& grids);
  std::list<MatrixGrid> GridsOf(const std::vector<MatrixOperator>& matrices) const;
  void Account(const std::string& name, double ns, bool measured);

  const OperatorSet* set_;
  For use_;
  bool exact_;
  HardwareSpec hardware_;
  double byte_ns_;  // at the bandwidth reached, for what has no table
  OctaveCurve tokens_, head_;
  OctaveCurve shared_;         // of tokens_, what replicas share: experts and their exchange
  std::int64_t replicas_ = 1;  // that share experts
  OctaveCurve rows_, key_;  // of prefill attention: what rows take, and what a key takes for them
  OctavePlane decode_;
  double full_layers_ = 0, windowed_layers_ = 0;
  std::int64_t window_ = 0, tile_ = 1;
  // Of a layer's attention: a token of prefill; a key that is read, as reached and at best; a pair
  // of a query and a key in decode at best, in decode beside prefill, in prefill as reached and at
  // best.
  double prefill_token_ns_ = 0, key_ns_ = 0, least_key_ns_ = 0;
  double least_decode_pair_ns_ = 0, mixed_pair_ns_ = 0, pair_ns_ = 0, least_pair_ns_ = 0;
  double one_kernel_ns_ = 0;  // what decodes and prefill take once, being one kernel's
  std::int64_t compute_bound_from_ = INT64_MAX;
  double total_ns_ = 0, extrapolated_ns_ = 0;
  std::vector<std::string> extrapolated_;
};

}  // namespace servecast
