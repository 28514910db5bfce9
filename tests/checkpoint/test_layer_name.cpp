#include <doctest/doctest.h>

#include "checkpoint/layer_name.h"

namespace fp8kv {

TEST_CASE("layer_name: a tensor's name is split at its last 'layers.' and number") {
  const auto parts = split_layer_name("vision.layers.3.text.layers.12.self_attn.k_scale");
  REQUIRE(parts);
  CHECK(parts->prefix == "vision.layers.3.text.");
  CHECK(parts->layers == "layers.");
  CHECK(parts->layer == 12);
  CHECK(parts->rest == "self_attn.k_scale");
  for (const char* name : {"model.norm", "model.layers.x.k", "model.layers.1", "model.layers.01.k",
                           "model.layers.-1.k", "model.layers.-0.k", "model.layers..k",
                           "mylayers.1.k", "model.layers.99999999999999999999.k", "layers."}) {
    INFO(name);
    CHECK_FALSE(split_layer_name(name));
  }
}

TEST_CASE("layer_name: where there are no 'layers.', the stack may be called 'h.'") {
  const auto parts = split_layer_name("transformer.h.7.mlp.dense_4h_to_h.weight");
  REQUIRE(parts);
  CHECK(parts->prefix == "transformer.");
  CHECK(parts->layers == "h.");
  CHECK(parts->layer == 7);
  CHECK(parts->rest == "mlp.dense_4h_to_h.weight");
  CHECK(split_layer_name("h.0.attn.c_attn.weight")->prefix.empty());
  CHECK(split_layer_name("model.layers.3.h.5.weight")->layer == 3);
  CHECK_FALSE(split_layer_name("transformer.h.7.attn.k_scale", "layers."));
  for (const char* name : {"transformer.h.x.k", "mlp.dense_4h_to_h.weight", "bh.3.k", "h."}) {
    CAPTURE(name);
    CHECK_FALSE(split_layer_name(name));
  }
}

TEST_CASE("layer_name: the one layer of a drafter has no number") {
  const auto parts = split_layer_name("midlayer.self_attn.k_proj.weight");
  REQUIRE(parts);
  CHECK(parts->prefix.empty());
  CHECK(parts->layers == "midlayer.");
  CHECK(parts->layer == 0);
  CHECK(parts->rest == "self_attn.k_proj.weight");
  CHECK(layer_path("midlayer.", 0) == "midlayer.");
  CHECK(layer_path("model.layers.", 12) == "model.layers.12.");
  CHECK_FALSE(split_layer_name("amidlayer.self_attn.k_proj.weight"));
}

TEST_CASE("layer_name: two attentions under one number are two layers") {
  const auto first = split_layer_name("model.layers.12.self_attn.0.k_scale");
  const auto second = split_layer_name("model.layers.12.self_attn.1.kv_a_proj_with_mqa.weight");
  REQUIRE((first && second));
  CHECK(first->layer == 24);
  CHECK(second->layer == 25);
  CHECK((first->paired && second->paired));
  CHECK(in_attention(first->rest) == "k_scale");
  CHECK(in_attention(second->rest) == "kv_a_proj_with_mqa.weight");
  CHECK(attention_in(second->rest) == "self_attn.");
  CHECK(attention_path("model.layers.", "self_attn.", true, 25) == "model.layers.12.self_attn.1.");
  CHECK(attention_path("model.layers.", "self_attn.", false, 25) == "model.layers.25.self_attn.");
  for (const char* name : {"model.layers.12.self_attn.2.k_scale", "model.layers.12.mlps.1.up_proj",
                           "model.layers.12.self_attn.1", "model.layers.12.self_attn.10.k"}) {
    CAPTURE(name);
    CHECK(split_layer_name(name)->layer == 12);
    CHECK_FALSE(split_layer_name(name)->paired);
  }
}

TEST_CASE("layer_name: what is of the attention follows any of its names and a dot") {
  CHECK(in_attention("self_attn.k_scale") == "k_scale");
  CHECK(in_attention("mixer.k_proj.weight") == "k_proj.weight");
  CHECK(in_attention("self_attention.k_scale") == "k_scale");
  CHECK(in_attention("attn.attn.k_scale") == "attn.k_scale");
  CHECK(in_attention("attention.wqkv.weight") == "wqkv.weight");
  for (const char* rest : {"self_attn", "attention_norm.weight", "self_attn_k_scale", "mixers.k",
                           "cross_attn.k_scale", "mlp.self_attn.k_scale", ""}) {
    CAPTURE(rest);
    CHECK_FALSE(in_attention(rest));
  }
}

}  // namespace fp8kv
