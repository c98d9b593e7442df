// Reads presets/operators; see cost/operator_tables.h.
#include <map>
#include <nlohmann/json.hpp>

#include "base/base.h"
#include "cost/operator_tables.h"
#include "io/json_document.h"
#include "io/presets.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

OperatorTable TableOf(const Json& row) {
  OperatorTable table;
  table.op = row["op"].get<std::string>();
  table.type = row["type"].get<std::string>();
  table.floor_us = row["floor_us"].get<double>();
  for (std::size_t i = 0; i < 3; ++i) {
    table.shape[i] = row["shape"][i].get<std::int64_t>();
    constexpr const char* kAxes[] = {"a", "b", "c"};
    for (const Json& x : row[kAxes[i]]) table.axes[i].push_back(x.get<std::int64_t>());
  }
  for (const Json& code : row["codes"]) {
    table.codes.push_back(static_cast<std::int8_t>(code.get<int>()));
  }
  return table;
}

}  // namespace

const OperatorSet* OperatorsOf(std::string_view id) {
  static std::map<std::string, OperatorSet, std::less<>> cache;
  const auto cached = cache.find(id);
  if (cached != cache.end()) return &cached->second;
  const std::string_view text = PresetText("operators", id);
  if (text.empty()) return nullptr;
  const Result<Json> file = ParseJson(text);
  SERVECAST_CHECK(file.ok(), "a file of operators is JSON");
  const Json& document = file.value()["document"];
  OperatorSet set;
  set.id = id;
  set.name = file.value()["name"].get<std::string>();
  set.source = document["source"].get<std::string>();
  set.peak_bf16_tflops = document["peak_bf16_tflops"].get<double>();
  set.peak_fp8_tflops = document["peak_fp8_tflops"].get<double>();
  set.peak_fp4_tflops = document["peak_fp4_tflops"].get<double>();
  set.memory_bandwidth_gb_s = document["memory_bandwidth_gb_s"].get<double>();
  set.interconnect_gb_s = document["interconnect_gb_s"].get<double>();
  set.prefill_kv_token_ns = document["prefill_kv_token_ns"].get<double>();
  set.prefill_tile = document["prefill_tile"].get<double>();
  set.small_kernel_value_ps = document["small_kernel_value_ps"].get<double>();
  for (const Json& row : document["tables"]) set.tables.push_back(TableOf(row));
  return &(cache[std::string(id)] = std::move(set));
}

}  // namespace servecast
