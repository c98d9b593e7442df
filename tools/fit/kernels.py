#!/usr/bin/env python3
"""Efficiencies of GPUs from measured kernels; see README.md."""
import csv
import glob
import gzip
import math
import os
import random
import sys

# TFLOP/s in 16 bits, dense, and GB/s, by the data sheets (presets/hardware).
PEAKS = {
    "a100_sxm": (312, 2039),
    "h100_sxm": (989.5, 3350),
    "h200_sxm": (989.5, 4800),
    "l40s": (362.05, 864),
    "b200_sxm": (2250, 8000),
    "b300_sxm": (2250, 8000),
    "gb200": (2500, 8000),
    "gb300": (2500, 8000),
}
CARDS = {"RTX4090": 1008, "RTXPRO6000": 1792}  # GB/s, of the profiles that LLMServingSim has
# Bytes of a weight, and the peak as a multiple of that in 16 bits.
TYPES = {"bfloat16": (2, 1), "fp8": (1, 2), "nvfp4": (0.5625, 4)}
SAMPLE = 2500
NAMES = ("compute", "bandwidth", "latency us", "exponent")
START, STEP = [0.8, 0.85, 3.0, 3.0], [0.05, 0.05, 1.0, 1.0]
LOW, HIGH = [0.2, 0.3, 0.0, 1.0], [1.0, 1.0, 20.0, 20.0]


def rows_of(path):
    with gzip.open(path, "rt") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def error_of(values, data):
    compute, bandwidth, latency, exponent = values
    total = 0.0
    for flops_us, bytes_us, measured in data:
        a, b = flops_us / compute, bytes_us / bandwidth
        longer, ratio = max(a, b), min(a, b) / max(a, b)
        predicted = latency + longer * (1 + ratio**exponent) ** (1 / exponent)
        total += abs(math.log(predicted / measured))
    return total / len(data)


def descend(data):
    values, step, best = list(START), list(STEP), error_of(START, data)
    while max(s / t for s, t in zip(step, STEP)) > 0.02:
        moved = False
        for i in range(len(values)):
            for sign in (1, -1):
                trial = list(values)
                trial[i] = min(HIGH[i], max(LOW[i], trial[i] + sign * step[i]))
                error = error_of(trial, data)
                if error < best:
                    values, best, moved = trial, error, True
                    break
        if not moved:
            step = [s / 2 for s in step]
    return values, best


def gemms(path, gpu):
    peak, bandwidth = PEAKS[gpu]
    rows = rows_of(path)
    for name, (width, factor) in TYPES.items():
        data = []
        for row in rows:
            m, n, k = int(row["m"]), int(row["n"]), int(row["k"])
            if row["gemm_dtype"] != name or m > 8192 or not 1024 <= n <= 65536 or not 2048 <= k <= 32768:
                continue
            flops_us = 2 * m * n * k / (peak * factor) * 1e-6
            bytes_us = (n * k * width + 2 * m * (n + k)) / bandwidth * 1e-3
            data.append((flops_us, bytes_us, float(row["latency"]) * 1e3))
        if not data:
            continue
        values, error = descend(random.sample(data, min(SAMPLE, len(data))))
        shown = ", ".join(f"{a} {b:.3g}" for a, b in zip(NAMES, values))
        print(f"{gpu} {name}: {shown}; mean |log error| {error:.3f}", flush=True)


def attention(path, gpu):
    shares = []
    for row in rows_of(path):
        n, heads, width = int(row["isl"]), int(row["num_heads"]), int(row["head_dim"])
        if row["kv_cache_dtype"] != "bfloat16" or int(row["step"]) or n < 8192 or width != 128:
            continue
        flops = 4 * heads * width * n * (n + 1) / 2 * int(row["batch_size"])
        shares.append(flops / (float(row["latency"]) * 1e-3) / PEAKS[gpu][0] / 1e12)
    shares.sort()
    if shares:
        quartiles = [shares[len(shares) * q // 4] for q in (1, 2, 3)]
        print(f"{gpu} attention from 8,192 tokens: quartiles " + ", ".join(f"{s:.2f}" for s in quartiles))


def reads(path, gpu, bandwidth):
    """Attention of decodes as a latency and bytes over a share of the bandwidth: reads of 0.1 GB and
    more from a KV cache of 16 bits, 4 to 8 heads to a KV head."""
    data = []
    for row in rows_of(path):
        if "kv_cache_dtype" in row:  # aiconfigurator
            heads, kv_heads = int(row["num_heads"]), int(row["num_key_value_heads"])
            if row["kv_cache_dtype"] != "bfloat16" or row["head_dim"] != "128" or not 4 <= heads / kv_heads <= 8:
                continue
            tokens = int(row["batch_size"]) * (int(row["isl"]) + int(row["step"]))
            size, us = 512 * kv_heads * tokens, float(row["latency"]) * 1e3
        else:  # LLMServingSim, a layer of Llama-3.1-8B
            if int(row["prefill_chunk"]) or int(row["kv_prefill"]):
                continue
            size, us = 4096 * int(row["n_decode"]) * int(row["kv_decode"]), float(row["time_us"])
        if size >= 1e8:
            data.append((size / bandwidth * 1e-3, us))
    fits = []
    for share in (percent / 100 for percent in range(50, 101)):
        for latency in range(0, 41, 2):
            error = sum(abs(math.log((latency + ideal / share) / us)) for ideal, us in data)
            fits.append((error / len(data), share, latency))
    error, share, latency = min(fits)
    print(f"{gpu} reads of KV cache, {len(data)} rows: {latency} us and {share:.2f} of the bandwidth, "
          f"mean |log error| {error:.3f}", flush=True)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: kernels.py FOLDER")
    random.seed(1)
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "**", "*.csv.gz"), recursive=True)):
        gpu = os.path.basename(path).split("__")[0]
        if gpu in PEAKS and path.endswith("__gemm.csv.gz"):
            gemms(path, gpu)
        if gpu in PEAKS and path.endswith("__attention__ctx.csv.gz"):
            attention(path, gpu)
        if gpu in PEAKS and path.endswith("__attention__gen.csv.gz"):
            reads(path, gpu, PEAKS[gpu][1])
        if gpu in CARDS and path.endswith("Llama-3.1-8B__bf16__tp1__attention.csv.gz"):
            reads(path, gpu, CARDS[gpu])


main()
