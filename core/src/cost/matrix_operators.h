// Which products with weights a GPU of a tensor-parallel group makes, by a model's figures.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/model_cost.h"

namespace servecast {

// One product with weights, of all layers that have it: rows x k by k x n.
struct MatrixOperator {
  const char* name;
  std::int64_t n = 0, k = 0;
  double layers = 0;
  double weight_bytes = 2;  // of one
  MatrixType type = MatrixType::k16;
};

// Those of all layers but experts; the LM head is the last, and only one row a sampled token.
std::vector<MatrixOperator> MatrixOperatorsOf(const ModelSpec& model, const ModelCost& cost);

// KV heads that a GPU of the group holds: at least one.
std::int64_t KvHeads(const ModelSpec& model, std::int64_t tensor_parallel);

}  // namespace servecast
