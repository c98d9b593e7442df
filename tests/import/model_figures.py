#!/usr/bin/env python3
"""What a model's config.json comes to, counted matrix by matrix: parameters, active parameters, bytes
of KV a token and of states a request (16-bit caches, one GPU). Written without a look at the engine;
tests/core/import_layers_test.cpp holds the import to its output.

    python3 tests/import/model_figures.py FOLDER > tests/import/model_figures.json
"""
import glob
import json
import os
import sys


def attention(h, heads, kv, dim, vdim, bias=False, gated=False, k_eq_v=False):
    n = h * heads * dim * (2 if gated else 1) + h * kv * dim + heads * vdim * h
    if not k_eq_v:
        n += h * kv * vdim
    if bias:
        n += heads * dim + kv * dim + (0 if k_eq_v else kv * vdim)
    return n


def latent(c):
    h, heads, rank, rope = c['hidden_size'], c['num_attention_heads'], c['kv_lora_rank'], c['qk_rope_head_dim']
    nope, v, q = c['qk_nope_head_dim'], c['v_head_dim'], c.get('q_lora_rank') or 0
    n = (h * q + q * heads * (nope + rope)) if q else h * heads * (nope + rope)
    return n + h * (rank + rope) + rank * heads * (nope + v) + heads * v * h


def mlp(h, width, matrices=3):
    return matrices * h * width


