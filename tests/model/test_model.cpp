#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/model/read_model_config.h"
#include "core/numbers/half.h"
#include "json/json.h"
#include "support/models/goldens.h"
#include "support/models/run_model.h"
#include "support/models/tiny_checkpoint.h"
#include "support/reference/reference_model.h"
#include "support/skip.h"
#include "support/temp_dir.h"

using namespace fp8kv;
using test::TempDir;

namespace {

// f32 keeps 24 bits. A sum of n terms loses some sqrt(n) of its last bit. A logit follows some ten
// such sums of up to 200 terms over values near 1: 10 * sqrt(200) * 2^-24 = 8e-6. Five times that
// leaves room for values near 5.
constexpr double kF32Tolerance = 4e-5;

std::vector<int32_t> some_ids(int count, int vocab_size) {
  std::vector<int32_t> ids;
  uint32_t state = 7;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    ids.push_back(static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(vocab_size)));
  }
  return ids;
}

double worst_difference(const std::vector<float>& actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    worst = std::max(worst, std::abs(actual[i] - expected[i]));
  }
  return worst;
}

double worst_difference(const std::vector<std::vector<float>>& actual,
                        const std::vector<std::vector<double>>& expected) {
  REQUIRE(actual.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    worst = std::max(worst, worst_difference(actual[i], expected[i]));
  }
  return worst;
}

struct Variant {
  const char* name;
  test::TinyConfig config;
  test::TinyOptions options;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  const auto add = [&](const char* name, auto change) {
    Variant variant{name, test::tiny_config(), {}};
    change(variant);
    all.push_back(variant);
  };
  add("grouped-query Llama", [](Variant&) {});
  add("multi-query", [](Variant& v) { v.config.n_kv_heads = 1; });
  add("head_dim beyond dim / heads", [](Variant& v) { v.config.head_dim = 24; });
  add("tied embeddings", [](Variant& v) { v.config.tied_embeddings = true; });
  add("tied embeddings stored as the head", [](Variant& v) {
    v.config.tied_embeddings = true;
    v.options.tied_as_lm_head = true;
  });
  add("Mistral with a window of 8", [](Variant& v) {
    v.config.architecture = "MistralForCausalLM";
    v.config.model_type = "mistral";
    v.config.window = 8;
  });
  add("Qwen2 with biases", [](Variant& v) {
    v.config.architecture = "Qwen2ForCausalLM";
    v.config.model_type = "qwen2";
    v.config.qkv_bias = true;
  });
  add("Qwen3: every head of Q and K normalised", [](Variant& v) {
    v.config.architecture = "Qwen3ForCausalLM";
    v.config.model_type = "qwen3";
    v.config.block.qk_norm = QkNorm::per_head;
  });
  add("OLMo 2: norms after the blocks, Q and K normalised whole", [](Variant& v) {
    v.config.architecture = "Olmo2ForCausalLM";
    v.config.model_type = "olmo2";
    v.config.block.norm_place = NormPlace::after;
    v.config.block.qk_norm = QkNorm::whole;
  });
  add("linear rope scaling", [](Variant& v) {
    v.config.rope.scaling = RopeScaling::linear;
    v.config.rope.factor = 4;
  });
  add("llama3 rope scaling",
      [](Variant& v) { v.config.rope = {500000, RopeScaling::llama3, 8, 1, 4, 32}; });
  add("yarn rope scaling", [](Variant& v) {
    v.config.head_dim = 16;
    v.config.rope = {.scaling = RopeScaling::yarn,
                     .factor = 4,
                     .original_context = 32,
                     .beta_fast = 4,
                     .attention_factor = 1.3};
  });
  add("three shards", [](Variant& v) { v.options.n_shards = 3; });
  return all;
}

}  // namespace

TEST_CASE("model: logits equal an independent double-precision forward pass") {
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    const TempDir folder;
    test::write_tiny_checkpoint(folder / "m", variant.config, variant.options);
    const Checkpoint checkpoint = Checkpoint::open(folder / "m");
    const ModelConfig config = read_model_config(checkpoint);
    const std::vector<int32_t> ids = some_ids(75, static_cast<int>(config.vocab_size));
    const auto backend = make_cpu_backend(2);
    const auto logits = test::run_model(checkpoint, config, *backend, ids);
    const auto expected = test::reference_forward(checkpoint, config, ids).logits;
    CHECK(worst_difference(logits, expected) < kF32Tolerance);
  }
}

TEST_CASE("model: prompts in one step, in pieces and token by token give the same logits") {
  const TempDir folder;
  test::TinyConfig shape = test::tiny_config();
  shape.window = 20;
  shape.architecture = "MistralForCausalLM";
  shape.model_type = "mistral";
  test::write_tiny_checkpoint(folder / "m", shape);
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  const ModelConfig config = read_model_config(checkpoint);
  const std::vector<int32_t> ids = some_ids(100, 64);
  const auto backend = make_cpu_backend(2);
  const auto expected = test::reference_forward(checkpoint, config, ids).logits;
  for (const int64_t chunk : {1, 7, 64, 100}) {
    CAPTURE(chunk);
    const auto logits = test::run_model(checkpoint, config, *backend, ids, {.chunk = chunk});
    CHECK(worst_difference(logits, expected) < kF32Tolerance);
  }
}

