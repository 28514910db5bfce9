"""Ling 2.5, of transformers' Ling 3 (BailingHybrid): latent attention of DeepSeek V3, and lightning attention in the other layers.

Its own code is not in transformers. A lightning layer is written here as one product of all tokens with all tokens before them.
"""

import math

import torch
from torch import nn
from torch.nn import functional
from transformers.models.bailing_hybrid import modeling_bailing_hybrid as hybrid
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention


class Weights(nn.Module):
    """Of a norm by the root mean square."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))


def normed(x, eps):
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)


def turned(x, cosines, sines):
    """The first elements of a head, by halves: x [heads, tokens, size], angles [tokens, half]."""
    half = cosines.shape[-1]
    first, second, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines, rest), dim=-1)


class LightningAttention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.heads, self.size = config.num_attention_heads, config.linear_head_dim
        width = self.heads * self.size
        self.groups, self.eps = config.group_norm_size, config.rms_norm_eps
        self.query_key_value = nn.Linear(config.hidden_size, 3 * width, bias=False)
        self.g_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.o_proj = nn.Linear(width, config.hidden_size, bias=False)
        self.g_norm = Weights(width)
        if config.use_qk_norm:
            self.query_layernorm, self.key_layernorm = Weights(self.size), Weights(self.size)
        of_layer = 1 - (layer - 1) / (config.num_hidden_layers - 1) + 1e-5
        self.slopes = [2 ** (-8 * (head + 1) / self.heads) * of_layer for head in range(self.heads)]

    def forward(self, hidden_states, position_embeddings, **_):
        tokens = hidden_states.shape[1]
        # [3, heads, tokens, size]
        q, k, v = self.query_key_value(hidden_states[0]).view(tokens, 3, self.heads, self.size).permute(1, 2, 0, 3)
        if hasattr(self, "query_layernorm"):
            q, k = normed(q, self.eps) * self.query_layernorm.weight, normed(k, self.eps) * self.key_layernorm.weight
        cosines, sines = (each[0, :, :each.shape[-1] // 2] for each in position_embeddings)
        q, k = turned(q, cosines, sines), turned(k, cosines, sines)
        distance = torch.arange(tokens)[:, None] - torch.arange(tokens)[None, :]
        out = []
        for head, slope in enumerate(self.slopes):
            decayed = torch.where(distance >= 0, torch.exp(-slope * distance.double()), 0.0).float()
            out.append((q[head] @ k[head].T / math.sqrt(self.size) * decayed) @ v[head])
        rows = torch.stack(out, dim=1).reshape(tokens, self.groups, -1)
        rows = normed(rows, self.eps).reshape(tokens, -1) * self.g_norm.weight
        return self.o_proj(rows * functional.sigmoid(self.g_proj(hidden_states[0])))[None]


class BailingMoeV2_5ForCausalLM(hybrid.BailingHybridForCausalLM):
    def __init__(self, config):
        super().__init__(config)
        for i, layer in enumerate(self.model.layers):
            full = config.layer_types[i] == "full_attention"
            layer.self_attn = DeepseekV3Attention(config, i) if full else LightningAttention(config, i)
        self.post_init()