def figures(c, tied):
    kind = c['model_type']
    h, layers, vocab = c['hidden_size'], c['num_hidden_layers'], c['vocab_size']
    heads = c.get('num_attention_heads')
    total = vocab * h * (1 if tied else 2) + h
    idle = kv_bytes = state = 0

    def experts(n, top, width, matrices=3, into=None):
        nonlocal total, idle
        each = matrices * (into or h) * width
        total += n * each + h * n
        idle += (n - top) * each

    for i in range(layers):
        moe = False
        if kind in ('nemotron_h',):
            letter = c['hybrid_override_pattern'][i]
            total += h
            if letter == 'M':
                mh, md, st, g, conv = (c['mamba_num_heads'], c['mamba_head_dim'], c['ssm_state_size'], c['n_groups'],
                                       c['conv_kernel'])
                inner = mh * md
                wide = inner + 2 * g * st
                total += h * (inner + wide + mh) + wide * (conv + 1) + 3 * mh + inner + inner * h
                state += (conv - 1) * wide * 2 + inner * st * (4 if c.get('mamba_ssm_cache_dtype') == 'float32' else 2)
            elif letter == '*':
                total += attention(h, heads, c['num_key_value_heads'], c['head_dim'], c['head_dim'])
                kv_bytes += 2 * c['num_key_value_heads'] * c['head_dim'] * 2
            elif letter == 'E':
                into = c.get('moe_latent_size')
                experts(c['n_routed_experts'], c['num_experts_per_tok'], c['moe_intermediate_size'], 2, into)
                total += mlp(h, c['moe_shared_expert_intermediate_size'], 2) + (2 * h * into if into else 0)
            else:
                total += mlp(h, c['intermediate_size'], 2)
            continue
        if kind == 'nemotron-nas':
            b = c['block_configs'][i]
            if not b['attention'].get('no_op'):
                kv = heads // b['attention']['n_heads_in_group']
                total += h + attention(h, heads, kv, h // heads, h // heads)
                kv_bytes += 2 * kv * (h // heads) * 2
            if not b['ffn'].get('no_op'):
                width = int(2 * b['ffn']['ffn_mult'] * h / 3)
                total += h + mlp(h, width + (-width) % 256)
            continue
        total += 2 * h
        full = True
        if kind in ('qwen3_5_text', 'qwen3_5_moe_text', 'qwen3_next'):
            full = c['layer_types'][i] == 'full_attention'
            if full:
                d, kv = c['head_dim'], c['num_key_value_heads']
                total += attention(h, heads, kv, d, d, gated=c.get('attn_output_gate', True))
                kv_bytes += 2 * kv * d * 2
            else:
                kh, vh, kd, vd = (c['linear_num_key_heads'], c['linear_num_value_heads'], c['linear_key_head_dim'],
                                  c['linear_value_head_dim'])
                conv = c['linear_conv_kernel_dim']
                wide = 2 * kh * kd + vh * vd
                total += h * (wide + vh * vd + 2 * vh) + wide * conv + 2 * vh + vd + vh * vd * h
                state += (conv - 1) * wide * 2 + vh * vd * kd * (4 if c.get('mamba_ssm_dtype') == 'float32' else 2)
        elif kind in ('deepseek_v4', 'deepseek_ref'):
            rank, dim, ratio = c['q_lora_rank'], c['head_dim'], c['compress_ratios'][i]
            total += h * rank + rank * heads * dim + h * dim
            total += heads * dim * rank + 8 * rank * h + heads + rank + dim
            entry = dim + c['qk_rope_head_dim'] + 8
            kv_bytes += entry  # the window
            if ratio:
                copies = 2 if ratio == 4 else 1
                total += 2 * h * copies * dim + ratio * copies * dim + dim
                kv_bytes += entry / ratio + 2 * copies * dim * 4
            if ratio == 4:
                index, ih = c['index_head_dim'], c['index_n_heads']
                total += 2 * h * 2 * index + ratio * 2 * index + index + rank * ih * index + h * ih
                kv_bytes += (index + 4) / ratio + 2 * 2 * index * 4
        elif 'kv_lora_rank' in c and c['kv_lora_rank']:
            total += latent(c)
            kv_bytes += (c['kv_lora_rank'] + c['qk_rope_head_dim']) * 2
            if 'index_topk' in c:
                index, ih = c['index_head_dim'], c['index_n_heads']
                total += c['q_lora_rank'] * ih * index + h * (index + ih) + 2 * index
                kv_bytes += index + 4
        elif kind == 'gemma4_text':
            full = c['layer_types'][i] == 'full_attention'
            d = c['global_head_dim'] if full else c['head_dim']
            kv = c['num_global_key_value_heads'] if full else c['num_key_value_heads']
            total += attention(h, heads, kv, d, d, k_eq_v=full and c.get('attention_k_eq_v', False))
            kv_bytes += 2 * kv * d * 2
        else:
            kv = c.get('num_key_value_heads') or heads
            d = c.get('head_dim') or h // heads
            bias = c.get('attention_bias', kind in ('gpt_oss', 'mimo'))
            total += attention(h, heads, kv, d, d, bias=bias)
            kv_bytes += 2 * kv * d * 2
        n = c.get('n_routed_experts') or c.get('num_local_experts') or c.get('num_experts') or 0
        top = c.get('num_experts_per_tok') or c.get('experts_per_token') or c.get('top_k_experts') or 0
        first = c.get('first_k_dense_replace', 0)
        every = c.get('interleave_moe_layer_step') or c.get('decoder_sparse_step') or 1
        moe = n and i >= first and (i + 1) % every == 0
        if kind == 'gemma4_text' and n:
            total += mlp(h, c['intermediate_size'])
        if moe:
            width = c.get('moe_intermediate_size') or c['intermediate_size']
            experts(n, top, width)
            shared = c.get('shared_expert_intermediate_size') or (c.get('n_shared_experts') or 0) * width
            total += mlp(h, width if kind == 'llama4_text' else shared)
        elif not (kind == 'gemma4_text' and n):
            total += mlp(h, c.get('intermediate_size_mlp') or c['intermediate_size'])
    return {'parameters': total, 'active': total - idle, 'kv_bytes_per_token': kv_bytes, 'state_bytes': state}


def main():
    out = {}
    for path in sorted(glob.glob(os.path.join(sys.argv[1], '*_config.json'))):
        name = os.path.basename(path)
        if name.endswith('hf_quant_config.json'):
            continue
        with open(path, encoding='utf-8') as file:
            outer = json.load(file)
        c = outer.get('text_config') or outer
        tied = c.get('tie_word_embeddings', outer.get('tie_word_embeddings', c['model_type'] == 'gemma4_text'))
        out[name[:-len('_config.json')]] = figures(c, tied)
    print(json.dumps(out, indent=1))


main()
