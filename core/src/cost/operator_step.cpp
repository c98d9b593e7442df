// See operator_step.h.
#include "cost/operator_step.h"

#include <algorithm>
#include <cmath>
#include <list>

#include "base/base.h"
#include "base/math.h"
#include "cost/expert_load.h"
#include "cost/matrix_operators.h"

namespace servecast {
namespace {

constexpr double kHead = 128;  // width of the heads that were measured
// Most tokens of prefill attention that are a table of their own.
constexpr std::int64_t kMostRows = std::int64_t{1} << 20;
constexpr double kKeys = 1024;  // that the table of prefill's keys is of
// Of what values take by the bandwidth: caches hold those of small kernels.
constexpr double kCached = 0.25;
// The step whose time tells how much is extrapolated.
constexpr std::int64_t kDecodes = 32, kChunk = 512, kContext = 1024;

// ns of a FLOP and of a byte by the data sheet.
double FlopNs(const HardwareSpec& h, MatrixType type) { return 1 / (PeakTflops(h, type) * 1e3); }
double ByteNs(const HardwareSpec& h) { return 1 / h.memory_bandwidth_gb_s; }

// As the tables call what weights are stored as and multiplied in.
const char* TypeName(MatrixType type, double weight_bytes) {
  if (type == MatrixType::k8) return "fp8";
  if (type == MatrixType::k4) return "nvfp4";
  if (type == MatrixType::kInt8) return "int8";
  return weight_bytes < 1 ? "mxfp4" : "bf16";
}

// Stored and multiplied in the same way.
bool AreAlike(const MatrixOperator& a, const MatrixOperator& b) {
  return a.type == b.type && a.weight_bytes == b.weight_bytes;
}

double ExpertWeightBytes(const ModelSpec& m, const ModelCost& c) {
  const std::int64_t gpus = c.tensor_parallel * c.expert_replicas;
  const double held = c.expert_parallel > 1 ? Real(CeilDiv(m.num_local_experts, gpus))
                                            : Real(m.num_local_experts) / Real(gpus);
  return c.expert_bytes / (Real(ExpertLayers(m)) * Real(m.mlp_matrices) *
                           Real(m.hidden_size * m.intermediate_size) * held);
}

// What whole experts take longer than slices of all, whose kernels were measured: by as much as the
// larger of the busiest GPU's reads and arithmetic exceeds that of the mean.
class Spread {
 public:
  Spread(const ModelSpec& m, const ModelCost& c, double row_ns, double expert_ns)
      : busiest_(Real(c.experts), Real(c.experts_per_token), Real(c.expert_parallel)),
        experts_(Real(c.experts)),
        active_(Real(c.experts_per_token)),
        row_ns_(row_ns),
        expert_ns_(expert_ns),
        on_(c.expert_parallel > 1 && m.num_local_experts > 0) {}

  double At(double tokens) const {
    if (!on_ || tokens == 0) return 1;
    const double touched = ExpertsTouched(experts_, active_, tokens);
    const double rows = tokens * active_ * row_ns_, read = touched * expert_ns_;
    const ExpertLoad load = busiest_.Of(tokens, touched);
    return std::max(rows * load.rows, read * load.read) / std::max(rows, read);
  }

