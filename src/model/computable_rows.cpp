#include "model/computable_rows.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "model/computable_streams.h"

namespace fp8kv {
namespace {

int64_t rope_dim_of(const ModelConfig& config, int64_t index) {
  const int32_t rope = config.layer_ropes[static_cast<size_t>(index)];
  return rope < 0 ? 0 : config.ropes[static_cast<size_t>(rope)].rotary_dim;
}

// Checks that a layer has pools only beside a row, and no row where others have none.
void check_row_kind(const ModelConfig& config, int64_t index) {
  const LayerDescription& layer = config.layer(index);
  const bool pools = layer.pool != 0 || layer.pool_overlaps;
  if (layer.one_row == config.shared_row.has_value() && (layer.one_row || !pools)) return;
  refuse_computing(
      config, cat("layer ", index, layer.one_row ? " caches one row" : " caches K and V"),
      config.shared_row ? "one row that is K and V" : "K and V of their own, and no pools");
}

void check_row_of(const ModelConfig& config, int64_t index) {
  const LayerDescription& layer = config.layer(index);
  const bool sizes = layer.n_kv_heads == 1 && layer.k_head_dim == layer.v_head_dim &&
                     layer.k_head_dim == config.layer(0).k_head_dim &&
                     rope_dim_of(config, index) == config.shared_row->rope_dim;
  const bool alone = layer.cache_of == index && layer.mixing == Mixing::window;
  if (sizes && alone && layer.pool != 1 && (layer.pool > 1 || !layer.pool_overlaps)) return;
  refuse_computing(
      config, cat("layer ", index, " has a row of ", layer.k_head_dim, " elements that is K and V"),
      "one head of one size, a cache of its own and a window in every layer, with one rotation");
}

// Checks an indexer that chooses among pooled rows.
void check_pool_choice(const ModelConfig& config, int64_t index) {
  const LayerDescription& layer = config.layer(index);
  if (!config.indexer || layer.index_bytes == 0) return;
  const IndexerConfig& indexer = *config.indexer;
  const bool fits = indexer.weighted && !indexer.norms_tokens && indexer.rotates_last &&
                    layer.pool_overlaps && layer.pool == indexer.block &&
                    indexer.rope_dim == config.shared_row->rope_dim;
  if (fits) return;
  refuse_computing(config,
                   cat("layer ", index, " has an indexer of blocks of ", indexer.block, " tokens"),
                   "one of overlapping pools of as many tokens, with the rotation of attention");
}

}  // namespace

void check_shared_row(const ModelConfig& config) {
  for (int64_t index = 0; index < config.n_layers(); ++index) check_row_kind(config, index);
  if (!config.shared_row) {
    if (!config.indexer || !config.indexer->weighted || config.indexer->norms_tokens) return;
    refuse_computing(config, "an indexer weighs its heads to choose blocks of one key",
                     "pooled rows");
  }
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    check_row_of(config, index);
    check_pool_choice(config, index);
  }
  const BlockConfig& block = config.block;
  const int64_t groups = config.shared_row->o_groups;
  if (groups < 1 || config.n_heads % groups != 0 || !config.heads_by_layer.empty()) {
    refuse_computing(config, cat("its heads form ", groups, " groups"),
                     "groups of as many heads each");
  }
  const bool other = config.latent || config.distances || config.short_convs || config.recurrence ||
                     config.qk_norm_rotated || config.qkv_bias;
  const bool plain = block.qk_norm == QkNorm::none && block.score_bias == ScoreBias::none &&
                     block.score_cap == 0.0 && block.attention_gate == AttentionGate::none &&
                     block.attention_in_multiplier == 1.0 && norms_input(block.norm_place);
  if (!other && plain) return;
  refuse_computing(config, "one row is K and V, beside parts of other attention", "none of these");
}

}  // namespace fp8kv
