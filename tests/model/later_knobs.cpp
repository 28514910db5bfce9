// The features of families that came in 2026, and of BLOOM.
#include "model/family_knobs.h"

namespace fp8kv::test {
namespace {

const Knob kKnobs[] = {
    {"indexer", "deepseek-v32-seven", [](ModelConfig& c) { c.indexer->top_k = 64; }},
    {"indexer.top_k", "glm-moe-dsa", [](ModelConfig& c) { c.indexer->top_k = 17; }},
    {"indexer.pairs, halves", "deepseek-v32",
     [](ModelConfig& c) { c.indexer->pairs = RopePairs::neighbours; }},
    {"indexer.pairs, neighbours", "glm-moe-dsa-shared",
     [](ModelConfig& c) { c.indexer->pairs = RopePairs::halves; }},
    {"experts.score, sparse_mixer", "phimoe",
     [](ModelConfig& c) { c.experts->routing.score = RouterScore::softmax; }},
    {"experts.near", "phimoe-seven", [](ModelConfig& c) { c.experts->routing.near = 0.02; }},
    {"attention_factor, of longrope with factors of its own", "phimoe-longrope",
     [](ModelConfig& c) {
       for (RopeConfig& rope : c.ropes) rope.attention_factor = 1;
     }},
    {"recurrence.conv_bias, without a state", "lfm2-seven",
     [](ModelConfig& c) { c.recurrence->conv_bias = false; }},
    {"recurrence.bias, without a state", "lfm2-seven",
     [](ModelConfig& c) { c.recurrence->bias = false; }},
    {"recurrence.out_bias, without a state", "lfm2-seven",
     [](ModelConfig& c) { c.recurrence->out_bias = false; }},
    {"qk_norm, per head, beside convolutions", "lfm2",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"experts.choice_bias, beside convolutions", "lfm2-moe",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"experts.normalise, beside convolutions", "lfm2-moe",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"experts.scale, beside convolutions", "lfm2-moe",
     [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"experts.score, sigmoid, beside convolutions", "lfm2-moe-new-keys",
     [](ModelConfig& c) { c.experts->routing.score = RouterScore::softmax; }},
    {"xielu", "apertus", [](ModelConfig& c) { c.block.xielu = false; }},
    {"qk_norm, per head, beside xIELU", "apertus",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"o_bias, beside xIELU", "apertus-seven", [](ModelConfig& c) { c.o_bias = false; }},
    {"embed_norm, without weights", "nanochat", [](ModelConfig& c) { c.embed_norm = false; }},
    {"backwards", "nanochat",
     [](ModelConfig& c) {
       for (RopeConfig& rope : c.ropes) rope.backwards = false;
     }},
    {"qk_norm, plain, without other weights", "nanochat",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::none, c.qk_norm_rotated = false; }},
    {"qk_norm_rotated, without weights", "nanochat-new-keys",
     [](ModelConfig& c) { c.qk_norm_rotated = false; }},
    {"norm, rms, without weights", "nanochat",
     [](ModelConfig& c) { c.block.norm = NormKind::layer; }},
    {"activation, relu squared, beside norms without weights", "nanochat",
     [](ModelConfig& c) { c.block.activation = Activation::relu; }},
    {"logit_cap, by default", "nanochat-seven", [](ModelConfig& c) { c.block.logit_cap = 0; }},
    {"logit_multiplier, none in a wrapper", "cohere2-vision",
     [](ModelConfig& c) { c.block.logit_multiplier = 0.25; }},
    {"layer_ropes, none in layers without a window, of a vision model", "cohere2-vision",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), 0); }},
    {"v_multiplier", "mimo-v2", [](ModelConfig& c) { c.block.v_multiplier = 1; }},
    {"sinks, in layers with a window", "mimo-v2", [](ModelConfig& c) { c.block.sinks = false; }},
    {"layer_ropes, of a window, beside a narrow V", "mimo-v2-seven",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), 0); }},
    {"rotary_dim, by default", "mimo-v2-whole",
     [](ModelConfig& c) {
       for (RopeConfig& rope : c.ropes) rope.rotary_dim = 0;
     }},
    {"window, one more than before the token", "mimo-v2",
     [](ModelConfig& c) {
       for (LayerDescription& layer : c.layers) layer.reach -= layer.reach > 0;
     }},
    {"experts.choice_bias, beside a narrow V", "mimo-v2",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"attention_gate, of heads", "laguna",
     [](ModelConfig& c) { c.block.attention_gate = AttentionGate::none; }},
    {"attention_gate, of elements", "laguna-elements",
     [](ModelConfig& c) { c.block.attention_gate = AttentionGate::none; }},
    {"rotary_dim, of layers without a window", "laguna",
     [](ModelConfig& c) { c.ropes[0].rotary_dim = 0; }},
    {"layer_ropes, of a window, beside query heads by layer", "laguna-elements",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), 0); }},
    {"experts.scale, beside a gate of heads", "laguna",
     [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"experts.choice_bias, under the experts", "laguna",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"experts.normalise, by sigmoids, beside a gate of heads", "laguna-full",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"qk_norm, per head, beside a gate of heads", "laguna",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"indexer, of blocks", "minimax-m3", [](ModelConfig& c) { c.indexer->top_k = 16; }},
    {"indexer.block", "minimax-m3", [](ModelConfig& c) { c.indexer->block = 5; }},
    {"indexer.local_blocks", "minimax-m3-seven",
     [](ModelConfig& c) { c.indexer->local_blocks = 1; }},
    {"swiglus, of the dense part and the shared expert", "minimax-m3",
     [](ModelConfig& c) {
       for (LayerSwiglu& each : c.swiglus) each.dense.reset();
     }},
    {"swiglus, of routed experts", "minimax-m3",
     [](ModelConfig& c) {
       for (LayerSwiglu& each : c.swiglus) each.routed.reset();
     }},
    {"norm_plus_one, beside an indexer", "minimax-m3",
     [](ModelConfig& c) { c.block.norm_plus_one = false; }},
    {"rotary_dim, beside an indexer", "minimax-m3",
     [](ModelConfig& c) { c.ropes[0].rotary_dim = c.indexer->rope_dim = 4; }},
    {"experts.scale, beside an indexer", "minimax-m3",
     [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"experts.choice_bias, beside an indexer", "minimax-m3",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"qk_norm, per head, without an indexer", "minimax-m3-full",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"attention_gate, of heads, by sigmoid", "step3.5",
     [](ModelConfig& c) { c.block.attention_gate = AttentionGate::softplus_of_heads; }},
    {"swiglus, of some layers", "step3.5",
     [](ModelConfig& c) {
       for (LayerSwiglu& each : c.swiglus) each.routed.reset();
     }},
    {"swiglus, of a dense part", "step3.7-seven",
     [](ModelConfig& c) { c.swiglus[1].dense.reset(); }},
    {"swiglus, of shared experts", "step3.7-seven",
     [](ModelConfig& c) { c.swiglus[0].dense.reset(); }},
    {"swiglus, clamped after the activation", "step3.7",
     [](ModelConfig& c) { c.swiglus[1].routed->form = SwigluForm::plus_one; }},
    {"attention_scale, beside a gate of heads", "step3.7",
     [](ModelConfig& c) { c.block.attention_scale = 0; }},
    {"rotary_dim, of layers without a window, by a list", "step3.5-seven",
     [](ModelConfig& c) {
       for (RopeConfig& rope : c.ropes) rope.rotary_dim = 0;
     }},
    {"layer_ropes, of a window, by a list", "step3.7-published",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), 0); }},
    {"norm_plus_one, beside a gate of heads", "step3.5-full",
     [](ModelConfig& c) { c.block.norm_plus_one = false; }},
    {"experts.scale, of Step", "step3.5", [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"experts.choice_bias, of Step", "step3.5",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"embed_norm", "bloom", [](ModelConfig& c) { c.embed_norm = false; }},
    {"score_bias, beside a norm of the embedding", "bloom",
     [](ModelConfig& c) { c.block.score_bias = ScoreBias::none; }},
    {"score_bias, in f32", "bloom",
     [](ModelConfig& c) { c.block.score_bias = ScoreBias::alibi_bf16; }},
    {"embed_norm, without weights", "muse-glimmer", [](ModelConfig& c) { c.embed_norm = false; }},
    {"last_norm_whole", "muse-glimmer", [](ModelConfig& c) { c.block.last_norm_whole = false; }},
    {"norm_plus_one, but for the last norm", "muse-glimmer-seven",
     [](ModelConfig& c) { c.block.norm_plus_one = false; }},
    {"post_norm_eps", "muse-glimmer", [](ModelConfig& c) { c.post_norm_eps = 0; }},
    {"qk_norm, plain in all layers", "muse-glimmer",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::plain; }},
    {"q_multiplier", "muse-glimmer-turning", [](ModelConfig& c) { c.block.q_multiplier = 1; }},
    {"logit_cap, of scaled logits", "muse-glimmer", [](ModelConfig& c) { c.block.logit_cap = 0; }},
    {"logit_multiplier, below a cap", "muse-glimmer-turning",
     [](ModelConfig& c) { c.block.logit_multiplier = 1; }},
    {"layer_ropes, by a list of bases", "muse-glimmer-turning",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), 0); }},
    {"layer_ropes, by the period from the last", "muse-glimmer-seven",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), 0); }},
    {"recurrence.most_strength", "olmo-hybrid",
     [](ModelConfig& c) { c.recurrence->most_strength = 1; }},
    {"recurrence.norm_eps", "olmo-hybrid", [](ModelConfig& c) { c.recurrence->norm_eps = 0; }},
    {"qk_norm, whole, beside states", "olmo-hybrid-rope",
     [](ModelConfig& c) { c.block.qk_norm = QkNorm::none; }},
    {"layer_ropes, beside states", "olmo-hybrid-rope",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), -1); }},
    {"norm_place, around convolutions", "lfm3",
     [](ModelConfig& c) { c.block.norm_place = NormPlace::before; }},
    {"attention_gate, of heads, beside convolutions", "lfm3",
     [](ModelConfig& c) { c.block.attention_gate = AttentionGate::softplus_of_heads; }},
    {"turning_pairs, beside convolutions", "lfm3",
     [](ModelConfig& c) {
       for (RopeConfig& rope : c.ropes) rope.turning_pairs = 0;
     }},
    {"windows, beside convolutions", "lfm3-seven",
     [](ModelConfig& c) {
       for (LayerDescription& layer : c.layers) {
         if (layer.mixing == Mixing::window) layer.mixing = Mixing::full;
       }
     }},
    {"recurrence.gate", "kimi-linear",
     [](ModelConfig& c) { c.recurrence->gate = Activation::silu; }},
    {"experts.scale, beside states by row", "kimi-linear",
     [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"experts.choice_bias, beside states by row", "kimi-linear",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"experts.normalise, beside states by row", "kimi-linear-seven",
     [](ModelConfig& c) { c.experts->routing.normalise = true; }},
    {"experts.groups, beside states by row", "kimi-linear-seven",
     [](ModelConfig& c) { c.experts->routing.groups = c.experts->routing.groups_kept = 1; }},
    {"ropes, of each kind of layer", "mimo-v2.5",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), c.layer_ropes[0]); }},
    {"v_multiplier, of a fused V", "mimo-v2.5-bias",
     [](ModelConfig& c) { c.block.v_multiplier = 1; }},
    {"recurrence.least_log_decay", "ling3",
     [](ModelConfig& c) { c.recurrence->least_log_decay = 0; }},
    {"recurrence.least_log_decay, of another model", "ling3-saved-seven",
     [](ModelConfig& c) { c.recurrence->least_log_decay = -1.5; }},
    {"attention_gate, of heads, behind a latent", "ling3-saved",
     [](ModelConfig& c) { c.block.attention_gate = AttentionGate::none; }},
    {"recurrence.gate, without a rank", "ling3-free-decay",
     [](ModelConfig& c) { c.recurrence->gate = Activation::silu; }},
    {"experts.normalise, beside decays with a bound", "ling3-seven",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"experts.groups, beside decays with a bound", "ling3",
     [](ModelConfig& c) { c.experts->routing.groups = c.experts->routing.groups_kept = 1; }},
    {"rope.pairs, beside states", "ling3",
     [](ModelConfig& c) {
       for (RopeConfig& rope : c.ropes) rope.pairs = RopePairs::halves;
     }},
    {"experts.post_norm", "axk1", [](ModelConfig& c) { c.experts->post_norm = false; }},
    {"experts.choice_bias, where files may lack it", "axk1-new-keys",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"experts.groups, without a choice bias", "axk1",
     [](ModelConfig& c) { c.experts->routing.groups = c.experts->routing.groups_kept = 1; }},
    {"experts.scale, below a norm", "axk1", [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"rope.pairs, below a norm of experts", "axk1-new-keys",
     [](ModelConfig& c) { c.ropes[0].pairs = RopePairs::neighbours; }},
    {"experts.choice_bias, beside one for images", "ernie4_5-vl",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"experts.normalise, beside experts for images", "ernie4_5-vl-published",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"rope.pairs, with angles for images", "ernie4_5-vl-seven",
     [](ModelConfig& c) { c.ropes[0].pairs = RopePairs::halves; }},
    {"experts.shared_hidden_dim, beside experts for images", "ernie4_5-vl",
     [](ModelConfig& c) { c.experts->shared_hidden_dim = 0; }},
    {"hyper.eps", "hy-v4", [](ModelConfig& c) { c.hyper->eps = 0; }},
    {"hyper.most_written", "hy-v4", [](ModelConfig& c) { c.hyper->most_written = 2; }},
    {"sinks, behind a latent", "hy-v4-saved", [](ModelConfig& c) { c.block.sinks = false; }},
    {"attention_gate, of elements, behind a latent", "hy-v4-saved-dense",
     [](ModelConfig& c) { c.block.attention_gate = AttentionGate::none; }},
    {"indexer.rotates_last", "hy-v4", [](ModelConfig& c) { c.indexer->rotates_last = false; }},
    {"indexer.norm_eps", "hy-v4", [](ModelConfig& c) { c.indexer->norm_eps = 1e-6; }},
    {"distances", "inkling", [](ModelConfig& c) { c.distances.reset(); }},
    {"short_convs", "inkling-plain", [](ModelConfig& c) { c.short_convs.reset(); }},
    {"attention_scale_by_size", "inkling-seven",
     [](ModelConfig& c) { c.block.attention_scale_by_size = false; }},
    {"ffn_scale", "inkling", [](ModelConfig& c) { c.block.ffn_scale = false; }},
    {"ropes.q_growth, by the logarithm of the position", "inkling-plain",
     [](ModelConfig& c) { c.ropes[0].q_growth = 0; }},
    {"ropes.q_grows_evenly", "inkling", [](ModelConfig& c) { c.ropes[0].q_grows_evenly = false; }},
    {"ropes.original_context, of a growth", "inkling-vision",
     [](ModelConfig& c) { c.ropes[0].original_context = 9; }},
    {"experts.per_token, beside fixed ones", "inkling-seven",
     [](ModelConfig& c) { c.experts->routing.per_token -= c.experts->fixed; }},
    {"experts.normalise, beside fixed ones", "inkling-vision-seven",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"experts.scale, beside fixed ones", "inkling-vision-plain",
     [](ModelConfig& c) { c.experts->routing.scale = 1.0; }},
    {"embed_norm, beside short convolutions", "inkling",
     [](ModelConfig& c) { c.embed_norm = false; }},
    {"logit_multiplier, by muP", "inkling-seven",
     [](ModelConfig& c) { c.block.logit_multiplier = 1.0; }},
    {"layers.reach, with heads of its own", "inkling-vision-seven",
     [](ModelConfig& c) { c.layers[1].reach = 6; }},
    {"indexer, of pooled keys", "qwen4-exp", [](ModelConfig& c) { c.indexer.reset(); }},
    {"indexer.top_k, of pooled keys", "qwen4-exp-seven",
     [](ModelConfig& c) { c.indexer->top_k = 4; }},
    {"indexer.block, pooled", "qwen4-exp-plain", [](ModelConfig& c) { c.indexer->block = 3; }},
    {"ngrams", "qwen4-exp", [](ModelConfig& c) { c.ngrams.reset(); }},
    {"ngrams.longest", "qwen4-exp-seven",
     [](ModelConfig& c) {
       c.ngrams->longest = 2;  // with tables for longer ones
       c.ngrams->heads = 3;
     }},
    {"ngrams.least_rows", "qwen4-exp", [](ModelConfig& c) { c.ngrams->least_rows = 40; }},
    {"ngrams.seed", "qwen4-exp-seven", [](ModelConfig& c) { c.ngrams->seed = 1234; }},
    {"ngrams.vocab_size", "qwen4-exp", [](ModelConfig& c) { c.ngrams->vocab_size = 78; }},
    {"ngrams.gap", "qwen4-exp", [](ModelConfig& c) { c.ngrams->gap = 2; }},
    {"recurrence.gate, with hyper-connections", "qwen4-exp-seven",
     [](ModelConfig& c) { c.recurrence->gate = Activation::silu; }},
    {"experts.normalise, with hyper-connections", "qwen4-exp-seven",
     [](ModelConfig& c) { c.experts->routing.normalise = true; }},
    {"indexer, that some layers share", "hy-v4-seven", [](ModelConfig& c) { c.indexer.reset(); }},
    {"swiglus, of routed experts alone", "hy-v4",
     [](ModelConfig& c) {
       for (LayerSwiglu& each : c.swiglus) each.dense = each.routed;
     }},
    {"latent.norm_eps, beside images", "hy-v4-vision",
     [](ModelConfig& c) { c.latent->norm_eps = 1e-6; }},
    {"swiglus, clamped before silu", "hy-v4-seven",
     [](ModelConfig& c) {
       for (LayerSwiglu& each : c.swiglus) each.routed->form = SwigluForm::after;
     }},
    {"experts.choice_bias, between streams", "hy-v4",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"experts.scale, between streams", "hy-v4-saved",
     [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"rope.pairs, between streams", "hy-v4-seven",
     [](ModelConfig& c) { c.ropes[0].pairs = RopePairs::neighbours; }},
    {"latent.q_factor", "longcat-flash", [](ModelConfig& c) { c.latent->q_factor = 1; }},
    {"latent.latent_factor", "longcat-flash-new-keys",
     [](ModelConfig& c) { c.latent->latent_factor = 1; }},
    {"experts.shortcut", "longcat-flash", [](ModelConfig& c) { c.experts->shortcut = false; }},
    {"experts.choice_bias, beside identities", "longcat-flash-seven",
     [](ModelConfig& c) { c.experts->choice_bias = false; }},
    {"experts.scale, beside identities", "longcat-flash",
     [](ModelConfig& c) { c.experts->routing.scale = 1; }},
    {"rope.pairs, with a shortcut", "longcat-flash",
     [](ModelConfig& c) { c.ropes[0].pairs = RopePairs::halves; }},
    {"attention_scale, of a yarn with a shortcut", "longcat-flash-new-keys",
     [](ModelConfig& c) { c.block.attention_scale = 0.25; }},
    {"recurrence.skip, by channel", "jamba", [](ModelConfig& c) { c.recurrence->skip = false; }},
    {"recurrence.conv_bias, of V alone", "jamba",
     [](ModelConfig& c) { c.recurrence->conv_bias = false; }},
    {"recurrence.bias, of V alone", "jamba-seven",
     [](ModelConfig& c) { c.recurrence->bias = false; }},
    {"recurrence.out_bias, behind a scan", "jamba-seven",
     [](ModelConfig& c) { c.recurrence->out_bias = false; }},
    {"experts.normalise, beside a scan", "jamba",
     [](ModelConfig& c) { c.experts->routing.normalise = true; }},
    {"norm_eps, of steps, K and Q", "jamba-new-keys", [](ModelConfig& c) { c.norm_eps = 1e-6; }},
    {"norm_place, carried", "minimax-01",
     [](ModelConfig& c) { c.block.norm_place = NormPlace::before, c.block.stream_factors = {}; }},
    {"stream_factors.attention", "minimax-01",
     [](ModelConfig& c) { c.block.stream_factors.attention = 1; }},
    {"stream_factors.state", "minimax-01",
     [](ModelConfig& c) { c.block.stream_factors.state = 1; }},
    {"stream_factors.feed_forward", "minimax-01",
     [](ModelConfig& c) { c.block.stream_factors.feed_forward = 1; }},
    {"attention_out_multiplier, beside a normed stream", "minimax-01",
     [](ModelConfig& c) { c.block.attention_out_multiplier = 1; }},
    {"multipliers.out, beside a normed stream", "minimax-01",
     [](ModelConfig& c) { c.recurrence->multipliers.out = 1; }},
    {"experts.multiplier, beside a normed stream", "minimax-01",
     [](ModelConfig& c) { c.experts->multiplier = 1; }},
    {"experts.normalise, beside a normed stream", "minimax-01",
     [](ModelConfig& c) { c.experts->routing.normalise = false; }},
    {"recurrence.norm, of all heads together", "minimax-01-new-keys",
     [](ModelConfig& c) { c.recurrence->norm = StateNorm::groups; }},
    {"recurrence.gate, sigmoid, of fixed decays", "minimax-01-seven",
     [](ModelConfig& c) { c.recurrence->gate = Activation::silu; }},
    {"recurrence.norm_eps, of fixed decays", "minimax-01-seven",
     [](ModelConfig& c) { c.recurrence->norm_eps = 0; }},
    {"rotary_dim, of published keys", "minimax-text-01",
     [](ModelConfig& c) { c.ropes[0].rotary_dim = 0; }},
    {"latent.norm_eps, beside states", "kimi-linear-q-rank",
     [](ModelConfig& c) { c.latent->norm_eps = 0.1; }},
    {"hyper.rounds", "deepseek-v4", [](ModelConfig& c) { c.hyper->rounds = 1; }},
    {"hyper.eps_written", "deepseek-v4", [](ModelConfig& c) { c.hyper->eps_written = true; }},
    {"pool, of its own tokens", "deepseek-v4", [](ModelConfig& c) { c.layers[2].pool = 0; }},
    {"indexer.top_k, of pools", "deepseek-v4", [](ModelConfig& c) { c.indexer->top_k = 4; }},
    {"indexer, of pools", "deepseek-v4-published", [](ModelConfig& c) { c.indexer->top_k = 12; }},
    {"window, beside pools", "deepseek-v4-plain", [](ModelConfig& c) { c.layers[0].reach = 12; }},
    {"layer_ropes, of pools", "deepseek-v4-published",
     [](ModelConfig& c) { c.layer_ropes.assign(c.layer_ropes.size(), 0); }},
    {"attention_factor, of pools", "deepseek-v4",
     [](ModelConfig& c) { c.ropes[1].attention_factor = 1; }},
    {"sinks, beside pools", "deepseek-v4", [](ModelConfig& c) { c.block.sinks = false; }},
    {"experts.score, sqrt_softplus", "deepseek-v4",
     [](ModelConfig& c) { c.experts->routing.score = RouterScore::sigmoid; }},
    {"swiglus, of the shared expert, beside tables", "deepseek-v4",
     [](ModelConfig& c) { c.swiglus.assign(c.swiglus.size(), {.routed = c.swiglus[0].routed}); }},
};

// Does not compile with a member more or less: each has a row here or in
// family_knobs.cpp, or a word here.
[[maybe_unused]] void all_members_are_known() {
  // The tensors' shapes give count, hidden_dim, inner_dim, fixed and identities, their dtypes
  // f32_router, and their number table_layers. router_norm always comes with beside_dense.
  [[maybe_unused]] const auto [count, hidden_dim, inner_dim, routing, choice_bias, shared, fixed,
                               gate, bias, beside, router_norm, f32_router, factors, multiplier,
                               post_norm, tables, identities, shortcut] = ExpertsConfig{};
  // The tensors' shapes give conv_width, steps_by_row, rank and from_v. Without fixed_decays
  // nothing says how fast a state decays.
  [[maybe_unused]] const auto [update, state_norm, skip, conv_bias, state_bias, state_out_bias,
                               multipliers, state_gate, state_eps, most_strength, steps_by_row,
                               least_log_decay, state_rank, from_v, fixed_decays, least, most,
                               k_heads, k_dim, v_heads, of_v_dim, width] = RecurrenceConfig{};
  [[maybe_unused]] const auto [by_in, by_gate, by_v, by_k, by_q, by_step, by_out] =
      StateMultipliers{};
  [[maybe_unused]] const auto [alpha, limit, form] = ClampedSwiglu{};
  [[maybe_unused]] const auto [swiglu_of_experts, dense_swiglu] = LayerSwiglu{};
  // A sigmoid of attn_gate shares a tensor with Q: without it no table of tensors fits. Without
  // window_sinks there are too few tensors. epsilon is too small to show in any model.
  [[maybe_unused]] const auto [per_token, score, near, normalise, epsilon, scale, groups, kept,
                               worth, input] = Routing{};
  // The tensors' shapes give n_heads, size and weighted, and their dtypes f32_weights. Attention's
  // rotation is the indexer's too.
  [[maybe_unused]] const auto [n_heads, size, index_rope_dim, top_k, block, pooled, weighted,
                               local_blocks, by_kv_head, index_pairs, rotates_last, index_eps,
                               f32_weights] = IndexerConfig{};
  [[maybe_unused]] const auto [norm, plus_one, last_whole, norm_bias, place, states_before,
                               parallel, shared_norm, qk, q_by, attn_gate, qk_bias, v_norm,
                               activation, xielu, gated, head_bias, head_normed, embed, residual,
                               attention_in, attention_out, v_by, gate_by, down_by, logit,
                               attention, by_layer, by_size, score_bias, sinks, window_sinks,
                               score_cap, logit_cap, layer_scale, ffn_scale, stream_factors] =
      BlockConfig{};
  [[maybe_unused]] const auto [of_attention, of_state, of_feed_forward] = StreamFactors{};
  // The tensors' shapes give all of these.
  [[maybe_unused]] const auto [distance_dim, extent] = DistanceConfig{};
  [[maybe_unused]] const auto [taps] = ShortConvsConfig{};
  // The tensors' shapes give count.
  [[maybe_unused]] const auto [streams, active, scaled] = StreamsConfig{};
  // The tensors' shapes give count and rank, and their dtypes f32_product.
  [[maybe_unused]] const auto [connected, hyper_rank, hyper_eps, most_written, rounds, eps_written,
                               f32_product] = HyperConfig{};
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

std::span<const Knob> later_knobs() {
  return kKnobs;
}

}  // namespace fp8kv::test
