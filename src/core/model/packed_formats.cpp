#include "core/model/packed_formats.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace fp8kv {
namespace {

uint64_t bits_to_bytes(int64_t elements, int64_t bits) {
  return static_cast<uint64_t>((elements * bits + 7) / 8);
}

// TurboQuant: codes of K with an F16 norm, codes of V with an F16 scale and minimum, padded to an
// even number of bytes. Source: TurboQuantConfig.slot_size_aligned.
template <int64_t k_bits, int64_t v_bits>
uint64_t turboquant(const LayerDescription& layer) {
  const uint64_t bytes =
      bits_to_bytes(layer.k_head_dim, k_bits) + 2 + bits_to_bytes(layer.v_head_dim, v_bits) + 4;
  return bytes + bytes % 2;
}

// UltraQuant: 4-bit codes, and a one-byte exponent for each 32 of them. Source:
// v1/attention/ops/ultraquant/format.py.
uint64_t ultraquant(const LayerDescription& layer) {
  const auto row = [](int64_t dim) {
    return bits_to_bytes(dim, 4) + static_cast<uint64_t>(dim / 32);
  };
  return row(layer.k_head_dim) + row(layer.v_head_dim);
}

// Octave: its kernels need heads of 256. In K the 64 rotated elements have 4-bit codes, the others
// 3-bit codes. K has an F16 scale for each 64 elements, V has one. The compact form of K has 3-bit
// codes and one scale. Sizes are padded to 8 bytes, or to 4 if compact. Source: OctaveFormat in
// v1/attention/ops/rocm_octave.py.
template <int64_t v_bits>
uint64_t octave(const LayerDescription&) {
  const uint64_t bytes =
      bits_to_bytes(64, 4) + bits_to_bytes(192, 3) + bits_to_bytes(256, v_bits) + 10;
  return (bytes + 7) / 8 * 8;
}
uint64_t octave_compact(const LayerDescription&) {
  return bits_to_bytes(256, 3) + bits_to_bytes(256, 3) + 4;
}

// Source: state_content_bytes in model_executor/layers/attention/mla_attention.py.
uint64_t nvfp4_ds_mla(const LayerDescription&) {
  return 352;
}

CacheMisfit latents_of(const LayerDescription&, int64_t index) {
  return {cat("layer ", index, " caches latents"), "K and V of heads"};
}

CacheMisfit heads_of(const LayerDescription& layer, int64_t index, const char* expected) {
  return {cat("heads of layer ", index, " have ", layer.k_head_dim, " elements"), expected};
}

std::optional<CacheMisfit> any_heads(const LayerDescription& layer, int64_t index) {
  if (layer.v_in_k) return latents_of(layer, index);
  if (layer.k_head_dim == layer.v_head_dim) return std::nullopt;
  return CacheMisfit{
      cat("V of layer ", index, " has ", layer.v_head_dim, " elements, and K ", layer.k_head_dim),
      "heads of one size"};
}

std::optional<CacheMisfit> groups_of_32(const LayerDescription& layer, int64_t index) {
  if (const auto misfit = any_heads(layer, index)) return misfit;
  if (layer.k_head_dim % 32 == 0) return std::nullopt;
  return heads_of(layer, index, "a multiple of 32");
}

std::optional<CacheMisfit> heads_of_256(const LayerDescription& layer, int64_t index) {
  if (layer.v_in_k) return latents_of(layer, index);
  if (layer.k_head_dim == 256 && layer.v_head_dim == 256) return std::nullopt;
  return heads_of(layer, index, "256, of which 64 rotate: vLLM has kernels for no others");
}

std::optional<CacheMisfit> deepseek_latents(const LayerDescription& layer, int64_t index) {
  if (layer.v_in_k && layer.k_head_dim == 576 && layer.v_head_dim == 512) return std::nullopt;
  return CacheMisfit{layer.v_in_k ? cat("layer ", index, " caches latents of ", layer.v_head_dim,
                                        " and ", layer.k_head_dim - layer.v_head_dim, " elements")
                                  : cat("layer ", index, " caches K and V of heads"),
                     "latents of 512 and 64 elements"};
}

constexpr PackedFormat kFormats[] = {
    {"turboquant_4bit_nc", turboquant<4, 4>, any_heads},
    {"turboquant_k3v4_nc", turboquant<3, 4>, any_heads},
    {"turboquant_3bit_nc", turboquant<3, 3>, any_heads},
    {"octave_k3v4", octave<4>, heads_of_256},
    {"octave_k3v3", octave<3>, heads_of_256},
    {"octave_k3v3_compact", octave_compact, heads_of_256},
    {"ultraquant_4bit", ultraquant, groups_of_32},
    {"nvfp4_ds_mla", nvfp4_ds_mla, deepseek_latents},
};

}  // namespace

std::span<const PackedFormat> packed_formats() {
  return kFormats;
}

const PackedFormat* find_packed_format(std::string_view name) {
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [&](const PackedFormat& format) { return format.name == name; });
  return found == std::end(kFormats) ? nullptr : &*found;
}

std::vector<int64_t> layers_left_by_vllm(std::string_view name, const ModelDescription& model) {
  if (!name.starts_with("turboquant_") && name != "ultraquant_4bit") return {};
  std::set<int64_t> layers;
  const int64_t ends = std::min<int64_t>(2, model.n_layers() / 2);
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    if (model.keeps_state(i)) return {};
    const bool at_an_end = i < ends || i >= model.n_layers() - ends;
    if (at_an_end && model.writes_cache(i)) layers.insert(i);
  }
  return {layers.begin(), layers.end()};
}

}  // namespace fp8kv
