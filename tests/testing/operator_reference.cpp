// See operator_reference.h.
#include "testing/operator_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "testing/data_files.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;
using Point = std::array<double, 3>;
using Bound = std::function<double(Point)>;

// A table by the words of its file: codes above a bound, raised where a smaller point takes longer;
// but points of other query heads a KV head say nothing of each other.
class Table {
 public:
  Table(const Json& file, Bound bound)
      : bound_(std::move(bound)), floor_(1e3 * double(file["floor_us"])) {
    const char* names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; ++i) axes_[i] = file[names[i]].get<std::vector<double>>();
    const auto codes = file["codes"].get<std::vector<int>>();
    std::size_t next = 0;
    for (const double a : axes_[0]) {
      for (const double b : axes_[1]) {
        for (const double c : axes_[2]) {
          const double least = bound_({a, b, c});
          points_.push_back({a, b, c});
          times_.push_back(std::max(least, (floor_ + least) * std::exp(codes[next++] / 50.0)));
        }
      }
    }
    const std::vector<double> raw = times_;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Point &p = points_[i], &q = points_[j];
        if (file["op"] == "decode" && q[0] != p[0]) continue;
        if (q[0] <= p[0] && q[1] <= p[1] && q[2] <= p[2]) times_[i] = std::max(times_[i], raw[j]);
      }
    }
  }

  double Ns(const Point& at) const {
    Point inside = at;
    for (int i = 0; i < 3; ++i) {
      inside[i] = std::min(std::max(at[i], axes_[i].front()), axes_[i].back());
    }
    const double ns = std::exp(Between(0, inside, {}));
    // An axis of one point that is 1 counts nothing.
    Point border = at;
    for (int i = 0; i < 3; ++i) {
      if (axes_[i].size() > 1 || axes_[i][0] != 1) border[i] = inside[i];
    }
    return std::max(bound_(at), ns * (floor_ + bound_(at)) / (floor_ + bound_(border)));
  }

 private:
  double Between(int axis, const Point& at, std::vector<std::size_t> chosen) const {
    if (axis == 3) {
      return std::log(
          times_[(chosen[0] * axes_[1].size() + chosen[1]) * axes_[2].size() + chosen[2]]);
    }
    const std::vector<double>& a = axes_[static_cast<std::size_t>(axis)];
    std::size_t i = 0;
    while (i + 1 < a.size() && a[i + 1] <= at[static_cast<std::size_t>(axis)]) ++i;
    chosen.push_back(i);
    const double low = Between(axis + 1, at, chosen);
    if (a[i] == at[static_cast<std::size_t>(axis)]) return low;
    const double way =
        std::log(at[static_cast<std::size_t>(axis)] / a[i]) / std::log(a[i + 1] / a[i]);
    chosen.back() = i + 1;
    return low + way * (Between(axis + 1, at, chosen) - low);
  }

  Bound bound_;
  double floor_;
  std::array<std::vector<double>, 3> axes_;
  std::vector<Point> points_;
  std::vector<double> times_;
};

// Whole numbers to 2^(bits+1), then 2^bits of them in each power of two, until beyond `last`.
std::vector<double> Knots(int bits, double last) {
  std::vector<double> knots;
  const double part = std::exp2(bits);
  for (double x = 0; x < 2 * part; ++x) knots.push_back(x);
  for (double octave = 2 * part; knots.back() <= last; octave *= 2) {
    for (double i = 0; i < part; ++i) knots.push_back(octave + i * octave / part);
  }
  return knots;
}

// The knots around x and how far x is between them.
struct Around {
  std::size_t low, high;
  double way;
};
Around Find(const std::vector<double>& knots, double x) {
  std::size_t i = 0;
  while (knots[i + 1] <= x) ++i;
  return {i, i + 1, (x - knots[i]) / (knots[i + 1] - knots[i])};
}

}  // namespace

