// Parts of the families of Ling and Ring that several generations share. Internal to config.
#pragma once

#include "config/families/tensor_blocks.h"
#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// Throws unless the number is absent or has the value that runtimes take whatever it says.
void check_taken(const Json& config, const char* key, double taken, const char* why);

// Throws unless the keys for the part of a head that rotates say qk_rope_head_dim. REQUIRES
// out.latent.
void check_rotated(const Json& config, const ModelConfig& out);

// Reads the experts and their router in Ling 2 and 2.5: sigmoids, a bias of the choice, groups, and
// a shared expert.
void parse_ling2_experts(const Json& config, ModelConfig& out);

TensorRow ling_row(const char* name, TensorRole role);

// Latent attention. With q_in_two, Q is made by way of a smaller vector.
TensorRows ling_attention(bool q_in_two);

// The rows behind attention: the next norm, the feed-forward part, and the end of the model.
TensorRows ling_feed_forward();

}  // namespace fp8kv
