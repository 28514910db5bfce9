#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/model/packed_formats.h"

namespace fp8kv {
namespace {

LayerDescription heads_of(int64_t dim) {
  LayerDescription layer;
  layer.n_kv_heads = 1;
  layer.k_head_dim = layer.v_head_dim = dim;
  return layer;
}

// Source: classes of vLLM 0.33: TurboQuantConfig.slot_size_aligned, OctaveFormat.slot_bytes for 64
// rotary dims, and slot_size of ultraquant/format.py.
TEST_CASE("packed formats: bytes of a token and head as vLLM counts them") {
  const struct {
    const char* name;
    int64_t head_dim;
    uint64_t bytes;
  } cases[] = {{"turboquant_4bit_nc", 64, 70},    {"turboquant_k3v4_nc", 64, 62},
               {"turboquant_3bit_nc", 64, 54},    {"turboquant_4bit_nc", 100, 106},
               {"turboquant_k3v4_nc", 100, 94},   {"turboquant_3bit_nc", 100, 82},
               {"turboquant_4bit_nc", 256, 262},  {"turboquant_3bit_nc", 256, 198},
               {"octave_k3v4", 256, 248},         {"octave_k3v3", 256, 216},
               {"octave_k3v3_compact", 256, 196}, {"ultraquant_4bit", 128, 136},
               {"ultraquant_4bit", 256, 272}};
  for (const auto& each : cases) {
    CAPTURE(std::string(each.name));
    const PackedFormat* format = find_packed_format(each.name);
    REQUIRE(format);
    CHECK(format->bytes(heads_of(each.head_dim)) == each.bytes);
    CHECK_FALSE(format->misfit(heads_of(each.head_dim), 0));
  }
}

TEST_CASE("packed formats: what does not fit says how it is, and what would") {
  const auto misfit = [](const char* name, const LayerDescription& layer) {
    const auto found = find_packed_format(name)->misfit(layer, 3);
    return found ? found->found + "; " + found->expected : "";
  };
  CHECK(misfit("octave_k3v4", heads_of(128)) ==
        "heads of layer 3 have 128 elements; 256, of which 64 rotate: vLLM has kernels for no "
        "others");
  CHECK(misfit("ultraquant_4bit", heads_of(80)) ==
        "heads of layer 3 have 80 elements; a multiple of 32");
  LayerDescription narrow = heads_of(192);
  narrow.v_head_dim = 128;
  for (const char* name : {"turboquant_4bit_nc", "ultraquant_4bit"}) {
    CHECK(misfit(name, narrow) == "V of layer 3 has 128 elements, and K 192; heads of one size");
  }
  LayerDescription latent = heads_of(576);
  latent.v_head_dim = 512;
  latent.v_in_k = true;
  CHECK(misfit("turboquant_4bit_nc", latent) == "layer 3 caches latents; K and V of heads");
  CHECK(misfit("nvfp4_ds_mla", latent) == "");
  CHECK(misfit("nvfp4_ds_mla", heads_of(128)) ==
        "layer 3 caches K and V of heads; latents of 512 and 64 elements");
}

TEST_CASE("packed formats: vLLM leaves the layers at both ends in 16 bit for some") {
  ModelDescription model;
  for (int64_t i = 0; i < 7; ++i) {
    model.layers.push_back(heads_of(128));
    model.layers.back().mixing = Mixing::full;
    model.layers.back().cache_of = i;
  }
  using Layers = std::vector<int64_t>;
  CHECK(layers_left_by_vllm("turboquant_k8v4", model) == Layers{0, 1, 5, 6});
  CHECK(layers_left_by_vllm("ultraquant_4bit", model) == Layers{0, 1, 5, 6});
  CHECK(layers_left_by_vllm("octave_k3v4", model).empty());
  CHECK(layers_left_by_vllm("nvfp4", model).empty());
  model.layers.resize(3);
  CHECK(layers_left_by_vllm("turboquant_4bit_nc", model) == Layers{0, 2});
  model.layers[1].mixing = Mixing::recurrent;
  CHECK(layers_left_by_vllm("turboquant_4bit_nc", model).empty());
}

}  // namespace
}  // namespace fp8kv