struct OperatorReference::Tables {
  Json document;
  const Json& Find(const std::string& op, const std::string& type) const {
    for (const Json& table : document["tables"]) {
      if (table["op"] == op && table["type"] == type) return table;
    }
    std::fprintf(stderr, "no table of %s %s\n", op.c_str(), type.c_str());
    std::abort();
  }
  // Made once each: monotone tables are slow to make.
  std::map<std::string, Table> made;
  const Table& Get(const std::string& name, const Json& file, const Bound& bound) {
    const auto found = made.find(name);
    return found != made.end() ? found->second : made.try_emplace(name, file, bound).first->second;
  }
  std::vector<double> tokens, rows, key;  // at their knots
  std::vector<std::vector<double>> decode;
  std::vector<double> token_knots, prefill_knots, decode_rows, decode_columns;
};

OperatorReference::~OperatorReference() = default;

OperatorReference::OperatorReference(const std::string& gpu, const Scenario& s)
    : s_(s), tables_(std::make_unique<Tables>()) {
  const std::string path =
      std::string(SERVECAST_SOURCE_DIR) + "/presets/operators/" + gpu + ".json";
  tables_->document = Json::parse(ReadFile(path).value())["document"];
  const ModelSpec& m = s_.model;
  tp_ = double(s.cluster.pools[0].tensor_parallel);
  shared_ = double(s.cluster.pools[0].attention_data_parallel);
  heads_ = double(m.num_attention_heads) / tp_;
  kv_heads_ = std::max(1.0, double(m.num_key_value_heads) / tp_);
  layers_ = double(m.num_hidden_layers);
  bytes_ = 2;
  windowed_ = m.sliding_window > 0 ? double(m.num_sliding_layers) : 0;
  Tables& t = *tables_;
  t.token_knots = Knots(5, std::max(16384.0, 2.0 * double(s.engine.max_num_batched_tokens)));
  for (const double x : t.token_knots) {
    t.tokens.push_back(x == 0 ? 0 : std::max(TokensNs(x), t.tokens.back()));
  }
  t.prefill_knots = Knots(3, std::exp2(20));
  for (const char* of : {"rows", "keys"}) {
    std::vector<double>& values = of == std::string("rows") ? t.rows : t.key;
    for (const double x : t.prefill_knots) {
      values.push_back(x == 0 ? 0 : std::max(PrefillNs(of, x), values.back()));
    }
    for (std::size_t i = values.size() - 1; i-- > 1;) {
      const double least = values[i + 1] * t.prefill_knots[i] / t.prefill_knots[i + 1];
      values[i] = std::max(values[i], least);
    }
  }
  const double seats = std::max(64.0, double(s.engine.max_num_seqs));
  const double length = double(s.engine.max_model_len.value_or(m.max_position_embeddings));
  t.decode_rows = Knots(2, seats);
  t.decode_columns = Knots(2, std::min(seats * length, std::exp2(40)));
  for (std::size_t i = 0; i < t.decode_rows.size(); ++i) {
    std::vector<double> row;
    for (std::size_t j = 0; j < t.decode_columns.size(); ++j) {
      double ns = DecodeNs(t.decode_rows[i], t.decode_columns[j]);
      if (j > 0) ns = std::max(ns, row[j - 1]);
      if (i > 0) ns = std::max(ns, t.decode[i - 1][j]);
      row.push_back(ns);
    }
    t.decode.push_back(row);
  }
}

double OperatorReference::Product(double rows, double n, double k, const std::string& type,
                                  double weight_bytes, double peak) const {
  const double bandwidth = s_.hardware.memory_bandwidth_gb_s;
  const Bound bound = [=](const Point& p) {
    return std::max(2 * p[0] * p[1] * p[2] / (peak * 1e3), p[1] * p[2] * weight_bytes / bandwidth);
  };
  return tables_->Get("gemm" + type, tables_->Find("gemm", type), bound).Ns({rows, n, k});
}

