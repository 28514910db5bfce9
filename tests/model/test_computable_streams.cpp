// Models with several residual streams, or other ways around a block, that the forward pass
// refuses: it would compute them wrongly.
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "model/computable.h"
#include "support/refused_model.h"

namespace fp8kv {

TEST_CASE("computable: hyper-connections are around plain blocks alone") {
  const auto connected = [](const std::function<void(ModelConfig&)>& change) {
    return test::refusal([&](ModelConfig& config) {
      config.hyper = HyperConfig{.count = 4};
      change(config);
    });
  };
  ModelConfig plain = test::tiny_model();
  plain.hyper = HyperConfig{.count = 4};
  check_computable(plain);
  for (const int64_t count : {1, 9}) {
    CHECK(connected([&](ModelConfig& config) {
            config.hyper->count = count;
          }).find(" streams are connected") != std::string::npos);
  }
  const std::function<void(ModelConfig&)> others[] = {
      [](ModelConfig& config) { config.laurel_rank = 2; },
      [](ModelConfig& config) { config.layer_input_dim = 4; },
      [](ModelConfig& config) { config.block.layer_scale = true; },
      [](ModelConfig& config) { config.block.parallel = true; }};
  for (const auto& other : others) {
    CHECK(connected(other).find("another way around their blocks") != std::string::npos);
  }
  const std::function<void(ModelConfig&)> outputs[] = {
      [](ModelConfig& config) { config.block.norm_place = NormPlace::around; },
      [](ModelConfig& config) { config.block.residual_multiplier = 0.5; },
      [](ModelConfig& config) { config.block.attention_out_multiplier = 0.5; },
      [](ModelConfig& config) { config.block.down_multiplier = 0.5; }};
  for (const auto& output : outputs) {
    CHECK(connected(output).find("whose output is normed or multiplied") != std::string::npos);
  }
  CHECK(connected([](ModelConfig& config) {
          config.layers[1].feed_forward = FeedForward::none;
        }).find("layer 1 has hyper-connections") != std::string::npos);
}

TEST_CASE("computable: attention residuals are around plain blocks alone, with so many sources") {
  const auto kept = [](const std::function<void(ModelConfig&)>& change) {
    return test::refusal([&](ModelConfig& config) {
      config.attn_res_block = 1;
      change(config);
    });
  };
  ModelConfig plain = test::tiny_model();
  plain.attn_res_block = 1;
  check_computable(plain);
  const std::function<void(ModelConfig&)> others[] = {
      [](ModelConfig& config) { config.laurel_rank = 2; },
      [](ModelConfig& config) { config.hyper = HyperConfig{.count = 4, .rank = 0}; },
      [](ModelConfig& config) { config.block.parallel = true; },
      [](ModelConfig& config) { config.block.layer_scale = true; },
      [](ModelConfig& config) { config.block.norm_place = NormPlace::around; },
      [](ModelConfig& config) { config.block.residual_multiplier = 0.5; }};
  for (const auto& other : others) {
    CHECK(kept(other).find("attention residuals are around blocks of another kind") !=
          std::string::npos);
  }
  CHECK(kept([](ModelConfig& config) {
          config.layers[1].feed_forward = FeedForward::none;
        }).find("layer 1 has attention residuals") != std::string::npos);
  CHECK(kept([](ModelConfig& config) {
          config.layers.resize(16, config.layers[0]);
          config.layer_ropes.resize(16, config.layer_ropes[0]);
          for (size_t i = 0; i < 16; ++i) config.layers[i].cache_of = static_cast<int64_t>(i);
        }).find("attention residuals have 17 sources, expected 2 to 16") != std::string::npos);
}

TEST_CASE("computable: gates where outputs meet the stream are behind norms of outputs") {
  const std::function<void(ModelConfig&)> gates[] = {
      [](ModelConfig& config) { config.block.gate_temperature = 0.5; },
      [](ModelConfig& config) { config.block.bare_attn_post_norm = true; },
      [](ModelConfig& config) { config.block.ffn_post_weighs_first = true; }};
  for (const auto& gate : gates) {
    CHECK(test::refusal(gate) ==
          "LlamaForCausalLM: gates or norms of another kind are where outputs meet the stream, "
          "expected attention and feed-forward parts in turn, with norms around both");
    ModelConfig around = test::tiny_model();
    gate(around);
    around.block.norm_place = NormPlace::around;
    check_computable(around);
  }
}

TEST_CASE("computable: experts whose output waits are in layers before one without experts") {
  const auto waiting = [](ModelConfig& config) {
    config.experts.emplace();
    config.experts->shortcut = true;
    for (size_t i = 0; i < config.layers.size(); ++i) {
      config.layers[i].feed_forward = i % 2 == 0 ? FeedForward::experts : FeedForward::gated;
    }
  };
  ModelConfig plain = test::tiny_model();
  if (plain.layers.size() % 2 != 0) plain.layers.pop_back();
  waiting(plain);
  check_computable(plain);
  const auto refused = [&](const std::function<void(ModelConfig&)>& change) {
    return test::refusal([&](ModelConfig& config) {
      config = plain;
      change(config);
    });
  };
  CHECK(refused([](ModelConfig& config) {
          config.layers[1].feed_forward = FeedForward::experts;
        }).find("layer 0 has experts whose output waits") != std::string::npos);
  CHECK(refused([](ModelConfig& config) {
          config.layers[1].feed_forward = FeedForward::none;
        }).find("layer 1 is beside experts whose output waits") != std::string::npos);
  CHECK(refused([](ModelConfig& config) {
          config.block.norm_place = NormPlace::around;
        }).find("with another way around them") != std::string::npos);
  CHECK(refused([](ModelConfig& config) {
          config.block.parallel = true;
        }).find("another way around") != std::string::npos);
}

TEST_CASE("computable: gated streams and n-grams are in layers without norms") {
  const auto gated = [](ModelConfig& config) {
    config.hyper = HyperConfig{.count = 4, .rank = 3};
    config.block.norm_place = NormPlace::none;
  };
  ModelConfig plain = test::tiny_model();
  gated(plain);
  check_computable(plain);
  CHECK(test::refusal([&](ModelConfig& config) {
          gated(config);
          config.block.norm_place = NormPlace::before;
        }).find("inputs that are normed once") != std::string::npos);
  CHECK(test::refusal([&](ModelConfig& config) {
          config.ngrams = NgramConfig{.longest = 3, .conv_width = 4, .layers = {1}};
        }) ==
        "LlamaForCausalLM: n-grams are in layers with one stream, expected hyper-connections");
  CHECK(test::refusal([&](ModelConfig& config) {
          gated(config);
          config.ngrams = NgramConfig{.longest = 3, .conv_width = 4, .layers = {1}};
        }) == "LlamaForCausalLM: layer 1 has n-grams, expected a layer that keeps a state");
  CHECK(test::refusal([&](ModelConfig& config) {
          gated(config);
          config.ngrams = NgramConfig{.longest = 3, .conv_width = 5};
        }) ==
        "LlamaForCausalLM: a convolution over n-grams reaches 12 tokens back, expected 9 at most");
}

TEST_CASE("computable: pooled keys are of blocks, for attention that rotates as many elements") {
  const auto pooled = [](ModelConfig& config) {
    config.indexer =
        IndexerConfig{.n_heads = 2, .head_dim = 16, .top_k = 2, .block = 4, .pooled = true};
    config.indexer->rope_dim = config.layers.front().k_head_dim;
    for (LayerDescription& layer : config.layers) layer.index_bytes = 8;
  };
  ModelConfig plain = test::tiny_model();
  pooled(plain);
  check_computable(plain);
  CHECK(test::refusal([&](ModelConfig& config) {
          pooled(config);
          config.indexer->block = 1;
        }) ==
        "LlamaForCausalLM: an indexer pools keys of blocks of 1, expected blocks of 2 tokens or "
        "more, for KV heads that all see the same, or for latents if each token's key is normed");
  CHECK(test::refusal([&](ModelConfig& config) {
          pooled(config);
          config.indexer->weighted = config.indexer->norms_tokens = true;
        }).starts_with("LlamaForCausalLM: an indexer pools keys of blocks of 4, expected "));
  CHECK(test::refusal([&](ModelConfig& config) {
          pooled(config);
          config.indexer->rope_dim -= 2;
        }).starts_with("LlamaForCausalLM: layer 0 has an indexer that rotates "));
  CHECK(test::refusal([&](ModelConfig& config) {
          pooled(config);
          config.ropes[0].pairs = RopePairs::neighbours;
        }).starts_with("LlamaForCausalLM: layer 0 has an indexer that rotates "));
}

TEST_CASE("computable: streams, ways around attention and experts beside others are as computed") {
  const auto with_streams = [](ModelConfig& config) {
    config.streams = StreamsConfig{4, 0, true};
    config.layer_input_dim = 8;
  };
  ModelConfig streams = test::tiny_model();
  with_streams(streams);
  check_computable(streams);
  CHECK(test::refusal([&](ModelConfig& config) {
          with_streams(config);
          config.streams->active = 4;
        }) == "LlamaForCausalLM: stream 4 of 4 is computed with, expected one of 2 to 8");
  CHECK(test::refusal([&](ModelConfig& config) {
          with_streams(config);
          config.layer_input_dim = 0;
        }).starts_with("LlamaForCausalLM: several streams are in layers that keep a state, "));
  CHECK(test::refusal([](ModelConfig& config) {
          config.laurel_rank = 2;
          config.block.parallel = true;
        }).starts_with("LlamaForCausalLM: attention has a way around it in blocks side by side"));
  CHECK(test::refusal([](ModelConfig& config) {
          config.gate_cuts.assign(2, 0.5);
          config.block.gated = false;
        }) ==
        "LlamaForCausalLM: a gate that is cut off is in blocks without one, expected gated "
        "ones");
  CHECK(test::refusal([](ModelConfig& config) {
          config.experts.emplace();
          config.experts->beside_dense = config.experts->router_norm = true;
        }).starts_with("LlamaForCausalLM: experts are beside a dense part in blocks that are "));
  CHECK(test::refusal([](ModelConfig& config) {
          config.experts.emplace();
          config.experts->post_norm = true;
          config.block.norm_place = NormPlace::around;
        }) ==
        "LlamaForCausalLM: the output of experts has a norm of its own in blocks with norms of the "
        "output, expected NormPlace::before");
  CHECK(test::refusal([](ModelConfig& config) {
          config.experts.emplace();
          config.experts->router_norm = true;
        }).starts_with("LlamaForCausalLM: the router has a norm of its own, or experts "));
}

TEST_CASE("computable: shared blocks are in layers that all keep a plain state") {
  CHECK(test::refusal([](ModelConfig& c) { c.shared_block.emplace(); }) ==
        "LlamaForCausalLM: shared blocks are in layers without a state, or with multipliers, "
        "expected a plain state in every layer");
  CHECK(test::refusal([](ModelConfig& c) {
          c.shared_block.emplace();
          c.block.parallel = true;
        }) ==
        "LlamaForCausalLM: shared blocks are in layers of another kind, expected plain attention, "
        "a gated feed-forward part, and norms before both alone");
  CHECK(test::refusal([](ModelConfig& c) {
          c.shared_block.emplace();
          c.recurrence.emplace().update = StateUpdate::add;
        }) ==
        "LlamaForCausalLM: layer 0 is beside shared blocks, expected a state, alone or with "
        "attention and a feed-forward part");
}

}  // namespace fp8kv
