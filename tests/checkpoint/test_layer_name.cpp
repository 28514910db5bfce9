#include <doctest/doctest.h>

#include "checkpoint/layer_name.h"

namespace fp8kv {

TEST_CASE("layer_name: a tensor's name is split at its last 'layers.' and number") {
  const auto parts = split_layer_name("vision.layers.3.text.layers.12.self_attn.k_scale");
  REQUIRE(parts);
  CHECK(parts->prefix == "vision.layers.3.text.");
  CHECK(parts->layer == 12);
  CHECK(parts->rest == "self_attn.k_scale");
  for (const char* name : {"model.norm", "model.layers.x.k", "model.layers.1", "model.layers.01.k",
                           "model.layers.-1.k", "model.layers.-0.k", "model.layers..k",
                           "mylayers.1.k", "model.layers.99999999999999999999.k", "layers."}) {
    INFO(name);
    CHECK_FALSE(split_layer_name(name));
  }
}

TEST_CASE("layer_name: what is of the attention follows either of its names and a dot") {
  CHECK(in_attention("self_attn.k_scale") == "k_scale");
  CHECK(in_attention("mixer.k_proj.weight") == "k_proj.weight");
  for (const char* rest : {"self_attn", "self_attention.k_scale", "self_attn_k_scale", "mixers.k",
                           "cross_attn.k_scale", "mlp.self_attn.k_scale", ""}) {
    CAPTURE(rest);
    CHECK_FALSE(in_attention(rest));
  }
}

}  // namespace fp8kv