double OperatorReference::ExpertNs(double tokens) const {
  const ModelSpec& m = s_.model;
  const double experts = double(m.num_local_experts), active = double(m.num_experts_per_tok);
  const double hidden = double(m.hidden_size), bandwidth = s_.hardware.memory_bandwidth_gb_s;
  const double peak = s_.hardware.peak_bf16_tflops * 1e3;
  const bool four = m.quantization == Quantization::kMxfp4;
  const double bytes = four ? 0.53125 : 2;
  for (const Json& table : tables_->document["tables"]) {
    if (table["op"] != "experts" || table["type"] != (four ? "mxfp4" : "bf16")) continue;
    const Json& shape = table["shape"];
    if (shape[0] != m.hidden_size || shape[1] != m.num_local_experts ||
        shape[2] != m.num_experts_per_tok) {
      continue;
    }
    const Bound bound = [=](const Point& p) {
      const double touched = experts * (1 - std::pow(1 - active / experts, p[0]));
      return std::max(6 * p[0] * active * hidden * p[1] / peak,
                      3 * touched * hidden * p[1] * bytes / bandwidth);
    };
    // All replicas' tokens, and on this GPU a slice of each expert.
    return tables_->Get("experts", table, bound)
        .Ns({tokens * shared_, double(m.intermediate_size) / (tp_ * shared_), 1});
  }
  std::fprintf(stderr, "no table of these experts\n");
  std::abort();
}

double OperatorReference::AllReduceNs(double group, double elements) const {
  const HardwareSpec& h = s_.hardware;
  const double node = double(h.gpus_per_node);
  if (node > 0 && group > node) {  // a node's, then a ring of nodes and two ways through a tree
    const double nodes = std::ceil(group / node);
    const double ring = elements * bytes_ / node * 2 * (nodes - 1) / nodes;
    return AllReduceNs(node, elements) + ring / (0.68 * h.inter_node_gb_s) +
           2 * std::log2(nodes) * 1e3 * h.inter_node_latency_us;
  }
  const double wire = 2 * (group - 1) / group * bytes_ / s_.hardware.interconnect_gb_s;
  for (const Json& table : tables_->document["tables"]) {
    if (table["op"] != "all_reduce" || table["shape"][0] != group) continue;
    const std::string name = "all_reduce of " + std::to_string(static_cast<int>(group));
    return tables_->Get(name, table, [=](const Point& p) { return p[0] * wire; })
        .Ns({elements, 1, 1});
  }
  std::fprintf(stderr, "no table of this all-reduce\n");
  std::abort();
}

double OperatorReference::TokensNs(double tokens) const {
  const ModelSpec& m = s_.model;
  const double hidden = double(m.hidden_size), width = double(m.head_dim);
  const double peak = s_.hardware.peak_bf16_tflops;
  const auto product = [&](double n, double k) { return Product(tokens, n, k, "bf16", 2, peak); };
  double layer =
      product((heads_ + 2 * kv_heads_) * width, hidden) + product(hidden, heads_ * width);
  const double mlp = double(m.intermediate_size) / tp_;
  const double active = std::max(1.0, double(m.num_experts_per_tok));
  if (m.num_local_experts == 0) {
    layer += product((double(m.mlp_matrices) - 1) * mlp, hidden) + product(hidden, mlp);
  } else {
    layer += product(double(m.num_local_experts), hidden) + ExpertNs(tokens);
  }
  if (tp_ > 1) layer += (shared_ > 1 ? 1 : 2) * AllReduceNs(tp_, tokens * hidden);
  if (shared_ > 1) layer += AllReduceNs(tp_ * shared_, tokens * shared_ * hidden);
  // Norms with the residual, rotary embedding, KV write and activation: values read and written.
  const double kv = std::max(double(m.num_key_value_heads), tp_);
  const double values =
      8 * hidden + (2 * (double(m.num_attention_heads) + 2 * kv) * width +
                    double(m.mlp_matrices) * active * double(m.intermediate_size)) /
                       tp_;
  const Json& d = tables_->document;
  const double reached = s_.hardware.memory_bandwidth_gb_s * s_.hardware.bandwidth_efficiency;
  const double value_ns = 1e-3 * double(d["small_kernel_value_ps"]);
  double small = values * tokens * bytes_ / reached;
  for (const Json& table : d["tables"]) {
    if (table["op"] != "small") continue;
    small = tables_->Get("small", table, [=](const Point& p) { return p[0] * value_ns; })
                .Ns({values * tokens, 1, 1});
  }
  return layers_ * (layer + small);
}

