#include "model/computable_indexer.h"

#include <string>

#include "base/error.h"
#include "model/computable_streams.h"

namespace fp8kv {
namespace {

// The elements of a head that rotate in layer `index`.
int64_t rotated_dim(const ModelConfig& config, int64_t index) {
  const int32_t rope = config.layer_ropes[static_cast<size_t>(index)];
  if (rope < 0) return 0;
  const int64_t part = config.ropes[static_cast<size_t>(rope)].rotary_dim;
  return part > 0 ? part : config.layer(index).k_head_dim;
}

// Checks an indexer that chooses blocks of latents, none of which rotate.
void check_unrotated_choice(const ModelConfig& config) {
  const LatentConfig& latent = *config.latent;
  bool turns = false;
  for (int64_t index = 0; index < config.n_layers(); ++index) turns |= config.turns(index);
  if (config.indexer->weighted && config.indexer->rope_dim == 0 && !turns && latent.q_rank > 0 &&
      norms_input(config.block.norm_place)) {
    return;
  }
  refuse_computing(config,
                   "an indexer chooses blocks of latents, with keys that are normed by token",
                   "no rotation, a norm before attention, and a vector that Q is made from");
}

// Checks an indexer whose keys are pooled.
void check_pooled(const ModelConfig& config) {
  const IndexerConfig& indexer = *config.indexer;
  if (config.latent.has_value() != indexer.norms_tokens || indexer.by_kv_head ||
      indexer.block < 2 || indexer.local_blocks != 0) {
    refuse_computing(
        config, cat("an indexer pools keys of blocks of ", indexer.block),
        "blocks of 2 tokens or more, for KV heads that all see the same, or for latents if each "
        "token's key is normed");
  }
  if (indexer.norms_tokens) return check_unrotated_choice(config);
  if (indexer.weighted) return;  // check_shared_row has the rest
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    const LayerDescription& layer = config.layer(index);
    if (layer.index_bytes == 0) continue;
    const int32_t rope = config.layer_ropes[static_cast<size_t>(index)];
    const bool halves =
        rope >= 0 && config.ropes[static_cast<size_t>(rope)].pairs == RopePairs::halves;
    if (layer.mixing == Mixing::full && halves && rotated_dim(config, index) == indexer.rope_dim)
      continue;
    refuse_computing(
        config,
        cat("layer ", index, " has an indexer that rotates ", indexer.rope_dim, " elements"),
        "full attention that rotates as many, in halves");
  }
}

}  // namespace

void check_indexer(const ModelConfig& config) {
  if (!config.indexer) return;
  const IndexerConfig& indexer = *config.indexer;
  if (indexer.pooled) return check_pooled(config);
  if (!norms_input(config.block.norm_place)) {
    refuse_computing(config, "an indexer is in blocks without a norm before them", "a norm");
  }
  if (indexer.by_kv_head == config.latent.has_value() ||
      (config.latent && (config.latent->q_rank == 0 || indexer.block != 1))) {
    refuse_computing(
        config, "an indexer chooses tokens of another kind than its attention sees",
        "blocks for KV heads, or tokens for latents with a vector that Q is made from");
  }
  const int64_t rotated = config.latent ? config.latent->rope_dim : rotated_dim(config, 0);
  if (indexer.rope_dim != rotated) {
    refuse_computing(config, cat("an indexer rotates ", indexer.rope_dim, " elements"),
                     cat(rotated, " like its attention"));
  }
  if (!indexer.by_kv_head) return;
  if (indexer.local_blocks < 1 || indexer.local_blocks > indexer.top_k) {
    refuse_computing(config,
                     cat("an indexer always chooses the last ", indexer.local_blocks, " blocks"),
                     cat("1 to ", indexer.top_k));
  }
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    const LayerDescription& layer = config.layer(index);
    if (layer.index_bytes == 0) continue;
    if (layer.mixing == Mixing::full && layer.n_kv_heads == indexer.n_heads &&
        rotated_dim(config, index) == rotated)
      continue;
    refuse_computing(config, cat("layer ", index, " has an indexer of ", indexer.n_heads, " heads"),
                     "full attention with as many KV heads, which rotate");
  }
}

}  // namespace fp8kv