// The oracle reads K and V through the same rounding. The product's K and V differ from the
// oracle's in the last bits of f32. So a value next to a rounding boundary may fall to the other
// side: one step of E4M3 (up to 1/8 of a value) in one of thousands of terms. Typical differences
// stay far below; a wrong or missing scale is off by whole units.
TEST_CASE("model: an FP8 cache reads as code times scale, per head") {
  const TempDir folder;
  test::write_tiny_checkpoint(folder / "m", test::tiny_config());
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  const ModelConfig config = read_model_config(checkpoint);
  const std::vector<int32_t> ids = some_ids(70, 64);
  const auto backend = make_cpu_backend(2);
  KvScales scales;
  // Large enough that nothing saturates: FN saturates at 448 times the scale, FNUZ at 480 times.
  scales.layers = {{{0.03f, 0.05f}, {0.04f, 0.07f}}, {{0.045f, 0.06f}, {0.031f, 0.029f}}};
  const auto rounding = [&](double x, int64_t layer, int64_t head, bool is_key) {
    const LayerScales& of_layer = scales.layers[static_cast<size_t>(layer)];
    const float scale = (is_key ? of_layer.k : of_layer.v)[static_cast<size_t>(head)];
    const uint8_t code = fp8_encode<Fp8Format::e4m3fn>(static_cast<float>(x) / scale);
    return static_cast<double>(fp8_decode<Fp8Format::e4m3fn>(code)) * scale;
  };
  const auto logits = test::run_model(checkpoint, config, *backend, ids,
                                      {.cache_dtype = DType::f8_e4m3, .scales = &scales});
  const auto expected = test::reference_forward(checkpoint, config, ids, rounding).logits;
  CHECK(worst_difference(logits, expected) < 0.02);

  const KvScales doubled = with_format(scales, KvFormat::e4m3fnuz);
  const auto fnuz = test::run_model(checkpoint, config, *backend, ids,
                                    {.cache_dtype = DType::f8_e4m3fnuz, .scales = &doubled});
  CHECK(fnuz == logits);
}

TEST_CASE("model: logits and greedy text equal transformers' on its random models") {
  for (const char* name : test::kGoldens) {
    CAPTURE(name);
    const auto [folder, golden, all_ids] = test::golden(name);
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const ModelConfig config = read_model_config(checkpoint);
    std::vector<int32_t> ids = all_ids;
    const auto backend = make_cpu_backend(2);
    const auto logits = test::run_model(checkpoint, config, *backend, ids);
    // The goldens compute in float32 throughout. If the model's dtype is narrower, K and V (and in
    // bf16 every product's input) are rounded to it here, as in runtimes: 2^-11 or 2^-8 of values
    // near 5, over some ten roundings in a row.
    const double tolerance = config.dtype == DType::f32   ? 1e-4
                             : config.dtype == DType::f16 ? 0.02
                                                          : 0.25;
    const Json expected = golden.at("logits");
    for (size_t i = 0; i < expected.size(); ++i) {
      std::vector<double> row;
      for (size_t j = 0; j < expected.value(i).size(); ++j) {
        row.push_back(expected.value(i)[j].as_double());
      }
      const auto position = static_cast<size_t>(std::stoul(expected.key(i)));
      CHECK(worst_difference(logits[position], row) < tolerance);
    }
    if (config.dtype != DType::f32) continue;
    std::vector<int32_t> greedy;
    for (size_t i = 0; i < golden.at("greedy").size(); ++i) {
      greedy.push_back(static_cast<int32_t>(golden.at("greedy")[i].as_int()));
    }
    ids.resize(16);
    CHECK(test::run_greedy({checkpoint, config, *backend}, ids, static_cast<int>(greedy.size())) ==
          greedy);
  }
}

TEST_CASE("model: last logits and greedy ids of stories260K equal the float64 reference") {
  const auto reference =
      test::shared_data("reference/stories260K-hf-f32.tinystories_train_head.json");
  const auto folder = test::shared_data("models/stories260K-hf-f32");
  if (!reference || !folder) return;
  const Json golden = Json::read(*reference);
  const Checkpoint checkpoint = Checkpoint::open(*folder);
  const ModelConfig config = read_model_config(checkpoint);
  const auto backend = make_cpu_backend(2);
  const auto list = [](const Json& json) {
    std::vector<int32_t> values;
    for (size_t i = 0; i < json.size(); ++i)
      values.push_back(static_cast<int32_t>(json[i].as_int()));
    return values;
  };
  const auto logits =
      test::run_model(checkpoint, config, *backend, list(golden.at("window_ids")[0]));
  std::vector<double> expected;
  const Json last = golden.at("window0_last_logits");
  for (size_t i = 0; i < last.size(); ++i) expected.push_back(last[i].as_double());
  CHECK(worst_difference(logits.back(), expected) < 1e-4);
  const Json greedy = golden.at("greedy");
  const std::vector<int32_t> generated = list(greedy.at("generated"));
  CHECK(test::run_greedy({checkpoint, config, *backend}, list(greedy.at("prompt")),
                         static_cast<int>(generated.size())) == generated);
}
