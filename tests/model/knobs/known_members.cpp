// A test of the tests: no member of a config is without a knob unnoticed.
#include "core/model/config.h"

namespace fp8kv {
namespace {

// Does not compile with a member more or less: each has a row in family_knobs.cpp,
// later_knobs.cpp or newest_knobs.cpp, or a word here.
[[maybe_unused]] void all_members_are_known() {
  // The tensors' shapes give count, hidden_dim, inner_dim, fixed and identities, their dtypes
  // f32_router, and their number table_layers. router_norm always comes with beside_dense.
  [[maybe_unused]] const auto [count, hidden_dim, inner_dim, inner_norm, sum_norm, each_norm,
                               logits_by, routing, choice_bias, shared, fixed, gate, bias, beside,
                               router_norm, f32_router, factors, multiplier, post_norm, tables,
                               identities, shortcut] = ExpertsConfig{};
  // The tensors' shapes give conv_width, steps_by_row, rank, full_gate and from_v. Without
  // fixed_decays nothing says how fast a state decays.
  [[maybe_unused]] const auto [update, state_norm, skip, conv_bias, state_bias, state_out_bias,
                               multipliers, state_gate, state_eps, most_strength, steps_by_row,
                               least_log_decay, state_rank, full_gate, from_v, fixed_decays,
                               decay_layers, activates, state_qk_norm, state_rope, norm_groups,
                               least, most, k_heads, k_dim, v_heads, of_v_dim, width] =
      RecurrenceConfig{};
  // divisor_eps is too small to show in any model: see test_ling_refused.cpp.
  [[maybe_unused]] const auto [first_layer, divisor_eps] = DecayLayers{};
  [[maybe_unused]] const auto [by_in, by_gate, by_v, by_k, by_q, by_step, by_out] =
      StateMultipliers{};
  [[maybe_unused]] const auto [alpha, limit, form] = ClampedSwiglu{};
  [[maybe_unused]] const auto [swiglu_of_experts, dense_swiglu] = LayerSwiglu{};
  // A sigmoid of attn_gate shares a tensor with Q: without it no table of tensors fits. Without
  // window_sinks there are too few tensors. epsilon is too small to show in any model.
  [[maybe_unused]] const auto [per_token, score, near, normalise, epsilon, scale, groups, kept,
                               worth, input] = Routing{};
  // The tensors' shapes give n_heads, size, weighted and norms_tokens, and their dtypes
  // f32_weights. Attention's rotation is the indexer's too.
  [[maybe_unused]] const auto [n_heads, size, index_rope_dim, top_k, block, pooled, weighted,
                               norms_tokens, local_blocks, by_kv_head, index_pairs, rotates_last,
                               index_eps, f32_weights] = IndexerConfig{};
  [[maybe_unused]] const auto [norm, plus_one, last_whole, norm_bias, place, states_before,
                               parallel, shared_norm, qk, q_by, attn_gate, qk_bias, v_norm,
                               attended_norm, bare_post, weighs_first, gate_temperature, activation,
                               xielu, gated, head_bias, head_normed, embed, residual, attention_in,
                               attention_out, v_by, gate_by, down_by, logit, attention, by_layer,
                               by_size, score_bias, sinks, window_sinks, score_cap, logit_cap,
                               layer_scale, ffn_scale, stream_factors, differential] =
      BlockConfig{};
  [[maybe_unused]] const auto [of_attention, of_state, of_feed_forward] = StreamFactors{};
  // The tensors' names give blocks, and their shapes block_rank.
  [[maybe_unused]] const auto [blocks, block_rank, adapts_attention] = SharedBlockConfig{};
  // The tensors' shapes give all of these.
  [[maybe_unused]] const auto [distance_dim, extent] = DistanceConfig{};
  [[maybe_unused]] const auto [taps] = ShortConvsConfig{};
  // The tensors' shapes give count.
  [[maybe_unused]] const auto [streams, active, scaled] = StreamsConfig{};
  // The tensors' shapes give count, rank and mean_head, and their dtypes f32_product.
  [[maybe_unused]] const auto [connected, hyper_rank, hyper_eps, most_written, rounds, eps_written,
                               mean_head, f32_product] = HyperConfig{};
  // The tensors' shapes give all but row_rope_dim, which the rotations of layers give.
  [[maybe_unused]] const auto [row_q_rank, row_rope_dim, o_groups, o_rank] = SharedRowConfig{};
  // The tensors' shapes give heads, dim and conv_width, and with them multiple, files and rows.
  [[maybe_unused]] const auto [longest, ngram_heads, ngram_dim, least_rows, multiple, files, seed,
                               hashed_vocab, gap, ngram_conv, ngram_layers, ngram_rows] =
      NgramConfig{};
  // The tensors' shapes give all of these except norm_eps and the factors.
  [[maybe_unused]] const auto [rank, rope_dim, nope_dim, v_dim, q_rank, latent_eps, q_factor,
                               latent_factor] = LatentConfig{};
  // Only the certificate uses base_grows; it is computed nowhere.
  [[maybe_unused]] const auto [theta, scaling, factor, low, high, context, fast, slow, truncate,
                               attention_factor, dim, pairs, shorts, longs, growth, from,
                               turning_pairs, grows, evenly, turns, k_factor, backwards] =
      RopeConfig{};
}

}  // namespace
}  // namespace fp8kv