 private:
  BusiestGpu busiest_;
  double experts_, active_, row_ns_, expert_ns_;
  bool on_;
};

// Monotone from here on, whatever was added up or scaled.
void MakeMonotone(std::vector<double>& values) {
  for (std::size_t i = 1; i < values.size(); ++i) values[i] = std::max(values[i], values[i - 1]);
}

// The experts whose shape is nearest, by ratios, and of their type if any are.
struct NearestExperts {
  const OperatorTable* table = nullptr;
  bool exact = false;
};
NearestExperts FindExperts(const OperatorSet& set, const ModelSpec& m, std::string_view type) {
  const std::array<std::int64_t, 3> shape = {m.hidden_size, m.num_local_experts,
                                             m.num_experts_per_tok};
  NearestExperts nearest;
  double least = 0;
  for (const OperatorTable& table : set.tables) {
    if (table.op != "experts" || (table.type != type && table.type != "bf16")) continue;
    double distance = table.type == type ? 0 : 1e3;
    for (std::size_t i = 0; i < 3; ++i)
      distance += std::fabs(Log(Real(shape[i]) / Real(table.shape[i])));
    distance += 0.1 * std::fabs(Log(Real(m.intermediate_size) / Real(table.axes[1].back())));
    if (nearest.table != nullptr && distance >= least) continue;
    least = distance;
    nearest = {&table, table.type == type && table.shape == shape};
  }
  return nearest;
}

struct ExpertGrid {
  OperatorGrid grid;  // by tokens and width; of the third axis there is one place
  bool exact;
};
ExpertGrid GridOfExperts(const OperatorSet& set, const HardwareSpec& hardware, const ModelSpec& m,
                         const ModelCost& cost) {
  const double bytes = ExpertWeightBytes(m, cost);
  const NearestExperts found = FindExperts(set, m, TypeName(cost.expert_type, bytes));
  const double flop_ns = FlopNs(hardware, cost.expert_type), weight_ns = bytes * ByteNs(hardware);
  const double hidden = Real(m.hidden_size), experts = Real(cost.experts),
               active = Real(cost.experts_per_token), of_mlp = Real(m.mlp_matrices);
  const auto bound = [=](const OperatorPoint& p) {
    return std::max(2 * of_mlp * p[0] * active * hidden * p[1] * flop_ns,
                    of_mlp * ExpertsTouched(experts, active, p[0]) * hidden * p[1] * weight_ns);
  };
  if (found.table != nullptr) return {OperatorGrid(*found.table, bound), found.exact};
  // No GPU's experts are nearer than its plain products.
  const std::vector<std::int64_t> one = {1};
  const OperatorTable none{"experts", "bf16", 10, {}, {one, one, one}, {25}};
  return {OperatorGrid(none, bound), false};
}

// Norms, activations and the like, all layers': by the values that they read and write.
class SmallKernels {
 public:
  SmallKernels(const OperatorSet& set, const ModelSpec& m, const ModelCost& cost, double byte_ns)
      : layers_(Real(cost.layers)),
        bytes_(cost.activation_bytes_per_token),
        byte_ns_(byte_ns),
        values_(cost.activation_bytes_per_token / Real(BytesPerValue(m.torch_dtype))) {
    const OperatorTable* table = FindTable(set, "small", "bf16");
    if (table == nullptr) return;
    const double value_ns = set.small_kernel_value_ps * 1e-3;
    grid_.emplace(*table, [=](const OperatorPoint& p) { return p[0] * value_ns; });
  }

  bool Measured() const { return grid_.has_value(); }
  double Ns(double tokens) const {
    if (!grid_) return tokens * bytes_ * byte_ns_;
    return layers_ * grid_->Ns({tokens * values_ / layers_, 1, 1});
  }

 private:
  double layers_, bytes_, byte_ns_, values_;  // of a token
  std::optional<OperatorGrid> grid_;
};

// What tokens take at least, by the data sheet.
class LeastTokens {
 public:
  LeastTokens(const ModelCost& cost, const HardwareSpec& hardware)
      : cost_(cost),
        flop_ns_(cost.dense_flops_per_token * FlopNs(hardware, cost.dense_type) +
                 cost.expert_flops_per_token * FlopNs(hardware, cost.expert_type)),
        byte_ns_(ByteNs(hardware)) {}

  double Ns(double tokens) const {
    double read = 0;
    if (cost_.expert_bytes > 0) {
      read = cost_.expert_bytes *
             ExpertsTouched(Real(cost_.experts), Real(cost_.experts_per_token),
                            tokens * Real(cost_.expert_replicas)) /
             Real(cost_.experts);
    }
    return std::max(tokens * flop_ns_, (cost_.dense_bytes + read) * byte_ns_);
  }