double OperatorReference::DecodeNs(double sequences, double contexts) const {
  if (sequences == 0 || contexts == 0) return 0;
  const Json& table = tables_->Find("decode", "bf16");
  const EngineSpec& e = s_.engine;
  const double length = double(e.max_model_len.value_or(s_.model.max_position_embeddings));
  const double context =
      std::min(length, std::max(contexts, sequences) / sequences) * double(s_.model.head_dim) / 128;
  // Longer ones than were measured are as many keys of more streams.
  const double longest = double(table["c"].back());
  const double streams = sequences * kv_heads_ * std::max(1.0, context / longest);
  const double flops = s_.hardware.peak_bf16_tflops * 1e3;
  const double bandwidth = s_.hardware.memory_bandwidth_gb_s;
  const Bound bound = [=](const Point& p) {
    return std::max(p[1] * p[2] * 2 * 128 * 2 / bandwidth, p[0] * p[1] * p[2] * 4 * 128 / flops);
  };
  const double ns = tables_->Get("decode", table, bound)
                        .Ns({heads_ / kv_heads_, streams, std::min(context, longest)});
  // Contexts that the model cannot have are not longer, but their bytes are still read.
  const double all = std::max(contexts, sequences) * kv_heads_ * double(s_.model.head_dim) / 128;
  return std::max(ns, bound({heads_ / kv_heads_, all, 1}));
}

double OperatorReference::PrefillNs(const char* of, double rows) const {
  const bool keys = of == std::string("keys");
  const double flops = s_.hardware.peak_bf16_tflops * 1e3;
  const double bandwidth = s_.hardware.memory_bandwidth_gb_s;
  const Bound bound = [=](const Point& p) {
    return keys ? 1024 * 4 * 128 * p[0] / flops : 2 * 128 * 2 * p[0] / bandwidth / 4;
  };
  const double ns = tables_->Get(of, tables_->Find("prefill", of), bound)
                        .Ns({rows * heads_ * double(s_.model.head_dim) / 128, 1, 1});
  return keys ? ns / 1024 : ns;
}

double OperatorReference::DecodeTable(double sequences, double contexts) const {
  const Tables& t = *tables_;
  const Around x = Find(t.decode_rows, sequences), y = Find(t.decode_columns, contexts);
  const auto row = [&](std::size_t i) {
    return t.decode[i][y.low] + y.way * (t.decode[i][y.high] - t.decode[i][y.low]);
  };
  return row(x.low) + x.way * (row(x.high) - row(x.low));
}

double OperatorReference::PrefillTable(const std::vector<double>& values, double rows) const {
  const Around x = Find(tables_->prefill_knots, rows);
  return values[x.low] + x.way * (values[x.high] - values[x.low]);
}

