// See measured_reading.h.
#include "measured_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "import/names.h"

namespace servecast {
namespace {

constexpr NumberRange kGpus = {1, 1e4};
constexpr NumberRange kNotSaid = {0, 1e4};  // some write 0 for what they do not use

// "TP2", "tp2_pp2".
void ReadParallelism(MeasuredRow& row, MeasuredSetup& s) {
  const ColumnNames kColumn = {"parallelism"};
  const std::string text = LowerCase(row.Text(kColumn));
  bool any = false;
  for (const auto& [name, gpus] : {std::pair{"tp", &s.tensor_parallel},
                                   {"pp", &s.pipeline_parallel},
                                   {"dp", &s.data_parallel},
                                   {"ep", &s.expert_parallel}}) {
    const std::size_t at = text.find(name);
    const std::size_t digit = at == std::string::npos ? at : text.find_first_of("0123456789", at);
    if (digit == std::string::npos || digit > at + 3) continue;
    *gpus = std::llround(NumbersIn(std::string_view(text).substr(digit, 4))[0]);
    any = true;
  }
  if (!text.empty() && !any) row.Complain(kColumn, "tp, pp, dp or ep and a number");
}

// What no column says, the name of a folder may: "h100-vllm-0.15.1", "a100-pcie-llama-3.1-8b".
void ReadPlaces(const MeasuredFile& file, MeasuredSetup& s) {
  const bool engine = s.engine.empty() && s.engine_version.empty();
  if (!s.model.empty() && !s.gpu.empty() && !engine && !s.engine_version.empty()) return;
  for (const std::string& place : file.Places()) {
    if (s.model.empty()) s.model = ModelIn(place);
    if (s.gpu.empty()) s.gpu = HardwarePresetOf(place);
    if (!s.engine_version.empty()) continue;
    const EngineIn in = EngineInName(place);
    if (in.engine.empty()) continue;
    const bool same = s.engine.empty() ||
                      EnginePresetOf(s.engine, "").preset == EnginePresetOf(in.engine, "").preset;
    if (!same) continue;
    s.engine = s.engine.empty() ? in.engine : s.engine;
    s.engine_version = in.version;
  }
}

MeasuredSetup SetupOf(const MeasuredFile& file, MeasuredRow& row) {
  MeasuredSetup s;
  s.model = row.Text({"model"});
  s.gpu = row.Text({"gpu", "hardware"});
  s.engine = row.Text({"engine"});
  s.engine_version = row.Text({"engine_version"});
  s.precision = row.Text({"precision", "weight_precision", "dtype", "weights"});
  s.kv_dtype = row.Text({"kv_dtype", "kv_cache_dtype"});
  ReadParallelism(row, s);
  const auto gpus = [&row](ColumnNames columns, NumberRange range, std::int64_t& out) {
    out = std::max<std::int64_t>(1, row.Whole(columns, range).value_or(out));
  };
  const bool parted = !row.Text({"tp", "tensor_parallel", "parallelism"}).empty();
  // Where only their number is said, they are one tensor-parallel group.
  if (!parted) gpus({"num_gpus", "n_gpu"}, kGpus, s.tensor_parallel);
  gpus({"tp", "tensor_parallel"}, kGpus, s.tensor_parallel);
  gpus({"pp", "pipeline_parallel"}, kNotSaid, s.pipeline_parallel);
  gpus({"dp", "attention_dp", "data_parallel"}, kNotSaid, s.data_parallel);
  gpus({"ep", "moe_ep", "expert_parallel"}, kNotSaid, s.expert_parallel);
  gpus({"replicas"}, kNotSaid, s.replicas);
  // Unless told another router, Ray Serve sends a request to the one of two random replicas that
  // has fewer (its PowerOfTwoChoicesRequestRouter).
  const bool ray = LowerCase(row.Text({"source_repo"})).find("ray-serve") != std::string::npos;
  if (ray) s.router = "power_of_two";
  // One replica of attention, said to be one, beside experts over all GPUs: it is over them, too.
  const bool one = row.Whole({"dp", "attention_dp", "data_parallel"}, kNotSaid) == 1;
  const std::int64_t all = row.Whole({"num_gpus", "n_gpu"}, kGpus).value_or(0);
  if (one && s.pipeline_parallel == 1 && s.expert_parallel == all) {
    s.tensor_parallel = std::max(s.tensor_parallel, all);
  }
  s.expert_tensor_parallel = row.Whole({"moe_tp"}, kNotSaid);
  if (s.expert_tensor_parallel == 0) s.expert_tensor_parallel.reset();
  s.max_num_seqs = row.Whole({"max_num_seqs"});
  s.max_num_batched_tokens = row.Whole({"max_num_batched_tokens"});
  s.block_size = row.Whole({"block_size"}, kTokenRange);
  s.gpu_memory_utilization = row.Number({"gpu_mem_util", "gpu_memory_utilization"}, {0, 1, true});
  s.kv_blocks = row.Whole({"kv_blocks"}, kPositive);
  const std::optional<std::int64_t> tokens = row.Whole({"kv_tokens"}, kPositive);
  if (!s.kv_blocks && tokens) s.kv_blocks = *tokens / s.block_size.value_or(16);
  ReadPlaces(file, s);
  return s;
}

}  // namespace

std::string MeasuredFile::Name() const { return PlainText(path); }

std::string MeasuredFile::Set() const {
  // A file of another ending may have the same name.
  const bool tabs = LowerCase(path).find(".tsv") != std::string::npos;
  return PlainText(tabs ? std::string_view(path) : CsvStem(path));
}

std::string MeasuredFile::Directory() const {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::vector<std::string> MeasuredFile::Places() const {
  std::vector<std::string> places;
  std::string_view rest = CsvStem(path);
  while (!rest.empty()) {
    const std::size_t slash = rest.find_last_of('/');
    const bool more = slash != std::string_view::npos;
    places.push_back(PlainText(more ? rest.substr(slash + 1) : rest));
    rest = more ? rest.substr(0, slash) : "";
  }
  std::error_code error;
  const auto whole = std::filesystem::weakly_canonical(folder, error);
  if (!error) places.push_back(PlainText(whole.filename().generic_string()));
  return places;
}

std::string RowLabel(std::initializer_list<std::string_view> parts) {
  std::string label;
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    if (!label.empty()) label += ' ';
    label += part;
  }
  return Shortened(label, 200);
}

Measured Reading::Begin(std::string label) const {
  Measured m;
  m.set = file.Set();
  m.row = std::move(label);
  m.file_row = index + 1;
  m.setup = SetupOf(file, row);
  return m;
}

void Reading::Add(Measured m) const {
  if (m.skipped.empty()) m.skipped = row.problem();
  if (m.skipped.empty() && m.values.empty()) m.skipped = "nothing was measured";
  out.push_back(std::move(m));
}

}  // namespace servecast
