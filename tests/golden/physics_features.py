#!/usr/bin/env python3
"""Features of the latency model "physics", from their formulas alone, in exact fractions.

  physics_features.py          checks physics_features.json beside it: every constant and feature
  physics_features.py --write  writes it anew

Standard library only, and nothing shared with the engine's C++, whose test reads the same file.
Where the two disagree: which feature of which case; the constants of that case, where most errors
are; its sums over the chunks; then the feature's formula, factor by factor; and of the two, the one
that is not as docs/physics-model.md has it is wrong.
The formulas are those of docs/physics-model.md.
"""
import json
import math
import os
import sys
from fractions import Fraction

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "physics_features.json")
TOLERANCE = 1e-10
EPSILON = Fraction(1e-6)
CLAMP = 100
VARIANTS = ("seed", "corrected")

# ---- Formulas ------------------------------------------------------------------------------------


def over(numerator, denominator):
    return numerator / max(EPSILON, denominator)


def exact(value):
    return Fraction(value) if not isinstance(value, bool) else value


def constants(config, corrected):
    m = {name: exact(value) for name, value in config["model"].items()}
    hw = {name: exact(value) for name, value in config["hardware"].items()}
    engine = {name: exact(value) for name, value in config["vllm"].items()}
    tp = Fraction(config["tp"])
    layers, h = m["num_hidden_layers"], m["hidden_size"]
    heads, kv_heads = m["num_attention_heads"], m["num_key_value_heads"]
    experts, top_k = m["num_local_experts"], m["num_experts_per_tok"]
    value = m["bytes_per_param"]
    if corrected:
        q_dim = heads * m["head_dim"]
        kv_dim = max(kv_heads, tp) * m["head_dim"]
        router = tp * h * experts
        of_mlp = top_k if experts else 1
        resident = experts if experts else 1
    else:
        q_dim = h
        kv_dim = h * kv_heads / heads
        router = 0
        of_mlp = top_k / experts if experts else 1
        resident = top_k if experts else 1
    attention_weights = 2 * h * q_dim + 2 * h * kv_dim + router
    matrix = h * m["intermediate_size"] * m["n_mlp_proj"]
    c = {}
    c["kv_dim"] = kv_dim
    c["flops_attn_linear"] = 2 * attention_weights
    c["flops_mlp"] = 2 * matrix * of_mlp
    c["flops_lm_head"] = 2 * h * m["vocab_size"]
    c["flops_linear_per_token"] = layers * (c["flops_attn_linear"] + c["flops_mlp"])
    c["weight_bytes_attn"] = attention_weights * value
    c["weight_bytes_mlp"] = matrix * value
    c["weight_bytes_total"] = layers * (c["weight_bytes_attn"] + resident * c["weight_bytes_mlp"])
    c["kv_bytes_per_token"] = 2 * layers * kv_dim * value
    peak = hw["TFlopsPeak"] * 10**12
    bandwidth = hw["bandwidth_gb_s"] * 10**9
    pcie = hw["pcie_bandwidth_gb_s"] * 10**9 * hw["pcie_efficiency"]
    link = hw["interconnect_bandwidth_gb_s"] * 10**9
    ring = 2 * (tp - 1) / tp
    c["comm_bytes_per_token"] = layers * 2 * h * value * ring
    tokens = engine["max_num_batched_tokens"]
    if corrected:
        c["weight_bytes_total"] += h * m["vocab_size"] * value
        c["hw_peak_flops"] = tp * peak
        c["hw_peak_bandwidth"] = tp * bandwidth
        c["hw_pcie_bandwidth_eff"] = tp * pcie
        c["hw_interconnect_bw"] = link / 2
        sampled = min(tokens, engine["max_num_seqs"])
        full = tokens * c["flops_linear_per_token"] + sampled * c["flops_lm_head"]
    else:
        c["flops_linear_per_token"] += c["flops_lm_head"]
        c["kv_bytes_per_token"] *= 2
        c["hw_peak_flops"] = peak / tp
        c["hw_peak_bandwidth"] = bandwidth / tp
        c["hw_pcie_bandwidth_eff"] = pcie
        c["hw_interconnect_bw"] = link
        full = tokens * c["flops_linear_per_token"]
    c["roofline_step_time"] = max(
        full / c["hw_peak_flops"], c["weight_bytes_total"] / c["hw_peak_bandwidth"]
    )
    return c


