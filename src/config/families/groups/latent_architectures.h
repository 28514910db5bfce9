// Families with latent attention (MLA): rows of the table of architectures. Internal to config.
#pragma once

#include <span>

#include "config/families/architecture.h"
#include "config/families/tensor_blocks.h"

namespace fp8kv {

std::span<const Architecture> latent_architectures();

// Reads the sizes of latent attention, its bias and the scale of its scores. Sets out.tensors if Q
// is made in one step. usual_v_dim replaces a missing v_head_dim; 0: the key must be there.
void parse_latent(const Json& text, ModelConfig& out, int64_t usual_v_dim = 0);

// Sets which elements of the rotated part form a pair, by rope_interleave.
void set_latent_pairs(const Json& text, ModelConfig& out);

// Sets the sparse indexer of each layer, unless it would always choose every token. REQUIRES
// parse_latent before.
void parse_latent_indexer(const Json& text, RopePairs pairs, ModelConfig& out);

// Reads the keys for experts that all these families share: all but the router's.
void parse_latent_experts(const Json& text, ModelConfig& out);

// The tensors of attention. With q_in_two, Q is made by way of a smaller vector.
TensorRows latent_attention(bool q_in_two);

// The tensors of the indexer that DeepSeek V3.2 has.
TensorRows latent_indexer();

// All tensors of DeepSeek V3: Q by way of a smaller vector, and experts apart.
std::span<const TensorRow> latent_q_tensors();

}  // namespace fp8kv