double OperatorReference::AttentionOfLayer(const BatchShape& shape, bool windowed) const {
  const HardwareSpec& h = s_.hardware;
  const Tables& t = *tables_;
  const double tile = double(t.document["prefill_tile"]), window = double(s_.model.sliding_window);
  const double decodes = double(shape.decode_seqs);
  double contexts = double(shape.decode_context_tokens) + decodes;
  if (windowed) contexts = std::min(contexts, decodes * window);
  double pairs = 0, tokens = 0, keys = 0, rows = 0, slowest = 0;
  for (const PrefillChunk& c : shape.prefill) {
    const double n = double(c.tokens), before = double(c.context);
    const double whole = std::ceil(n / tile) * tile, filled = std::max(n, tile);
    const double all = whole * before + n * (n + 1) / 2;
    const double key = PrefillTable(t.key, whole);
    double alone = before * key + n * (n + 1) / 2 * PrefillTable(t.key, filled) / filled;
    if (windowed) alone = std::min(alone, window * key);
    pairs += windowed ? std::min(all, whole * window) : all;
    keys += windowed ? std::min(before + n, n + window) : before + n;
    tokens += n;
    rows += whole;
    slowest = std::max(slowest, alone);
  }
  const double width = double(s_.model.head_dim);
  const double key_ns = 2 * kv_heads_ * width * bytes_ / h.memory_bandwidth_gb_s;
  const double pair_ns = 4 * heads_ * width / (h.peak_bf16_tflops * 1e3);
  const double token_ns = double(t.document["prefill_kv_token_ns"]) * kv_heads_ * width / 128;
  const double decode = decodes > 0 ? DecodeTable(decodes, contexts) : 0;
  if (shape.prefill.empty()) return decode;
  const double most = std::exp2(20);  // rows whose pairs cost least
  const double together = pairs * PrefillTable(t.key, most) / most;
  const double prefill =
      std::max(PrefillTable(t.rows, rows) + token_ns * tokens + std::max(together, slowest),
               keys * key_ns / h.bandwidth_efficiency);
  if (decodes == 0) return prefill;
  const double tiles = h.mixed_attention_rows * contexts * pair_ns / h.attention_efficiency;
  const double once = std::min(PrefillTable(t.rows, 1), DecodeTable(1, 1));
  return std::max({std::max(decode, tiles) + prefill - once, (contexts + pairs) * pair_ns,
                   (contexts + keys) * key_ns});
}

double OperatorReference::StepNs(const BatchShape& shape) const {
  const ModelSpec& m = s_.model;
  const EngineSpec& e = s_.engine;
  const HardwareSpec& h = s_.hardware;
  const double decodes = double(shape.decode_seqs);
  double tokens = decodes, sampled = decodes;
  const double attention = (layers_ - windowed_) * AttentionOfLayer(shape, false) +
                           windowed_ * AttentionOfLayer(shape, true);
  for (const PrefillChunk& c : shape.prefill) {
    tokens += double(c.tokens);
    sampled += c.samples ? 1 : 0;
  }
  const Around at = Find(tables_->token_knots, tokens);
  double ns = attention + tables_->tokens[at.low] +
              at.way * (tables_->tokens[at.high] - tables_->tokens[at.low]);
  if (sampled > 0) {
    const auto head = [&](double rows) {
      return rows == 0 ? 0
                       : Product(rows, double(m.vocab_size) / tp_, double(m.hidden_size), "bf16", 2,
                                 h.peak_bf16_tflops);
    };
    const std::vector<double> knots = Knots(4, 4096);
    const Around x = Find(knots, sampled);
    ns += head(knots[x.low]) + x.way * (head(knots[x.high]) - head(knots[x.low]));
  }
  if (m.top_p_by_default) ns += sampled * 1.0 * e.sampler_ns_per_logit * double(m.vocab_size);
  if (shape.lora.adapters > 0) {
    const double of_attention =
        4 * double(m.hidden_size) + 2 * (heads_ + kv_heads_) * double(m.head_dim);
    const double of_mlp = 3 * (double(m.hidden_size) + double(m.intermediate_size) / tp_);
    const double values = double(e.max_lora_rank) * layers_ * (of_attention + of_mlp);
    ns += std::max(2 * values * double(shape.lora.tokens) /
                       (h.peak_bf16_tflops * 1e3 * h.compute_efficiency),
                   bytes_ * values * double(shape.lora.adapters) /
                       (h.memory_bandwidth_gb_s * h.bandwidth_efficiency)) +
          1e3 * e.lora_overhead_us;
  }
  const double sequences = decodes + double(shape.prefill.size());
  const double ranks = e.sequence_overhead_us > 0 ? tp_ - 1 : 0;  // 1 us each
  return ns + 1e3 * (e.step_overhead_us + (e.sequence_overhead_us + ranks) * sequences);
}

}  // namespace servecast::testing