def alpha_features(config, c, state, corrected):
    engine = config["vllm"]
    i = {name: exact(value) for name, value in state.items()}
    seats, budget = exact(engine["max_num_seqs"]), exact(engine["max_num_batched_tokens"])
    s = min(1, i["running_depth"] / max(EPSILON, seats))
    m = min(1, max(0, i["kv_usage_ratio"]))
    g = s + m - s * m
    prompt = i["prompt_tokens"]
    work = prompt * c["flops_linear_per_token"]
    if corrected:
        work += c["flops_lm_head"]
    block = engine["block_size_tokens"] * c["kv_bytes_per_token"]
    offload = 0
    if engine["cpu_offloading"]:
        offload = over(
            exact(engine["total_kv_blocks_cpu"]) * block, exact(engine["total_kv_blocks_gpu"]) * block
        )
    # The one number here that is no fraction.
    backlog = Fraction(math.log1p(float(i["waiting_depth"])))
    f = [
        over(i["running_depth"], seats),
        i["kv_usage_ratio"],
        work / c["hw_peak_flops"],
        Fraction(1),
        g * backlog * c["roofline_step_time"],
        g * i["kv_usage_ratio"] * over(i["waiting_depth"], seats),
        g * i["prefix_hit_ratio"] * over(prompt, budget),
        g * over(prompt * c["kv_bytes_per_token"], i["kv_free_bytes"]),
        g * i["preemption_ema"],
        g * offload,
        g,
    ]
    return clamped(f, {3, 5} if corrected else set())


def beta_features(config, c, state, corrected):
    model, engine = config["model"], config["vllm"]
    layers, h = model["num_hidden_layers"], model["hidden_size"]
    chunks = state["prefill_chunks"]  # [tokens, computed before, whether it ends the prompt]
    prefill = sum(n for n, _, _ in chunks)
    ends = sum(1 for _, _, last in chunks if last)
    decode = state["decode_tokens"]
    tokens = prefill + decode
    context = state["decode_context_tokens"]
    block = engine["block_size_tokens"] * c["kv_bytes_per_token"]
    experts, top_k = model["num_local_experts"], model["num_experts_per_tok"]
    activation = Fraction(0)
    if experts and tokens:
        activation = 1 - (1 - Fraction(top_k, experts)) ** tokens
    touched = experts * activation if experts else 1
    weights = layers * (c["weight_bytes_attn"] + touched * c["weight_bytes_mlp"])
    head = c["flops_lm_head"]
    if corrected:
        if ends or decode:
            weights += h * model["vocab_size"] * model["bytes_per_param"]
        q_dim = model["num_attention_heads"] * model["head_dim"]
        prefill_flops = prefill * c["flops_linear_per_token"] + ends * head
        pairs = sum(n * before + Fraction(n * (n + 1), 2) for n, before, _ in chunks)
        attention_flops = 4 * layers * q_dim * pairs
        decode_attention = 4 * layers * q_dim * context
        reading = weights / c["hw_peak_bandwidth"]
        computing = decode * (c["flops_linear_per_token"] + head) / c["hw_peak_flops"]
        weight_time = max(reading, computing) if tokens else 0
        kv_bytes = (context + sum(n + before for n, before, _ in chunks)) * c["kv_bytes_per_token"]
        latency = 2 * layers * exact(config["hardware"]["interconnect_latency_us"]) / 10**6
    else:
        prefill_flops = prefill * c["flops_linear_per_token"]
        attention_flops = 2 * layers * h * sum((before + n) * n for n, before, _ in chunks)
        decode_attention = 2 * layers * h * context
        weight_time = weights / c["hw_peak_bandwidth"] if decode else 0
        kv_bytes = state["sum_decode_kv_blocks"] * block
        latency = 0
    exchange = 0
    if config["tp"] > 1 and tokens:
        exchange = tokens * c["comm_bytes_per_token"] / c["hw_interconnect_bw"] + latency
    pcie = block / c["hw_pcie_bandwidth_eff"] if engine["cpu_offloading"] else 0
    mixed = engine["chunked_prefill_enabled"] and chunks and decode
    f = [
        prefill_flops / c["hw_peak_flops"],
        attention_flops / c["hw_peak_flops"],
        weight_time,
        decode_attention / c["hw_peak_flops"],
        kv_bytes / c["hw_peak_bandwidth"],
        over(Fraction(tokens), engine["max_num_batched_tokens"]),
        over(Fraction(prefill), tokens),
        activation,
        exchange,
        Fraction(model["num_key_value_heads"], model["num_attention_heads"]),
        Fraction(1, max(1, tokens)),
        exact(state["preemption_ema"]),
        state["transfer_blocks"] * pcie,
        state["cpu_resident_read_blocks"] * pcie,
        Fraction(1 if mixed else 0),
        Fraction(1),
    ]
    return clamped(f, {1, 2, 3, 4, 5, 9, 13, 14} if corrected else set())