 private:
  const ModelCost& cost_;
  double flop_ns_, byte_ns_;
};

Spread SpreadOf(const ModelSpec& m, const ModelCost& cost, const HardwareSpec& hardware) {
  const double matrices = Real(m.mlp_matrices * m.hidden_size);
  return Spread(
      m, cost, 2 * matrices * FlopNs(hardware, cost.expert_type),
      cost.expert_bytes > 0 ? matrices * ExpertWeightBytes(m, cost) * ByteNs(hardware) : 0);
}

}  // namespace

OperatorStep::OperatorStep(const Scenario& s, const ModelCost& cost, For use)
    : use_(use),
      hardware_(s.hardware),
      byte_ns_(1 / (s.hardware.memory_bandwidth_gb_s * s.hardware.bandwidth_efficiency)) {
  const NearestOperators nearest = FindOperators(s.hardware);
  SERVECAST_CHECK(nearest.set != nullptr, "a step by operators has their file");
  set_ = nearest.set;
  exact_ = nearest.exact;
  if (cost.window_share > 0) {
    windowed_layers_ = std::round(cost.window_share * Real(cost.layers));
    window_ = s.model.sliding_window;
  }
  full_layers_ = Real(cost.layers) - windowed_layers_;
  MakeTokens(s, cost);
  MakeDecode(s, cost);
  MakePrefill(s, cost);
}

void OperatorStep::Account(const std::string& name, double ns, bool measured) {
  total_ns_ += ns;
  if (measured) return;
  extrapolated_ns_ += ns;
  extrapolated_.push_back(name);
}

const OperatorStep::MatrixGrid* OperatorStep::GridOf(const MatrixOperator& m,
                                                     const std::list<MatrixGrid>& grids) {
  for (const MatrixGrid& each : grids) {
    if (AreAlike(each.like, m)) return &each;
  }
  return nullptr;
}

std::list<OperatorStep::MatrixGrid> OperatorStep::GridsOf(
    const std::vector<MatrixOperator>& matrices) const {
  std::list<MatrixGrid> grids;
  for (const MatrixOperator& m : matrices) {
    if (GridOf(m, grids) != nullptr) continue;
    OperatorPoint most = OperatorGrid::kAnywhere;
    if (use_ == For::kCoverage) most[0] = Real(kDecodes + kChunk);
    most[1] = most[2] = 0;
    for (const MatrixOperator& other : matrices) {
      if (!AreAlike(m, other)) continue;
      most[1] = std::max(most[1], Real(other.n));
      most[2] = std::max(most[2], Real(other.k));
    }
    const OperatorTable* table = FindTable(*set_, "gemm", TypeName(m.type, m.weight_bytes));
    const bool measured = table != nullptr && m.weight_bytes > 0.5;
    if (table == nullptr) table = FindTable(*set_, "gemm", "bf16");
    const bool unpacked = m.type == MatrixType::k16 && m.weight_bytes < 2;
    const double flop_ns = FlopNs(hardware_, m.type) / (unpacked ? kUnpackedShare : 1);
    const double weight_ns = m.weight_bytes * ByteNs(hardware_);
    const auto bound = [=](const OperatorPoint& p) {
      return std::max(2 * p[0] * p[1] * p[2] * flop_ns, p[1] * p[2] * weight_ns);
    };
    grids.push_back({m, measured, OperatorGrid(*table, bound, 0, most)});
  }
  return grids;
}

void OperatorStep::MakeTokens(const Scenario& s, const ModelCost& cost) {
  const ModelSpec& m = s.model;
  struct Term {
    const OperatorGrid* grid;
    OperatorPoint point;
    OperatorGrid::Places at;
    double layers;
    double scale;  // a token's coordinate on the first axis
    bool experts = false;
  };
  std::vector<Term> terms;
  const std::vector<MatrixOperator> matrices = MatrixOperatorsOf(m, cost);
  const auto tokens = Real(kDecodes + kChunk);
  const auto add = [&](const char* name, const OperatorGrid& grid, OperatorPoint point,
                       double layers, double scale, bool measured) {
    OperatorPoint at = point;
    at[0] = tokens * scale;
    Account(name, layers * grid.Ns(at), measured && grid.Covers(at));
    terms.push_back(
        {&grid, point, grid.Find(point), layers, scale, std::string_view(name) == "experts"});
  };
  const std::list<MatrixGrid> grids = GridsOf(matrices);
  for (const MatrixOperator& op : matrices) {
    const MatrixGrid& its = *GridOf(op, grids);
    if (&op == &matrices.back()) {
      MakeHead(cost, op, its);
      break;
    }
    add(op.name, its.grid, {1, Real(op.n), Real(op.k)}, op.layers, 1, its.measured);
  }
  std::optional<ExpertGrid> experts;
  const double replicas = Real(cost.expert_replicas);
  if (cost.expert_bytes > 0) {
    experts.emplace(GridOfExperts(*set_, hardware_, m, cost));
    // Whole experts or slices of all: the tokens of all replicas, and a share of the arithmetic.
    const double width =
        Real(m.intermediate_size) / Real(cost.tensor_parallel * cost.expert_replicas);
    add("experts", experts->grid, {1, width, 1}, Real(ExpertLayers(m)), replicas, experts->exact);
  }
  const SmallKernels small(*set_, m, cost, byte_ns_);
  Account("small kernels", small.Ns(tokens), small.Measured());
  struct Reduces {
    GroupAllReduce group;
    double calls, message;  // of a token
  };
  std::vector<Reduces> all_reduces;
  const auto reduce = [&](std::int64_t group, double calls, double message) {
    all_reduces.push_back(
        {{*set_, s.hardware, group, Real(BytesPerValue(m.torch_dtype))}, calls, message});
    const GroupAllReduce& added = all_reduces.back().group;
    Account("all_reduce", calls * added.Ns(tokens * message), added.Measured(tokens * message));
  };
  const double width = Real(m.hidden_size), shared = replicas > 1 ? Real(cost.expert_layers) : 0;
  if (cost.tensor_parallel > 1) reduce(cost.tensor_parallel, 2 * Real(cost.layers) - shared, width);
  // An all-gather and a reduce-scatter of all replicas' tokens.
  if (shared > 0) reduce(cost.tensor_parallel * cost.expert_replicas, shared, replicas * width);
  if (use_ == For::kCoverage) return;
  const LeastTokens least(cost, hardware_);
  const Spread spread = SpreadOf(m, cost, hardware_);
  const auto term_ns = [&spread](const Term& term, std::int64_t n) {
    OperatorPoint point = term.point;
    OperatorGrid::Places at = term.at;
    point[0] = Real(n) * term.scale;
    at[0] = term.grid->Find(0, point[0]);
    return term.layers * term.grid->Ns(point, at) * (term.experts ? spread.At(point[0]) : 1);
  };
  tokens_ = OctaveCurve(5, std::max<std::int64_t>(16384, 2 * s.engine.max_num_batched_tokens),
                        [&](std::int64_t n) {
                          if (n == 0) return 0.0;
                          double ns = small.Ns(Real(n));
                          for (const Term& term : terms) ns += term_ns(term, n);
                          for (const Reduces& r : all_reduces) {
                            ns += r.calls * r.group.Ns(Real(n) * r.message);
                          }
                          return std::max(ns, least.Ns(Real(n)));
                        });
  MakeMonotone(tokens_.Values());
  replicas_ = cost.expert_replicas;
  if (replicas_ > 1) {
    const auto shared_ns = [&](std::int64_t n) {
      double ns = 0;
      for (const Term& term : terms) ns += term.experts && n > 0 ? term_ns(term, n) : 0;
      const Reduces& exchange = all_reduces.back();
      return n == 0 ? 0.0 : ns + exchange.calls * exchange.group.Ns(Real(n) * exchange.message);
    };
    shared_ = OctaveCurve(5, std::max<std::int64_t>(16384, 2 * s.engine.max_num_batched_tokens),
                          shared_ns);
    MakeMonotone(shared_.Values());
  }
  const double read_ns = cost.dense_bytes * ByteNs(hardware_);
  const double dense_flop_ns = cost.dense_flops_per_token * FlopNs(hardware_, cost.dense_type);
  if (dense_flop_ns > 0) compute_bound_from_ = static_cast<std::int64_t>(read_ns / dense_flop_ns);
}

void OperatorStep::MakeHead(const ModelCost& cost, const MatrixOperator& head,
                            const MatrixGrid& matrix) {
  if (head.n == 0) {  // a pipeline stage before the last one
    head_ = OctaveCurve(4, 4096, [](std::int64_t) { return 0.0; });
    return;
  }
  const OperatorGrid& grid = matrix.grid;
  const OperatorPoint at = {Real(kDecodes), Real(head.n), Real(head.k)};
  Account(head.name, grid.Ns(at), matrix.measured && grid.Covers(at));
  if (use_ == For::kCoverage) return;
  OperatorGrid::Places places = grid.Find(at);
  const double flop_ns = cost.lm_head_flops_per_token * FlopNs(hardware_, MatrixType::k16);
  const double read_ns = cost.lm_head_bytes * ByteNs(hardware_);
  head_ = OctaveCurve(4, 4096, [&](std::int64_t rows) {
    if (rows == 0) return 0.0;
    places[0] = grid.Find(0, Real(rows));
    return std::max({grid.Ns({Real(rows), at[1], at[2]}, places), Real(rows) * flop_ns, read_ns});
  });
  MakeMonotone(head_.Values());
}

void OperatorStep::MakeDecode(const Scenario& s, const ModelCost& cost) {
  const ModelSpec& m = s.model;
  const double layers = Real(cost.layers);
  const double pair_ns = cost.decode_flops_per_pair / layers * FlopNs(hardware_, MatrixType::k16);
  const double read_ns = cost.kv_bytes_per_token / layers * ByteNs(hardware_);
  const double token_ns = std::max(pair_ns, read_ns);  // the least that a token of context takes
  const bool eight = s.engine.kv_cache_dtype == KvCacheDType::kFp8;
  const OperatorTable* table = FindTable(*set_, "decode", eight ? "fp8" : "bf16");
  const bool measured = table != nullptr && !Latent(m);
  if (table == nullptr) table = FindTable(*set_, "decode", "bf16");
  const double heads = Real(m.num_attention_heads / cost.tensor_parallel);
  const double kv = Real(KvHeads(m, cost.tensor_parallel));
  const double width = Real(m.head_dim) / kHead;
  // Axes: query heads of a KV head, sequences times KV heads, context. By their own width and type.
  const double read =
      2 * kHead * (eight ? 1 : Real(BytesPerValue(m.torch_dtype))) * ByteNs(hardware_);
  const double work = 4 * kHead * FlopNs(hardware_, MatrixType::k16);
  const OperatorGrid grid(
      *table, [=](const OperatorPoint& p) { return p[1] * p[2] * std::max(read, p[0] * work); }, 1,
      {heads / kv, OperatorGrid::kAnywhere[1], OperatorGrid::kAnywhere[2]});
  // Contexts beyond the table are the same work in more streams, as keys are split over the GPU.
  const std::int64_t length = s.engine.max_model_len.value_or(m.max_position_embeddings);
  const auto longest = Real(table->axes[2].back());
  const auto point = [&](double n, double contexts) {
    const double context = std::min(contexts / n, Real(length)) * width;
    return OperatorPoint{heads / kv, n * kv * std::max(1.0, context / longest),
                         std::min(context, longest)};
  };
  OperatorPoint last = {};
  OperatorGrid::Places places;
  double last_ns = 0;
  const auto ns_at = [&](const OperatorPoint& p) {  // many in turn are one point, or nearly
    if (p == last) return last_ns;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (p[axis] != last[axis]) places[axis] = grid.Find(axis, p[axis]);
    }
    last = p;
    return last_ns = grid.Ns(p, places);
  };
  const auto price = [&](std::int64_t n, std::int64_t contexts) {
    if (n == 0 || contexts == 0) return 0.0;
    const double k = Real(std::max(n, contexts));
    if (!Latent(m)) return std::max(ns_at(point(Real(n), k)), k * token_ns);
    const double reached = std::max(pair_ns / s.hardware.attention_efficiency,
                                    read_ns / s.hardware.bandwidth_efficiency);
    return grid.FloorNs() + k * reached;
  };
  const std::int64_t seats = std::max<std::int64_t>(s.engine.max_num_seqs, 64);
  const bool steps = use_ == For::kSteps;
  const std::int64_t most = steps ? std::int64_t{1} << 40 : kDecodes * kContext;
  decode_ = OctavePlane(2, steps ? seats : kDecodes, std::min(seats * length, most), price);
  // Beyond the table it grows in proportion, which the least does as well.
  const OperatorPoint at = point(Real(kDecodes), Real(kDecodes * kContext));
  Account("decode attention", layers * decode_.At(kDecodes, kDecodes * kContext),
          measured && width == 1 && grid.Covers(at));
}

