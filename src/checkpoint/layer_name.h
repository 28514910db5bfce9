// Takes apart the names of tensors that belong to a layer, under any name of the stack of layers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fp8kv {

// The parts of "model.layers.12.self_attn.k_scale": prefix "model.", layers "layers.", layer 12,
// rest "self_attn.k_scale". The parts are views into the name.
// LongCat Flash numbers two layers as one. "model.layers.12.self_attn.1.k_scale" is of layer 25 and
// `paired`, with the rest "self_attn.1.k_scale".
struct LayerName {
  std::string_view prefix;  // may be empty
  std::string_view layers;
  int64_t layer = 0;
  std::string_view rest;
  bool paired = false;
};

// The names that models give their stack of layers. Nearly all use the first; GPT-2, Falcon and
// StarCoder 1 use the second. EAGLE-3 drafters have one layer under the third, without a number.
// MPT uses the last.
inline constexpr std::array<std::string_view, 4> kLayersNames = {"layers.", "h.", "midlayer.",
                                                                 "blocks."};

// Splits a name at its last "layers.", or else at its last "h." or "midlayer.". Returns nullopt
// unless a plain decimal number follows, where the layers have numbers.
std::optional<LayerName> split_layer_name(std::string_view name);

// Likewise, but splits at `layers` only.
std::optional<LayerName> split_layer_name(std::string_view name, std::string_view layers);

// The beginning of the names in a layer: "model.layers.12." for "model.layers." and 12. `stack` is
// the prefix and the name of the layers.
std::string layer_path(std::string_view stack, int64_t layer);

// The beginning of the names in a layer's attention: "model.layers.12.self_attn." for the attention
// "self_attn.", and "model.layers.12.self_attn.1." for layer 25 of paired ones.
std::string attention_path(std::string_view stack, std::string_view attention, bool paired,
                           int64_t layer);

// The names that models give a layer's attention. Nearly all use the first, Nemotron-H the second,
// GPT-NeoX and InternLM 2 the third, Falcon the fourth, Zamba 2 the fifth, GPT-2 and StarCoder 1
// the last.
inline constexpr std::array<std::string_view, 6> kAttentionNames = {
    "self_attn", "mixer", "attention", "self_attention", "shared_transformer.self_attn", "attn"};

// The part of a LayerName's `rest` after the name of the attention: "k_scale" for
// "self_attn.k_scale", "mixer.k_scale" and "self_attn.1.k_scale". nullopt for names outside of
// attention.
std::optional<std::string_view> in_attention(std::string_view rest);

// The beginning of such a rest, without a number: "self_attn.". REQUIRES in_attention(rest).
std::string attention_in(std::string_view rest);

// A tensor's name without the parts around the language model and its neighbours:
// "vision_tower.blocks.0" for "model.vision_tower.blocks.0", "mtp.layers.0" for
// "language_model.model.mtp.layers.0".
std::string_view without_wrappers(std::string_view name);

}  // namespace fp8kv