def clamped(features, times):
    """Within [0, 100]; those in `times`, counted from 1, are seconds, and only not negative."""
    return [
        max(Fraction(0), value if i in times else min(Fraction(CLAMP), value))
        for i, value in enumerate(features, 1)
    ]


def sums(state):
    """What the features make of the chunks; the same for both variants."""
    chunks = state["prefill_chunks"]
    return {
        "prefill_tokens": sum(n for n, _, _ in chunks),
        "scheduled_tokens": sum(n for n, _, _ in chunks) + state["decode_tokens"],
        "num_prefill_reqs": len(chunks),
        "num_prefills_that_end": sum(1 for _, _, last in chunks if last),
        "sum_prefill_attn_work": sum((before + n) * n for n, before, _ in chunks),
        "sum_prefill_pairs": sum(n * before + n * (n + 1) // 2 for n, before, _ in chunks),
        "sum_prefill_keys": sum(before + n for n, before, _ in chunks),
    }


def expected(case, variant):
    corrected = variant == "corrected"
    c = constants(case["config"], corrected)
    alpha = alpha_features(case["config"], c, case["alpha_input"], corrected)
    beta = beta_features(case["config"], c, case["beta_input"], corrected)
    return {
        "physics_config": {name: number(value) for name, value in c.items()},
        "alpha_features": [number(value) for value in alpha],
        "beta_features": [number(value) for value in beta],
    }


def number(value):
    value = Fraction(value)
    return int(value) if value.denominator == 1 and abs(value) < 2**53 else float(value)


# ---- Cases ---------------------------------------------------------------------------------------

# Models by their config.json; GPUs by their data sheets, NVLink and PCIe in both directions and in
# one, as these quote them.
MODELS = {
    "llama8b": dict(L=32, h=4096, heads=32, kv=8, dim=128, I=14336, V=128256),
    "gpt2": dict(L=48, h=1600, heads=25, kv=25, dim=64, I=6400, V=50257, proj=2),
    "mixtral": dict(L=32, h=4096, heads=32, kv=8, dim=128, I=14336, V=32000, E=8, k=2),
    "nemo": dict(L=40, h=5120, heads=32, kv=8, dim=128, I=14336, V=131072),
    "moe64": dict(L=28, h=2048, heads=16, kv=16, dim=128, I=1408, V=102400, E=64, k=2),
}
GPUS = {
    "a100": dict(TFlopsPeak=312, bandwidth_gb_s=2039, pcie=32, link=600),
    "h100": dict(TFlopsPeak=989, bandwidth_gb_s=3350, pcie=64, link=900),
}


def model(name):
    m = MODELS[name]
    return {
        "num_hidden_layers": m["L"],
        "hidden_size": m["h"],
        "num_attention_heads": m["heads"],
        "num_key_value_heads": m["kv"],
        "head_dim": m["dim"],
        "intermediate_size": m["I"],
        "vocab_size": m["V"],
        "n_mlp_proj": m.get("proj", 3),
        "bytes_per_param": 2,
        "num_local_experts": m.get("E", 0),
        "num_experts_per_tok": m.get("k", 0),
    }


def hardware(name):
    gpu = GPUS[name]
    return {
        "TFlopsPeak": gpu["TFlopsPeak"],
        "bandwidth_gb_s": gpu["bandwidth_gb_s"],
        "pcie_bandwidth_gb_s": gpu["pcie"],
        "pcie_efficiency": 0.75,
        "interconnect_bandwidth_gb_s": gpu["link"],
        "interconnect_latency_us": 5,
    }


def case(id, model_name="llama8b", gpu="h100", tp=1, alpha=None, chunks=(), decodes=0, context=0,
         blocks=None, vllm=None, **beta):
    engine = {
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "chunked_prefill_enabled": True,
        "cpu_offloading": False,
        "block_size_tokens": 16,
        "total_kv_blocks_gpu": 4000,
        "total_kv_blocks_cpu": 0,
    }
    engine.update(vllm or {})
    state = {
        "running_depth": 24,
        "waiting_depth": 8,
        "kv_usage_ratio": 0.72,
        "prompt_tokens": 512,
        "prefix_hit_ratio": 0.0,
        "kv_free_bytes": 2348810240,
        "preemption_ema": 0.05,
    }
    state.update(alpha or {})
    return {
        "id": id,
        "config": {"model": model(model_name), "hardware": hardware(gpu), "tp": tp, "vllm": engine},
        "alpha_input": state,
        "beta_input": {
            "prefill_chunks": [list(chunk) for chunk in chunks],
            "decode_tokens": decodes,
            "decode_context_tokens": context,
            "sum_decode_kv_blocks": -(-context // 16) if blocks is None else blocks,
            "preemption_ema": beta.get("preemption_ema", state["preemption_ema"]),
            "transfer_blocks": beta.get("transfer_blocks", 0),
            "cpu_resident_read_blocks": beta.get("cpu_resident_read_blocks", 0),
        },
    }


WORKLOADS = {
    "pure_prefill": dict(chunks=[(512, 0, True), (2048, 0, True)]),
    "pure_decode": dict(decodes=32, context=32 * 4096, blocks=32 * 257),
    "mixed": dict(chunks=[(300, 0, True)], decodes=96, context=96 * 700, blocks=96 * 44),
    "chunked": dict(chunks=[(512, 1024, False), (512, 3584, True), (1000, 0, False)], decodes=3,
                    context=1000, blocks=64),
    "single_token": dict(decodes=1, context=17, blocks=2),
}


def cases():
    # The specification's own worked example; its answers, with arithmetic slips, are in the docs.
    yield case("llama8b_h100_tp1_worked_example", alpha={"kv_free_bytes": 1835008},
               chunks=[(512, 0, True)], vllm={"chunked_prefill_enabled": False})
    turn = 0
    for model_name in ("llama8b", "gpt2", "mixtral"):
        for gpu in GPUS:
            for tp in (1, 2, 4):
                names = list(WORKLOADS)
                for k in (turn, turn + 2):
                    name = names[k % len(names)]
                    yield case(f"{model_name}_{gpu}_tp{tp}_{name}", model_name, gpu, tp,
                               alpha={"running_depth": 10 + turn, "prompt_tokens": 100 + 37 * turn,
                                      "prefix_hit_ratio": turn / 40}, **WORKLOADS[name])
                turn += 1
    # A width of heads that is not hidden / heads; fewer KV heads than GPUs.
    yield case("nemo_h100_tp2_mixed", "nemo", tp=2, **WORKLOADS["mixed"])
    yield case("nemo_a100_tp16_mixed", "nemo", "a100", 16, **WORKLOADS["mixed"])
    # Edges of a batch.
    for model_name in ("llama8b", "mixtral"):
        yield case(f"{model_name}_empty_batch", model_name, tp=2)
        yield case(f"{model_name}_single_token_prefill", model_name, chunks=[(1, 0, True)])
        yield case(f"{model_name}_one_token_of_a_long_prompt", model_name,
                   chunks=[(1, 100000, False)])
        yield case(f"{model_name}_max_batch", model_name, chunks=[(7936, 0, True)], decodes=256,
                   context=256 * 8000, blocks=256 * 500)
        yield case(f"{model_name}_decodes_of_512", model_name, decodes=512, context=512 * 300,
                   vllm={"max_num_seqs": 512})
        yield case(f"{model_name}_chunk_512_at_1024", model_name, chunks=[(512, 1024, False)])
        yield case(f"{model_name}_prompt_of_4096", model_name, chunks=[(4096, 0, True)])
    for k in range(8):
        yield case(f"llama8b_chunk_{k + 1}_of_8", chunks=[(512, 512 * k, k == 7)])
    # (0.75)^B, and (62/64)^B: exact 1 from B = 131 and 1179 on.
    for tokens in (1, 2, 49, 50, 51, 131, 2048):
        yield case(f"mixtral_{tokens}_tokens", "mixtral", decodes=tokens, context=tokens * 100)
    for tokens in (1, 150, 1179, 8192):
        yield case(f"moe64_{tokens}_tokens", "moe64", decodes=tokens, context=tokens * 10)
    # Offloading.
    offload = {"cpu_offloading": True, "total_kv_blocks_cpu": 16000}
    moved = dict(transfer_blocks=120, cpu_resident_read_blocks=37)
    for tp in (1, 4):
        yield case(f"llama8b_tp{tp}_offload", tp=tp, vllm=offload, **WORKLOADS["pure_decode"], **moved)
    yield case("gpt2_offload", "gpt2", "a100", vllm=offload, **WORKLOADS["mixed"], **moved)
    yield case("llama8b_no_offload_but_blocks", **WORKLOADS["pure_decode"], **moved)
    yield case("llama8b_offload_without_a_pool", vllm=dict(offload, total_kv_blocks_gpu=0))
    # States of the queue.
    for waiting in (0, 1, 1000):
        yield case(f"llama8b_{waiting}_waiting", alpha={"waiting_depth": waiting})
    yield case("llama8b_idle", alpha={"running_depth": 0, "waiting_depth": 0, "kv_usage_ratio": 0.0,
                                      "preemption_ema": 0.0})
    yield case("llama8b_more_running_than_seats", alpha={"running_depth": 300})
    yield case("llama8b_full_kv", alpha={"kv_usage_ratio": 1.0, "kv_free_bytes": 0})
    yield case("llama8b_kv_usage_beyond_1", alpha={"kv_usage_ratio": 1.25})
    yield case("llama8b_kv_usage_below_0", alpha={"kv_usage_ratio": -0.25})
    yield case("llama8b_saturated", alpha={"running_depth": 256, "waiting_depth": 30000,
                                           "prefix_hit_ratio": 1.0, "preemption_ema": 1.0})
    yield case("llama8b_no_seats", vllm={"max_num_seqs": 0})
    for free in (1e-7, 1e-6, 2e-6):
        yield case(f"llama8b_free_bytes_{free}", alpha={"kv_free_bytes": free, "prompt_tokens": 0,
                                                       "kv_usage_ratio": 0.999})
        yield case(f"llama8b_free_bytes_{free}_of_1_token",
                   alpha={"kv_free_bytes": free, "prompt_tokens": 1, "kv_usage_ratio": 0.999})


# ---- The file ------------------------------------------------------------------------------------


def write():
    lines = ['{"version": "1.0", "tolerance_relative": 1e-10, "cases": [']
    all_cases = list(cases())
    for at, entry in enumerate(all_cases):
        entry["beta_sums"] = sums(entry["beta_input"])
        entry.update({variant: expected(entry, variant) for variant in VARIANTS})
        members = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in entry.items()]
        lines.append("{\n" + ",\n".join(members) + "\n}" + ("," if at + 1 < len(all_cases) else ""))
    lines.append("]}")
    with open(FILE, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def differences():
    with open(FILE, encoding="ascii") as file:
        fixture = json.load(file)
    ids = [entry["id"] for entry in fixture["cases"]]
    if len(ids) < 50 or len(set(ids)) != len(ids):
        yield f"{len(ids)} cases, {len(set(ids))} of them of a name of their own; at least 50"
    if ids != [entry["id"] for entry in cases()]:
        yield "the cases are not those of this script: physics_features.py --write"
    for entry in fixture["cases"]:
        if entry["beta_sums"] != sums(entry["beta_input"]):
            yield f"{entry['id']}: beta_sums {entry['beta_sums']}"
        for variant in VARIANTS:
            found, want = entry[variant], expected(entry, variant)
            # The constants first: a feature that is wrong by a constant is not wrong by itself.
            for part in ("physics_config", "alpha_features", "beta_features"):
                rows = want[part].items() if part == "physics_config" else enumerate(want[part])
                if len(found[part]) != len(want[part]):
                    yield f"{entry['id']}, {variant}: {len(found[part])} values of {part}"
                    continue
                for name, value in rows:
                    got = found[part][name]
                    if value == 0 and got == 0:
                        continue
                    if value != 0 and abs(got - value) <= TOLERANCE * abs(value):
                        continue
                    place = name if part == "physics_config" else name + 1
                    yield f"{entry['id']}, {variant}: {part} {place}: {got}, by the formula {value}"


def main():
    if sys.argv[1:] == ["--write"]:
        write()
    elif sys.argv[1:]:
        sys.exit(__doc__)
    count = 0
    for difference in differences():
        print(difference)
        count += 1
    if count:
        sys.exit(f"{count} differences")
    print(f"{sum(1 for _ in cases())} cases, 2 variants, as the formulas say")


if __name__ == "__main__":
    main()