void OperatorStep::MakePrefill(const Scenario& s, const ModelCost& cost) {
  const ModelSpec& m = s.model;
  const double layers = Real(cost.layers), flop_ns = FlopNs(hardware_, MatrixType::k16);
  const double row_ns = kCached * 4 * kHead * ByteNs(hardware_);
  const OperatorGrid rows(*FindTable(*set_, "prefill", "rows"),
                          [=](const OperatorPoint& p) { return p[0] * row_ns; });
  const OperatorGrid keys(*FindTable(*set_, "prefill", "keys"), [=](const OperatorPoint& p) {
    return kKeys * 4 * kHead * p[0] * flop_ns;
  });
  // The tables count rows of heads of their own width.
  const double unit = cost.attention_flops_per_pair / layers / (4 * kHead);
  const auto curve = [&](const OperatorGrid& grid, double part) {
    OctaveCurve out(3, kMostRows, [&](std::int64_t n) {
      return n == 0 ? 0.0 : part * grid.Ns({Real(n) * unit, 1, 1});
    });
    MakeMonotone(out.Values());
    // Two chunks take no less than one of their rows: the time of a row never rises.
    std::vector<double>& ns = out.Values();
    for (std::size_t i = ns.size() - 1; i > 1; --i) {
      ns[i - 1] = std::max(ns[i - 1], ns[i] * Real(out.Knot(i - 1)) / Real(out.Knot(i)));
    }
    return out;
  };
  rows_ = curve(rows, 1);
  key_ = curve(keys, 1 / kKeys);
  tile_ = static_cast<std::int64_t>(set_->prefill_tile);
  pair_ns_ = key_.At(kMostRows) / Real(kMostRows);
  least_key_ns_ = cost.kv_bytes_per_token / layers * ByteNs(hardware_);
  key_ns_ = least_key_ns_ / s.hardware.bandwidth_efficiency;
  prefill_token_ns_ = set_->prefill_kv_token_ns * cost.kv_bytes_per_token / layers / (4 * kHead);
  least_pair_ns_ = cost.attention_flops_per_pair / layers * flop_ns;
  least_decode_pair_ns_ = cost.decode_flops_per_pair / layers * flop_ns;
  mixed_pair_ns_ =
      s.hardware.mixed_attention_rows * least_decode_pair_ns_ / s.hardware.attention_efficiency;
  one_kernel_ns_ = std::min(rows_.At(1), decode_.At(1, 1));
  AttentionWork work;
  Add(kChunk, kContext, work);
  Account("prefill attention", Attention(work),
          !Latent(m) && m.head_dim == 128 && keys.Covers({Real(kChunk) * unit, 1, 1}));
}

