// Names of tensors that belong to a layer, whatever a model calls the stack they are in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fp8kv {

// "model.layers.12.self_attn.k_scale" is prefix "model.", layer 12, rest "self_attn.k_scale". Views
// into the name.
struct LayerName {
  std::string_view prefix;  // before "layers."; may be empty
  int64_t layer = 0;
  std::string_view rest;
};

// nullopt for a name without a plain decimal number after its last "layers.", or what else the
// layers are called.
std::optional<LayerName> split_layer_name(std::string_view name,
                                          std::string_view layers = "layers.");

// What models call the attention of a layer: nearly all the first, Nemotron-H the second.
inline constexpr std::array<std::string_view, 2> kAttentionNames = {"self_attn", "mixer"};

// What follows the attention's name in a LayerName's `rest`: "k_scale" of "self_attn.k_scale" and
// of "mixer.k_scale". nullopt for what is not of the attention.
std::optional<std::string_view> in_attention(std::string_view rest);

}  // namespace fp8kv
