// Differential attention: its cache, and the models that it refuses.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "core/model/config.h"
#include "core/numbers/fp8.h"
#include "core/scales/scales.h"
#include "support/models/block_model.h"
#include "support/models/run_model.h"
#include "support/reference/reference_model.h"
#include "support/refused_model.h"

namespace fp8kv {

// The text has more than a page. Each head has scales of its own, so that a wrong half shows. The
// tolerance is that of "model: an FP8 cache reads as code times scale, per head".
TEST_CASE("differential: an FP8 cache reads as code times scale, per head of each half") {
  const test::BlockModel model(
      {"differential", [](test::TinyConfig& c) { c.block.differential = true; }}, DType::f32, 8);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 70; ++i) ids.push_back((7 * i + 3) % 64);
  KvScales scales;
  scales.layers = {{{0.03f, 0.05f}, {0.04f, 0.07f}}, {{0.045f, 0.06f}, {0.031f, 0.029f}}};
  const auto rounding = [&](double x, int64_t layer, int64_t head, bool is_key) {
    const LayerScales& of_layer = scales.layers[static_cast<size_t>(layer)];
    const float scale = (is_key ? of_layer.k : of_layer.v)[static_cast<size_t>(head)];
    const uint8_t code = fp8_encode<Fp8Format::e4m3fn>(static_cast<float>(x) / scale);
    return static_cast<double>(fp8_decode<Fp8Format::e4m3fn>(code)) * scale;
  };
  const auto backend = make_cpu_backend(2);
  const auto logits = test::run_model(model.checkpoint, model.config, *backend, ids,
                                      {.cache_dtype = DType::f8_e4m3, .scales = &scales});
  const auto expected =
      test::reference_forward(model.checkpoint, model.config, ids, rounding).logits;
  REQUIRE(logits.size() == expected.size());
  double worst = 0;
  for (size_t row = 0; row < logits.size(); ++row) {
    for (size_t i = 0; i < logits[row].size(); ++i) {
      worst = std::max(worst, std::abs(logits[row][i] - expected[row][i]));
    }
  }
  CHECK(worst < 0.02);
}

TEST_CASE("computable: differential attention has two halves of heads with plain scores") {
  const std::function<void(ModelConfig&)> kinds[] = {
      [](ModelConfig& c) { c.block.sinks = true; },
      [](ModelConfig& c) { c.block.score_bias = ScoreBias::alibi; },
      [](ModelConfig& c) { c.block.attention_gate = AttentionGate::sigmoid; },
      [](ModelConfig& c) { c.block.norm = NormKind::layer; }};
  for (const auto& change : kinds) {
    CHECK(test::refusal([&](ModelConfig& c) {
            c.block.differential = true;
            change(c);
          }) ==
          "LlamaForCausalLM: differential attention is beside attention of another kind, expected "
          "K and V of their own, plain scores, and norms by the root mean square");
  }
  CHECK(test::refusal([](ModelConfig& c) {
          c.block.differential = true;
          for (LayerDescription& layer : c.layers) layer.n_kv_heads = 1;
        }) == "LlamaForCausalLM: differential attention has 1 KV heads, expected an even number");
}

}  // namespace fp8kv
