// Names of tensors that belong to a layer, whatever a model calls the stack they are in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fp8kv {

// "model.layers.12.self_attn.k_scale" is prefix "model.", layers "layers.", layer 12, rest
// "self_attn.k_scale". Views into the name.
struct LayerName {
  std::string_view prefix;  // may be empty
  std::string_view layers;
  int64_t layer = 0;
  std::string_view rest;
};

// What models call their stack of layers: nearly all the first; GPT-2, Falcon and StarCoder 1 the
// second.
inline constexpr std::array<std::string_view, 2> kLayersNames = {"layers.", "h."};

// nullopt for a name without a plain decimal number after its last "layers.", or else its last
// "h.".
std::optional<LayerName> split_layer_name(std::string_view name);

// The same where only one of the stack's names counts.
std::optional<LayerName> split_layer_name(std::string_view name, std::string_view layers);

// What models call the attention of a layer: nearly all the first, Nemotron-H the second, GPT-NeoX
// and InternLM 2 the third, Falcon the fourth, GPT-2 and StarCoder 1 the last.
inline constexpr std::array<std::string_view, 5> kAttentionNames = {
    "self_attn", "mixer", "attention", "self_attention", "attn"};

// What follows the attention's name in a LayerName's `rest`: "k_scale" of "self_attn.k_scale" and
// of "mixer.k_scale". nullopt for what is not of the attention.
std::optional<std::string_view> in_attention(std::string_view rest);

}  // namespace fp8kv
