#!/usr/bin/env python3
"""Measured operator latencies as presets/operators; see README.md."""
import csv
import glob
import gzip
import itertools
import json
import math
import os
import statistics
import sys

from operator_bounds import Bounds
from prefill import Prompts, fitted

# A code is ln(time / (floor + bound)) in steps of a fiftieth: 1 % off at most.
STEPS = 50
LEAST, MOST = -127, 127
# A row more than a multiple of a kernel's tile takes longer, so some are there from both sides.
ROWS = [1, 2, 4, 8, 16, 32, 64, 96, 128, 144, 192, 256, 257, 272, 384, 400, 512, 513, 528, 640, 656, 768, 784,
        896, 912, 1024, 1025, 1040, 1280, 1296, 1536, 2048, 4096, 8192, 16384]
COLUMNS = [256, 512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 65536]
INNER = [256, 512, 1024, 2048, 4096, 6144, 8192, 12288, 16384]
NOISE = 1.05
KEYS = 1024
SLACK = 0.25  # of what values take by the bandwidth: caches hold those of small kernels
STREAMS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]
CONTEXTS = [16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]
GROUPS = [1, 2, 4, 8, 16]
TOKENS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
SHARDS = [1, 2, 4, 8]
ELEMENTS = [1 << i for i in range(9, 30, 2)]
# Of 8-bit products both scalings are measured, and the faster is taken: without a tuned
# configuration one of them is slower than 16 bits on Hopper.
TYPES = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4", "w4a16_mxfp4": "mxfp4"}
AICONFIGURATOR = {
    "a100_sxm": "a100-80gb",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200-sxm",
    "l40s": "l40s",
}
# Experts of two matrices are measured, too, hidden size and width; the models here have three.
TWO_MATRICES = {(2048, 5120), (2688, 1856), (2048, 2688), (1024, 2688), (4096, 2688)}
SERVING_SIM = {"RTX4090": "rtx-4090", "RTXPRO6000": "rtx-pro-6000"}
# Hugging Face's config.json: hidden size, heads, KV heads, head size, MLP or expert width, vocabulary,
# experts, experts per token.
PROFILED = {
    "Llama-3.1-8B": (4096, 32, 8, 128, 14336, 128256, 0, 0),
    "Qwen3-32B": (5120, 64, 8, 128, 25600, 151936, 0, 0),
    "Qwen3-30B-A3B-Instruct-2507": (2048, 32, 4, 128, 768, 151936, 128, 8),
}


def rows_of(path):
    with gzip.open(path, "rt") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def source_of(path):
    with gzip.open(path, "rt") as file:
        return file.readline()[2:].split(" (Apache")[0].replace(".../", "")


