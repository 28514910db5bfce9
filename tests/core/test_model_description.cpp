#include <doctest/doctest.h>

#include "core/model/model_description.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

LayerDescription layer_of(Mixing mixing, int64_t cache_of) {
  LayerDescription layer;
  layer.mixing = mixing;
  layer.reach = mixing == Mixing::window || mixing == Mixing::chunks ? 4 : 0;
  if (mixing == Mixing::recurrent || mixing == Mixing::none) return layer;
  layer.n_kv_heads = 2;
  layer.k_head_dim = 24;
  layer.v_head_dim = 16;
  layer.cache_of = cache_of;
  return layer;
}

// One layer of each kind: full, with a window, recurrent, and one that reads layer 0's cache.
ModelDescription mixed_model() {
  ModelDescription model;
  model.layers = {layer_of(Mixing::full, 0), layer_of(Mixing::window, 1),
                  layer_of(Mixing::recurrent, -1), layer_of(Mixing::full, 0)};
  return model;
}

TEST_CASE("model_description: a token takes room only in layers that write a cache") {
  const ModelDescription model = mixed_model();
  CHECK(model.cache_layers() == 2);
  CHECK(kv_bytes_per_token(model, DType::f16) == 2 * 2 * (24 + 16) * 2);
  CHECK(kv_bytes_per_token(model, DType::f8_e4m3) == 2 * 2 * (24 + 16));
  CHECK(kv_bytes_per_token(ModelDescription(), DType::f16) == 0);
}

TEST_CASE("model_description: a token of Llama-3-8B takes 131,072 bytes in float16, half in FP8") {
  ModelDescription llama;
  for (int64_t i = 0; i < 32; ++i) llama.layers.push_back({Mixing::full, 0, 8, 128, 128, i});
  CHECK(kv_bytes_per_token(llama, DType::f16) == 131072);
  CHECK(kv_bytes_per_token(llama, DType::f8_e4m3) == 65536);
}

TEST_CASE("model_description: a layer that reads another's cache writes none") {
  const ModelDescription model = mixed_model();
  CHECK_FALSE(model.writes_cache(3));
  CHECK_FALSE(model.writes_cache(2));
  CHECK(model.writes_cache(0));
}

TEST_CASE("model_description: chunks are no window") {
  ModelDescription model = mixed_model();
  model.layers.push_back(layer_of(Mixing::chunks, 4));
  CHECK(model.window(0) == 0);
  CHECK(model.window(1) == 4);
  CHECK(model.window(4) == 0);
}

TEST_CASE("model_description: heads are those of the layer with most") {
  ModelDescription model = mixed_model();
  model.layers[1].n_kv_heads = 4;
  model.layers[3].k_head_dim = 64;
  CHECK(model.n_kv_heads() == 4);
  CHECK(model.head_dim() == 64);
}

TEST_CASE("model_description: a cache that cannot be counted is refused") {
  ModelDescription model = mixed_model();
  model.layers[0].n_kv_heads = int64_t{1} << 40;
  model.layers[0].k_head_dim = int64_t{1} << 40;
  CHECK(test::error_of([&] {
          kv_bytes_per_token(model, DType::f16);
        }).ends_with("bytes is larger than can be counted"));
}

}  // namespace
}  // namespace fp8kv
