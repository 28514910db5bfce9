"""Kimi K3's language model, of transformers' Kimi Linear. Its own code is not in transformers; vLLM's model says what its keys mean."""

import torch
from torch import nn
from torch.nn import functional
from transformers.models.kimi_linear import modeling_kimi_linear as linear


def situ(config, gate, up):
    """SiTU-GLU, or the SwiGLU of Kimi Linear. Convolutions have SiLU, by hidden_act."""
    if not config.situ:
        return functional.silu(gate) * up
    beta, most = config.activation_situ_beta, config.activation_situ_linear_beta
    return beta * torch.tanh(gate / beta) * torch.sigmoid(gate) * most * torch.tanh(up / most)


class FeedForward(linear.KimiLinearMLP):
    def forward(self, x):
        return self.down_proj(situ(self.config, self.gate_proj(x), self.up_proj(x)))


class Experts(nn.Module):
    def __init__(self, config, width):
        super().__init__()
        count, hidden = config.num_local_experts, config.moe_intermediate_size
        self.config = config
        self.gate_up_proj = nn.Parameter(torch.zeros(count, 2 * hidden, width))
        self.down_proj = nn.Parameter(torch.zeros(count, width, hidden))

    def forward(self, x, chosen, weights):
        out = torch.zeros_like(x)
        for row in range(x.shape[0]):
            for expert, weight in zip(chosen[row].tolist(), weights[row]):
                gate, up = (self.gate_up_proj[expert] @ x[row]).chunk(2)
                out[row] += weight * (self.down_proj[expert] @ situ(self.config, gate, up))
        return out


class MixtureOfExperts(nn.Module):
    def __init__(self, config):
        super().__init__()
        inner = config.routed_expert_hidden_size
        self.gate = linear.KimiLinearTopkRouter(config)
        self.experts = Experts(config, inner or config.hidden_size)
        self.shared_experts = FeedForward(config, config.moe_intermediate_size * config.num_shared_experts)
        if inner:
            self.routed_expert_down_proj = nn.Linear(config.hidden_size, inner, bias=False)
            self.routed_expert_up_proj = nn.Linear(inner, config.hidden_size, bias=False)
        if inner and config.latent_moe_use_norm:
            self.routed_expert_norm = linear.KimiLinearRMSNorm(inner, config.rms_norm_eps)

    def forward(self, x):
        _, weights, chosen = self.gate(x)
        rows = x.view(-1, x.shape[-1])
        if hasattr(self, "routed_expert_down_proj"):
            made = self.experts(self.routed_expert_down_proj(rows), chosen, weights)
            made = self.routed_expert_up_proj(self.routed_expert_norm(made) if hasattr(self, "routed_expert_norm") else made)
        else:
            made = self.experts(rows, chosen, weights)
        return made.view(x.shape) + self.shared_experts(x)


class GatedOut(nn.Linear):
    """The last product of latent attention, whose input is gated first."""
    gate = None

    def forward(self, x):
        return super().forward(x if self.gate is None else x * self.gate)


class LatentAttention(linear.KimiLinearAttention):
    def __init__(self, config, layer):
        super().__init__(config, layer)
        width = self.o_proj.in_features
        self.o_proj = GatedOut(width, config.hidden_size, bias=False)
        if config.mla_use_output_gate:
            self.g_proj = nn.Linear(config.hidden_size, width, bias=False)

    def forward(self, hidden_states, *args, **more):
        self.o_proj.gate = torch.sigmoid(self.g_proj(hidden_states)) if hasattr(self, "g_proj") else None
        return super().forward(hidden_states, *args, **more)


class BoundedDecay(linear.KimiLinearForgetGate):
    """The file has a number for each row of a head's state, of which the first are those of the heads."""

    def __init__(self, config):
        super().__init__(config)
        self.A_log = nn.Parameter(torch.zeros(max(self.head_dim, self.num_heads)))
        self.least = config.linear_attn_config.get("gate_lower_bound")

    def forward(self, x):
        steps = (self.f_b_proj(self.f_a_proj(x)) + self.dt_bias).view(*x.shape[:2], -1, self.head_dim)
        rates = torch.exp(self.A_log[:self.num_heads]).view(1, 1, -1, 1)
        return -rates * functional.softplus(steps) if self.least is None else self.least * torch.sigmoid(rates * steps)


class DeltaAttention(linear.KimiLinearDeltaAttention):
    def __init__(self, config, layer):
        super().__init__(config, layer)
        del self.g_a_proj, self.g_b_proj
        self.forget_gate = BoundedDecay(config)
        self.g_proj = nn.Linear(config.hidden_size, self.qkv_dim, bias=False)
        self.g_a_proj, self.g_b_proj = (lambda x: x), (lambda x: self.g_proj(x))


def mixed(sources, norm, product):
    """A weighted sum of the stream and of what is kept: a softmax over their products."""
    rows = torch.stack(sources)
    return (torch.softmax(product(norm(rows)), dim=0) * rows).sum(dim=0)


class Layer(nn.Module):
    def __init__(self, config, index):
        super().__init__()
        self.attends = config.layer_types[index] == "full_attention"
        self.self_attn = (LatentAttention if self.attends else DeltaAttention)(config, index)
        self.mlp = MixtureOfExperts(config) if config.mlp_layer_types[index] == "sparse" else FeedForward(config)
        self.input_layernorm = linear.KimiLinearRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = linear.KimiLinearRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.block = config.attn_res_block_size
        self.begins = bool(self.block) and index % self.block == 0
        if self.block:
            for of in ("self_attention", "mlp"):
                setattr(self, f"{of}_res_norm", linear.KimiLinearRMSNorm(config.hidden_size, config.rms_norm_eps))
                setattr(self, f"{of}_res_proj", nn.Linear(config.hidden_size, 1, bias=False))

    def attention(self, x, more):
        if self.attends:
            return self.self_attn(x, **more)[0]
        return self.self_attn(hidden_states=x, cache=more["cache"], attention_mask=more["attention_mask"])

    def forward(self, x, attention_mask=None, cache=None, **more):
        more = {"attention_mask": attention_mask, "cache": cache}
        if not self.block:
            x = x + self.attention(self.input_layernorm(x), more)
            return x + self.mlp(self.post_attention_layernorm(x))
        stream, kept = x if isinstance(x, tuple) else (x, [])
        read = mixed([*kept, stream], self.self_attention_res_norm, self.self_attention_res_proj)
        made = self.attention(self.input_layernorm(read), more)
        kept, stream = ([*kept, stream], made) if self.begins else (kept, stream + made)
        read = mixed([*kept, stream], self.mlp_res_norm, self.mlp_res_proj)
        return stream + self.mlp(self.post_attention_layernorm(read)), kept


class KimiK3ForCausalLM(linear.KimiLinearForCausalLM):
    def __init__(self, config):
        super().__init__(config)
        model, size = self.model, config.hidden_size
        model.layers = nn.ModuleList(Layer(config, index) for index in range(config.num_hidden_layers))
        if config.attn_res_block_size:
            model.output_attn_res_norm = linear.KimiLinearRMSNorm(size, config.rms_norm_eps)
            model.output_attn_res_proj = nn.Linear(size, 1, bias=False)
            model.norm.register_forward_pre_hook(lambda _, x: mixed(
                [*x[0][1], x[0][0]], model.output_attn_res_norm, model.output_attn_res_proj))
        self.post_init()