def geometric(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


class Table:
    """Times in microseconds over one to three sorted axes, beside their bound; not decreasing along the axes
    from `rising` on. Query heads of a KV head are a model's: one alone may be slower than two, as
    FlashAttention 2 then does not split the keys."""

    def __init__(self, op, kind, axes, bound, shape=(), rising=0):
        self.op, self.kind, self.bound, self.shape, self.rising = op, kind, bound, list(shape), rising
        self.axes = [list(a) for a in axes] + [[1]] * (3 - len(axes))
        self.times = {}
        self.filled = self.clamped = self.moved = self.cut = 0

    def cells(self):
        a, b, c = self.axes
        return [(x, y, z) for x in a for y in b for z in c]

    def fill_holes(self):
        """A hole is as far above its bound as the measured cell that is nearest: in decode attention
        by its work first, as the longest contexts are measured in small batches only."""
        def distance(a, b):
            x, y, z = (math.log(a[i] / b[i]) for i in range(3))
            return x * x + (0.1 * y * y + (y + z) ** 2 if self.op == "decode" else y * y + z * z)

        measured = list(self.times)
        for cell in self.cells():
            if cell in self.times:
                continue
            near = min(measured, key=lambda m: distance(m, cell))
            base = self.floor + self.bound(*near)
            self.times[cell] = self.times[near] * (self.floor + self.bound(*cell)) / base
            self.filled += 1
            less = [self.times[m] for m in measured if self.is_below(m, cell)]
            more = [self.times[m] for m in measured if self.is_below(cell, m)]
            self.times[cell] = min([max([self.times[cell]] + less)] + more)

    def is_below(self, a, b):
        return a[:self.rising] == b[:self.rising] and all(x <= y for x, y in zip(a, b))

    def finish(self):
        # What an operator takes beside its work: that of the smallest measured, or less.
        beside = sorted(time - self.bound(*cell) for cell, time in self.times.items())
        self.floor = round(min(min(self.times.values()), max(1.0, beside[len(beside) // 20])), 2)
        self.fill_holes()
        for cell in self.cells():
            if self.times[cell] < self.bound(*cell):
                self.times[cell] = self.bound(*cell)
                self.clamped += 1
        before, most, least = dict(self.times), {}, {}
        for index in itertools.product(*(range(len(a)) for a in self.axes)):
            most[index] = max([before[self.at(index)]] + [most[n] for n in self.beside(index, -1)])
        for index in reversed(sorted(most)):
            least[index] = min([before[self.at(index)]] + [least[n] for n in self.beside(index, 1)])
            # Both are monotone, and so is their mean; one bad point moves its neighbours half as far.
            self.times[self.at(index)] = math.sqrt(most[index] * least[index])
        self.moved = sum(abs(math.log(self.times[c] / before[c])) > 0.01 for c in before)
        return self

    def at(self, index):
        return tuple(axis[i] for axis, i in zip(self.axes, index))

    def beside(self, index, step):
        for i, axis in enumerate(self.axes):
            if i >= self.rising and 0 <= index[i] + step < len(axis):
                yield index[:i] + (index[i] + step,) + index[i + 1:]

    def document(self):
        codes = []
        for cell in self.cells():
            code = round(STEPS * math.log(self.times[cell] / (self.floor + self.bound(*cell))))
            self.cut += not LEAST <= code <= MOST
            codes.append(max(LEAST, min(MOST, code)))
        a, b, c = self.axes
        return {
            "op": self.op,
            "type": self.kind,
            "floor_us": self.floor,
            "shape": (self.shape + [0, 0, 0])[:3],
            "a": a,
            "b": b,
            "c": c,
            "codes": codes,
        }

    def report(self):
        n = len(self.times)
        cut = f", {self.cut} cut" if self.cut else ""
        return (f"{self.op} {self.kind} {self.shape or ''}: {n} points, {self.filled} holes filled, "
                f"{self.clamped} raised to the speed of light, {self.moved} moved over 1 % to be monotone{cut}")


def within(wanted, found):
    found = set(found)
    return [w for w in wanted if w in found]


def keep_least(times, key, milliseconds):
    times[key] = min(times.get(key, math.inf), float(milliseconds) * 1e3)


def gemm(rows, kind, bounds):
    times = {}
    for row in rows:
        if TYPES[row["gemm_dtype"]] == kind:
            keep_least(times, (int(row["m"]), int(row["n"]), int(row["k"])), row["latency"])
    if not times:
        return None, ""
    undisturbed(times)
    axes = [within(w, {t[i] for t in times}) for i, w in enumerate((ROWS, COLUMNS, INNER))]
    table = Table("gemm", kind, axes, lambda m, n, k: bounds.gemm(kind, m, n, k))
    table.times = {cell: times[cell] for cell in table.cells() if cell in times}
    table.finish()
    return table, left_out(table, times, bounds, kind)


def undisturbed(times):
    """A product that takes clearly longer than those of up to twice its rows was disturbed, as every tenth of
    the B200's in 8 bits: it takes no more than they."""
    rows = {}
    for m, n, k in times:
        rows.setdefault((n, k), []).append(m)
    for (n, k), found in rows.items():
        found.sort()
        for m in reversed(found):
            more = [times[other, n, k] for other in found if m < other <= 2 * m]
            times[m, n, k] = min([times[m, n, k]] + [NOISE * t for t in more])


def left_out(table, times, bounds, kind):
    """Error of the interpolation on the products that the table does not hold."""
    errors = []
    for (m, n, k), time in times.items():
        inside = all(a[0] <= x <= a[-1] for a, x in zip(table.axes, (m, n, k)))
        if (m, n, k) in table.times or not inside or n < 1024 or k < 1024:
            continue
        errors.append(abs(math.log(max(interpolated(table, (m, n, k)), bounds.gemm(kind, m, n, k)) / time)))
    return f"; products between its points: median {100 * statistics.median(errors):.1f} % off" if errors else ""


def interpolated(table, point):
    corners = [((), 1.0)]
    for axis, x in zip(table.axes, point):
        i = max(0, min(len(axis) - 2, sum(a <= x for a in axis) - 1))
        if len(axis) == 1:
            corners = [(c + (axis[0],), w) for c, w in corners]
            continue
        f = math.log(x / axis[i]) / math.log(axis[i + 1] / axis[i])
        corners = [(c + (axis[i + j],), w * (f if j else 1 - f)) for c, w in corners for j in (0, 1)]
    return math.exp(sum(w * math.log(table.times[c]) for c, w in corners if w))


def decode(points, kind, bounds):
    """points: (query heads a KV head, sequences times KV heads, context) -> times measured."""
    groups = within(GROUPS, {p[0] for p in points})
    streams = within(STREAMS, {p[1] for p in points})
    contexts = within(CONTEXTS, {p[2] for p in points})
    table = Table("decode", kind, (groups, streams, contexts),
                  lambda r, s, c: bounds.decode(kind, r, s, c), rising=1)
    table.times = {cell: geometric(points[cell]) for cell in table.cells() if cell in points}
    table.finish()
    errors = [abs(math.log(interpolated(table, point) / time)) for point, times in points.items() for time in times
              if all(a[0] <= x <= a[-1] for a, x in zip(table.axes, point))]
    return table, f"; all measured: median {100 * statistics.median(errors):.1f} % off"


def prefill(prompts, bounds):
    """Two tables over rows, query tokens times heads: what they take, and what KEYS keys take for them."""
    fit = fitted(prompts, bounds.prefill(1))
    start, key, kv_us = fit.curves()
    for curve, most in ((start, 1 << 24), (key, 1 << 20)):  # beyond what was measured in proportion
        while max(curve) < most:
            curve[2 * max(curve)] = 2 * curve[max(curve)]
    rows = Table("prefill", "rows", (sorted(start),), lambda q, _, __: SLACK * bounds.prefill_rows(q))
    rows.times = {(q, 1, 1): t for q, t in start.items()}
    keys = Table("prefill", "keys", (sorted(key),), lambda q, _, __: bounds.prefill(KEYS * q))
    keys.times = {(q, 1, 1): KEYS * t for q, t in key.items()}
    note = f"; tile {fit.tile}, all measured: median {100 * fit.median:.1f} % off, p90 {100 * fit.p90:.1f}"
    return [rows.finish(), keys.finish()], {"prefill_kv_token_ns": 1e3 * kv_us, "prefill_tile": fit.tile}, note


def small_kernels(curves):
    """curves: (values read and written, time), a model's each. Beyond the largest as its last doubling says."""
    last = [(c[-1][1] - at_value(c, c[-1][0] / 2)) / (c[-1][0] / 2) for c in curves]
    value_us = min(last)
    axis = [1 << k for k in range(14, 34)]
    table = Table("small", "bf16", (axis,), lambda v, _, __: SLACK * v * value_us)
    for v in axis:
        found = [at_value(c, v) for c in curves if v <= c[-1][0]]
        table.times[v, 1, 1] = geometric(found) if found else table.times[v // 2, 1, 1] + v / 2 * value_us
    return table.finish(), SLACK * value_us * 1e6


def at_value(curve, x):
    """Linear between points, the first before them."""
    i = max(0, min(len(curve) - 2, sum(v <= x for v, _ in curve) - 1))
    (x0, y0), (x1, y1) = curve[i], curve[i + 1]
    return max(y0 + (x - x0) / (x1 - x0) * (y1 - y0), curve[0][1])


def at_random(times, shape, bounds):
    """Times of tokens that spread evenly over experts, as of tokens that choose at random: few of them touch as
    many experts as fewer spread ones."""
    _, experts, active = shape
    found = {}
    for tokens, width in times:
        curve = sorted((m, t) for (m, w), t in times.items() if w == width)
        touching = bounds.touched(shape, tokens) / active if tokens * active < 4 * experts else tokens
        found[tokens, width] = at_value(curve, touching)
    return found


def experts(times, kind, shape, bounds):
    """times: (tokens, width of an expert on a GPU) -> time."""
    tokens = within(TOKENS, {t for t, _ in times})
    widths = sorted({w for _, w in times})
    table = Table("experts", kind, (tokens, widths), lambda m, w, _: bounds.experts(kind, shape, m, w), shape)
    table.times = {(m, w, 1): times[m, w] for m in tokens for w in widths if (m, w) in times}
    return table.finish()


def all_reduce(folder, gpu, bounds):
    tables = []
    times = {}
    for row in rows_of(os.path.join(folder, gpu + "__allreduce.csv.gz")):
        if row["backend"] == "vllm_graph":
            times[int(row["num_gpus"]), int(row["message_size"])] = float(row["latency"]) * 1e3
    for row in rows_of(os.path.join(folder, gpu + "__nccl.csv.gz")):
        key = int(row["num_gpus"]), int(row["message_size"])
        if row["op_name"] == "all_reduce" and row["nccl_dtype"] == "half" and key in times:
            times[key] = min(times[key], float(row["latency"]) * 1e3)
    for gpus in sorted({g for g, _ in times}):
        table = Table("all_reduce", "bf16", (within(ELEMENTS, {s for g, s in times if g == gpus}),),
                      lambda s, _, __, g=gpus: bounds.all_reduce(g, s), (gpus,))
        table.times = {cell: times[gpus, cell[0]] for cell in table.cells()}
        tables.append(table.finish())
    return tables


def from_aiconfigurator(folder, gpu, bounds, say):
    path = lambda name: os.path.join(folder, f"{gpu}__{name}.csv.gz")
    tables = []
    rows = rows_of(path("gemm"))
    for kind in ("bf16", "fp8", "nvfp4"):
        table, note = gemm(rows, kind, bounds)
        if table:
            tables.append(table)
            say(table.report() + note)
    for name, kind in (("bfloat16", "bf16"), ("fp8", "fp8")):
        points = {}
        for row in rows_of(path("attention__gen")):
            h, g = int(row["num_heads"]), int(row["num_key_value_heads"])
            if row["kv_cache_dtype"] != name or row["head_dim"] != "128" or h % g:
                continue
            key = h // g, int(row["batch_size"]) * g, int(row["step"]) + 1
            points.setdefault(key, []).append(float(row["latency"]) * 1e3)
        if points:
            table, note = decode(points, kind, bounds)
            tables.append(table)
            say(table.report() + note)
    prompts = []
    for row in rows_of(path("attention__ctx")):
        b, n, heads, kv = (int(row[c]) for c in ("batch_size", "isl", "num_heads", "num_key_value_heads"))
        if row["kv_cache_dtype"] == "bfloat16" and row["head_dim"] == "128" and n >= 16:
            prompts.append(Prompts(b, n, 0, heads, kv, float(row["latency"]) * 1e3))
    found, constants, note = prefill(prompts, bounds)
    tables += found
    say(found[0].report())
    say(found[1].report() + note)
    families = {}
    for row in rows_of(path("moe")):
        width, hidden = int(row["inter_size"]), int(row["hidden_size"])
        if row["moe_ep_size"] != "1" or (hidden, width) in TWO_MATRICES:
            continue
        shard = int(row["moe_tp_size"])
        if row["moe_dtype"] in TYPES and shard in SHARDS:
            key = TYPES[row["moe_dtype"]], (hidden, int(row["num_experts"]), int(row["topk"])), width
            times = families.setdefault(key, {}).setdefault(row["distribution"], {})
            keep_least(times, (int(row["num_tokens"]), width // shard), row["latency"])
    for (kind, shape, _), found in sorted(families.items()):
        times = at_random(found["balanced"], shape, bounds) if "balanced" in found else found["power_law_1.01"]
        tables.append(experts(times, kind, shape, bounds))
        say(tables[-1].report())
    for table in all_reduce(folder, gpu, bounds):
        tables.append(table)
        say(table.report())
    sources = sorted({source_of(p) for p in glob.glob(os.path.join(folder, gpu + "__*.csv.gz"))})
    short = f"{sources[0].split()[0][:32]}, systems/data/{gpu}"
    return tables, constants, short, sources, "Apache-2.0"


def profiles_of(folder, gpu):
    for path in sorted(glob.glob(os.path.join(folder, gpu + "__*__dense.csv.gz"))):
        parts = os.path.basename(path).split("__")
        yield parts[2], int(parts[4][2:]), path.rsplit("__", 1)[0]


def from_serving_sim(folder, gpu, bounds, say):
    products, streams, prompts, small, moe = {}, {}, [], [], {}
    for model, tp, prefix in profiles_of(folder, gpu):
        hidden, heads, kv, size, width, vocabulary, n_experts, active = PROFILED[model]
        shapes = {
            "qkv_proj": ((heads + 2 * kv) * size // tp, hidden),
            "o_proj": (hidden, heads * size // tp),
            "gate_up_proj": (2 * width // tp, hidden),
            "down_proj": (hidden, width // tp),
            "lm_head": (vocabulary // tp, hidden),
        }
        beside = {}
        for file, column in (("dense", "tokens"), ("per_sequence", "sequences")):
            for row in rows_of(f"{prefix}__{file}.csv.gz"):
                rows, time = int(row[column]), float(row["time_us"])
                if row["layer"] in shapes:
                    products[(rows, *shapes[row["layer"]])] = time
                calls = {"layernorm": 2, "rotary_emb": 1, "act_fn": 1, "qk_norm": 1}.get(row["layer"], 0)
                if calls:
                    beside[rows] = beside.get(rows, 0.0) + calls * time
        if not n_experts:
            values = 8 * hidden + (2 * (heads + 2 * kv) * size + 3 * width) / tp
            small.append(sorted((rows * values, time) for rows, time in beside.items()))
        group, kv_heads = heads // kv, max(1, kv // tp)
        for row in rows_of(prefix + "__attention.csv.gz"):
            chunk, before, n, context = (int(row[c]) for c in ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode"))
            time = float(row["time_us"])
            if chunk == 0:
                streams.setdefault((group, n * kv_heads, context), []).append(time)
            elif n == 0:
                prompts.append(Prompts(1, chunk, before, heads // tp, kv_heads, time))
        if os.path.exists(prefix + "__moe.csv.gz"):
            moe[(hidden, n_experts, active), width] = rows_of(prefix + "__moe.csv.gz")
    tables = []
    shapes = {(n, k) for _, n, k in products}
    axes = (within(ROWS, {m for m, _, _ in products}), sorted({n for n, _ in shapes}), sorted({k for _, k in shapes}))
    table = Table("gemm", "bf16", axes, lambda m, n, k: bounds.gemm("bf16", m, n, k))
    table.times = {cell: products[cell] for cell in table.cells() if cell in products}
    tables.append(table.finish())
    table, note = decode(streams, "bf16", bounds)
    tables.append(table)
    found, constants, of_prefill = prefill(prompts, bounds)
    table, constants["small_kernel_value_ps"] = small_kernels(small)
    tables += found + [table]
    for (shape, width), rows in moe.items():
        times = {}
        for m in sorted({int(r["tokens"]) for r in rows}):
            touched = bounds.touched(shape, m)
            found = sorted((int(r["activated_experts"]), float(r["time_us"])) for r in rows if int(r["tokens"]) == m)
            times[m, width] = min(found, key=lambda f: abs(math.log(f[0] / touched)))[1]
        tables.append(experts(times, "bf16", shape, bounds))
    for table in tables:
        notes = {"decode": note, "prefill": of_prefill if table.kind == "keys" else ""}
        say(table.report() + notes.get(table.op, ""))
    short = f"casys-kaist/LLMServingSim@5daddb2, profiles on {gpu}"
    models = ", ".join(sorted({m for m, _, _ in profiles_of(folder, gpu)}))
    return tables, constants, short, [f"{short}, {models}, vLLM 0.19.0"], "MIT"


def write(path, hardware, tables, constants, short, sources, licence):
    h = hardware["document"]
    lines = [
        "{",
        f'  "name": {json.dumps(hardware["name"])},',
        '  "description": "Measured latencies of operators, reduced by tools/fit/operators.py: '
        'time = (floor_us + bound) exp(code / 50), the bound by the peaks below.",',
        f'  "sources": {{"*": {json.dumps("; ".join(sources))}, "license": {json.dumps(licence)}}},',
        '  "document": {',
        f'    "source": {json.dumps(short)},',
    ]
    for key in ("peak_bf16_tflops", "peak_fp8_tflops", "peak_fp4_tflops", "memory_bandwidth_gb_s", "interconnect_gb_s"):
        lines.append(f'    "{key}": {h.get(key, 0)},')
    for key in ("prefill_kv_token_ns", "prefill_tile", "small_kernel_value_ps"):
        lines.append(f'    "{key}": {round(constants.get(key, 0), 5)},')
    lines.append('    "tables": [')
    rows = []
    for table in tables:
        d = table.document()
        codes = d.pop("codes")
        per_line = len(d["b"]) * len(d["c"])
        head = json.dumps(d)[:-1] + ', "codes": ['
        body = [",".join(str(c) for c in codes[i:i + per_line]) for i in range(0, len(codes), per_line)]
        rows.append("      " + head + ",\n".join(body) + "]}")
    lines.append(",\n".join(rows))
    lines += ["    ]", "  }", "}", ""]
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines))


def main():
    data = os.environ.get("SERVECAST_GROUNDTRUTH", "../shared/groundtruth")
    presets = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "presets")
    for folder, gpus, fit in (("aiconfigurator", AICONFIGURATOR, from_aiconfigurator),
                              ("llmservingsim", SERVING_SIM, from_serving_sim)):
        for gpu, preset in gpus.items():
            with open(os.path.join(presets, "hardware", preset + ".json"), encoding="ascii") as file:
                hardware = json.load(file)
            say = lambda text, gpu=preset: print(f"{gpu} {text}", flush=True)
            fitted = fit(os.path.join(data, "ops", folder), gpu, Bounds(hardware["document"]), say)
            path = os.path.join(presets, "operators", preset + ".json")
            write(path, hardware, *fitted)
            print(f"{preset}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    sys.exit(main())
