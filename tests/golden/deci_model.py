"""Nemotron by architecture search (DeciLM), of transformers' Llama: layers with KV heads and widths of their own, or without a part.

Its own code is not in transformers; vLLM's model says what the keys of block_configs mean.
"""

import copy

import torch
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaForCausalLM


def width_of(block, dim):
    if "intermediate_size" in block:
        return block["intermediate_size"]
    width = int(2 * block["ffn_mult"] * dim / 3)
    return -(-width // 256) * 256


class NoAttention(torch.nn.Module):
    def forward(self, hidden_states, **_):
        return torch.zeros_like(hidden_states), None


class NoFeedForward(torch.nn.Module):
    def forward(self, hidden_states):
        return torch.zeros_like(hidden_states)


class DeciLMForCausalLM(LlamaForCausalLM):
    def __init__(self, config):
        super().__init__(config)
        for i, block in enumerate(config.block_configs):
            attends, feeds = not block["attention"]["no_op"], not block["ffn"]["no_op"]
            own = copy.deepcopy(config)
            own.num_key_value_heads = config.num_attention_heads // block["attention"]["n_heads_in_group"] if attends else 1
            own.intermediate_size = width_of(block["ffn"], config.hidden_size) if feeds else 8
            layer = LlamaDecoderLayer(own, i)
            if not attends:
                layer.self_attn, layer.input_layernorm = NoAttention(), torch.nn.Identity()
            if not feeds:
                layer.mlp, layer.post_attention_layernorm = NoFeedForward(), torch.nn.Identity()
            self.model.layers[i] = layer
        self.post_init()