void OperatorStep::Add(std::int64_t tokens, std::int64_t context, AttentionWork& work) const {
  const std::int64_t rows = (tokens + tile_ - 1) & -tile_;  // tiles are powers of two
  const std::int64_t filled = std::max(tokens, tile_);
  const double n = Real(tokens), before = Real(context);
  const double causal = n * (n + 1) / 2, pairs = Real(rows) * before + causal;
  const double key = key_.At(rows), of_filled = filled == rows ? key : key_.At(filled);
  const double slowest = before * key + causal * of_filled / Real(filled);
  work.tokens += n;
  work.rows += Real(rows);
  work.pairs += pairs;
  work.keys += before + n;
  work.slowest = std::max(work.slowest, slowest);
  if (window_ == 0) return;
  const double window = Real(window_);
  work.windowed_pairs += std::min(pairs, Real(rows) * window);
  work.windowed_keys += std::min(before + n, n + window);
  work.windowed_slowest = std::max(work.windowed_slowest, std::min(slowest, window * key));
}

double OperatorStep::OfLayer(const AttentionWork& w, std::int64_t contexts, const Chunks& c) const {
  const double decode = w.decodes > 0 ? decode_.At(w.decodes, contexts) : 0;
  if (w.tokens == 0) return decode;
  const double prompts = rows_.At(static_cast<std::int64_t>(w.rows)) +
                         prefill_token_ns_ * w.tokens + std::max(c.pairs * pair_ns_, c.slowest);
  const double chunks = std::max(prompts, c.keys * key_ns_);
  if (w.decodes == 0) return chunks;
  // One kernel does both: it starts once, and each decode fills a tile of query rows.
  const double both = std::max(decode, Real(contexts) * mixed_pair_ns_) + chunks - one_kernel_ns_;
  return std::max({both, Real(contexts) * least_decode_pair_ns_ + c.pairs * least_pair_ns_,
                   (Real(contexts) + c.keys) * least_key_ns_});
}

double OperatorStep::Attention(const AttentionWork& w) const {
  double ns = full_layers_ * OfLayer(w, w.contexts, {w.pairs, w.keys, w.slowest});
  if (windowed_layers_ > 0) {
    const Chunks chunks{w.windowed_pairs, w.windowed_keys, w.windowed_slowest};
    ns += windowed_layers_ * OfLayer(w, std::min(w.contexts, w.decodes * window_), chunks);
  }
  return ns;
}

}  // namespace servecast
