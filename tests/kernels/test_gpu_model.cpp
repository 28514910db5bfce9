// Whole models on the GPU kernels, against the CPU backend's text and statistics.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "calib/collect.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model/read_model_config.h"
#include "support/backends/gpu_backends.h"
#include "support/models/block_model.h"
#include "support/models/f32_router.h"
#include "support/models/family_model.h"
#include "support/models/fused_model.h"
#include "support/models/run_model.h"
#include "support/models/tiny_checkpoint.h"
#include "support/reference/input_ranges.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

std::vector<int32_t> ids_below(int32_t vocab_size, int count) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * 37 + 5) % vocab_size);
  return ids;
}

// Checks text of which the model is sure: 16-bit activations may flip a near tie.
void check_greedy(const std::filesystem::path& folder, int count,
                  const test::RunSettings& settings) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const ModelConfig config = read_model_config(checkpoint);
  const std::vector<int32_t> prompt =
      Tokenizer::load(folder / "tokenizer.json").encode("Once upon a time", true);
  const auto cpu = make_cpu_backend(1);
  const std::vector<int32_t> expected =
      test::run_greedy({checkpoint, config, *cpu}, prompt, count, settings);
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    const auto backend = named.make();
    const bool same =
        test::run_greedy({checkpoint, config, *backend}, prompt, count, settings) == expected;
    CHECK(same);
  }
}

// A plain model, one with normalised heads of Q and K, and one with norms in all other places.
std::vector<test::TinyConfig> tiny_models() {
  test::TinyConfig qwen3 = test::tiny_config();
  qwen3.architecture = "Qwen3ForCausalLM";
  qwen3.model_type = "qwen3";
  qwen3.block.qk_norm = QkNorm::per_head;
  test::TinyConfig olmo2 = test::tiny_config();
  olmo2.architecture = "Olmo2ForCausalLM";
  olmo2.model_type = "olmo2";
  olmo2.block.norm_place = NormPlace::after;
  olmo2.block.qk_norm = QkNorm::whole;
  return {test::tiny_config(), qwen3, olmo2};
}

// |actual - expected| / |expected| over all logits.
double relative_error(const std::vector<std::vector<float>>& actual,
                      const std::vector<std::vector<float>>& expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t j = 0; j < expected[i].size(); ++j) {
      error += std::pow(double{actual[i][j]} - expected[i][j], 2);
      norm += std::pow(double{expected[i][j]}, 2);
    }
  }
  return std::sqrt(error / norm);
}

void check_close(const std::vector<LayerMagnitudes>& actual,
                 const std::vector<LayerMagnitudes>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (size_t layer = 0; layer < actual.size(); ++layer) {
    for (size_t head = 0; head < actual[layer].k.size(); ++head) {
      CAPTURE(layer);
      CAPTURE(head);
      // The error of two layers: sums of at most 48 products in another order, each within 2^-24 of
      // values near 1.
      constexpr double kTolerance = 2 * 48 * 0x1p-24 * 4;
      CHECK(std::abs(actual[layer].k[head].amax - expected[layer].k[head].amax) <=
            kTolerance * double{expected[layer].k[head].amax});
      CHECK(std::abs(actual[layer].v[head].amax - expected[layer].v[head].amax) <=
            kTolerance * double{expected[layer].v[head].amax});
      CHECK(actual[layer].k[head].nonfinite == 0);
    }
  }
}

}  // namespace

TEST_CASE("gpu model: gives the CPU's greedy text on the demo model") {
  const std::filesystem::path demo = test::source_dir() / "datasets" / "demo";
  // The prompt, a step that is run, one that is recorded, and one that is replayed.
  check_greedy(demo, 4, {.cache_dtype = DType::f8_e4m3});
}

TEST_CASE("gpu model: gives the CPU's greedy text on stories260K") {
  for (const char* name : {"stories260K-hf-f32", "stories260K-hf-bf16-sharded"}) {
    CAPTURE(std::string(name));
    const auto folder = test::shared_data(std::string("models/") + name);
    if (!folder) return;
    check_greedy(*folder, 8, {.cache_dtype = DType::f8_e4m3});
    check_greedy(*folder, 4, {.cache_dtype = DType::f16});
  }
}

TEST_CASE("gpu model: gives the CPU's logits but for the rounding of activations") {
  for (test::TinyConfig shape : tiny_models()) {
    CAPTURE(shape.architecture);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      CAPTURE(std::string(dtype_name(dtype)));
      shape.dtype = dtype;
      // A size of the fast kernels, and one of the general kernel.
      shape.head_dim = dtype == DType::bf16 ? 80 : 64;
      const test::TempDir dir;
      test::write_tiny_checkpoint(dir / "model", shape);
      const Checkpoint checkpoint = Checkpoint::open(dir / "model");
      const ModelConfig config = read_model_config(checkpoint);
      // A step of many rows, then one of a single row.
      const test::RunSettings settings{.cache_dtype = DType::f8_e4m3, .chunk = 20};
      const std::vector<int32_t> ids = ids_below(64, 21);
      const auto expected =
          test::run_model(checkpoint, config, *make_cpu_backend(1), ids, settings);
      for (const test::NamedBackend& named : test::gpu_backends()) {
        CAPTURE(named.name);
        const auto backend = named.make();
        // Two layers of some ten roundings each. In addition, one value in a hundred rounds to the
        // neighbouring fp8 code, 2^-4 of its value away.
        const double allowed = 20 * test::unit_of(dtype) + (dtype == DType::f32 ? 0x1p-18 : 0.01);
        const auto actual = test::run_model(checkpoint, config, *backend, ids, settings);
        CHECK(relative_error(actual, expected) < allowed);
        CHECK(relative_error({actual.back()}, {expected.back()}) < allowed);
      }
    }
  }
}

TEST_CASE("gpu model: gives the CPU's logits whatever layers are made of") {
  for (const test::BlockVariant& variant : test::block_variants()) {
    CAPTURE(variant.name);
    // Single knobs behave alike in f32 and bf16, and test_gpu_ops.cpp tests their ops in bf16. f32
    // shows the smaller mistakes. Families also run through the 16-bit kernels.
    std::vector<DType> dtypes = {DType::f32};
    if (variant.name.starts_with("as ")) dtypes.push_back(DType::bf16);
    for (const DType dtype : dtypes) {
      CAPTURE(std::string(dtype_name(dtype)));
      const test::BlockModel model(variant, dtype, dtype == DType::f32 ? 8 : 64);
      // A step of many rows, then one of a single row.
      const test::RunSettings settings{.cache_dtype = dtype, .chunk = 9};
      const std::vector<int32_t> ids = ids_below(64, 10);
      const auto expected =
          test::run_model(model.checkpoint, model.config, *make_cpu_backend(1), ids, settings);
      for (const test::NamedBackend& named : test::gpu_backends()) {
        CAPTURE(named.name);
        const auto backend = named.make();
        // Two layers of some twenty roundings each, which add up by chance; they have one more norm
        // or activation than Llama. In f32, roundings within sums count as well: half of them are
        // sums of up to 48.
        const double roundings = dtype == DType::f32 ? 20 * 48 : 40;
        const double allowed = std::sqrt(roundings) * test::unit_of(dtype);
        const auto actual =
            test::run_model(model.checkpoint, model.config, *backend, ids, settings);
        CHECK(relative_error(actual, expected) < allowed);
        CHECK(relative_error({actual.back()}, {expected.back()}) < allowed);
      }
    }
  }
}

// Heads of 6 elements: parts of the fused bias begin off vector boundaries.
TEST_CASE("gpu model: tensors of several roles give the bits of tensors of their own") {
  const std::vector<int32_t> ids = ids_below(64, 10);
  for (const int64_t head_dim : {6, 64}) {
    const test::BlockVariant biased{"biases",
                                    [](test::TinyConfig& c) { c.qkv_bias = c.mlp_bias = true; }};
    const test::BlockModel model(biased, DType::bf16, head_dim);
    const test::FusedModel fused(model);
    // A step of many rows, then one of a single row.
    const test::RunSettings settings{.cache_dtype = DType::bf16, .chunk = 9};
    test::on_every_backend([&](Backend& backend) {
      const bool same = test::run_model(fused.checkpoint, fused.config, backend, ids, settings) ==
                        test::run_model(model.checkpoint, model.config, backend, ids, settings);
      CHECK(same);
    });
  }
}

TEST_CASE("gpu model: reaches the CPU's magnitudes on an f32 model") {
  for (const test::TinyConfig& shape : tiny_models()) {
    CAPTURE(shape.architecture);
    const test::TempDir dir;
    test::write_tiny_checkpoint(dir / "model", shape);
    const Checkpoint checkpoint = Checkpoint::open(dir / "model");
    const ModelConfig config = read_model_config(checkpoint);
    const std::vector<std::vector<int32_t>> windows = {ids_below(64, 50), ids_below(64, 33)};
    Log log(Verbosity::quiet);
    const auto cpu = make_cpu_backend(1);
    const auto expected = collect_magnitudes({checkpoint, config, *cpu}, windows, log);
    for (const test::NamedBackend& named : test::gpu_backends()) {
      CAPTURE(named.name);
      const auto backend = named.make();
      check_close(collect_magnitudes({checkpoint, config, *backend}, windows, log), expected);
    }
  }
}

TEST_CASE("gpu model: losses of scales are the CPU's") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    CAPTURE(std::string(dtype_name(dtype)));
    const test::BlockModel model({"plain", [](test::TinyConfig&) {}}, dtype,
                                 dtype == DType::f32 ? 8 : 64);
    const std::vector<std::vector<int32_t>> windows = {ids_below(64, 20)};
    Log log(Verbosity::quiet);
    CollectOptions options;
    options.losses = true;
    // The losses of V in all layers, heads and mantissas. In f32 those of K come first.
    const auto losses = [&](Backend& backend) {
      std::vector<double> all;
      for (const LayerMagnitudes& layer :
           collect_magnitudes({model.checkpoint, model.config, backend}, windows, log, options)) {
        for (size_t head = 0; head < layer.k.size(); ++head) {
          const auto &k = layer.k[head].losses, &v = layer.v[head].losses;
          if (dtype == DType::f32) all.insert(all.end(), k.begin(), k.end());
          all.insert(all.end(), v.begin(), v.end());
        }
      }
      return all;
    };
    const std::vector<double> expected = losses(*make_cpu_backend(1));
    const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
    test::on_every_backend([&](Backend& backend) {
      const std::vector<double> actual = losses(backend);
      REQUIRE(actual.size() == expected.size());
      // With activations in bf16, K and V differ in the last place from those of the CPU, and so
      // fall on other sides of a rounding. That moves single losses, and hardly their sum.
      CHECK(std::accumulate(actual.begin(), actual.end(), 0.0) ==
            doctest::Approx(sum).epsilon(dtype == DType::f32 ? 1e-3 : 0.1));
      for (size_t i = 0; dtype == DType::f32 && i < actual.size(); ++i) {
        CHECK(actual[i] == doctest::Approx(expected[i]).epsilon(1e-2));
      }
    });
  }
}

namespace {

// Whether the backend takes seconds where a device takes milliseconds: a simulator, or the emulator
// of PTX.
bool is_simulated(const test::NamedBackend& named) {
  return std::string_view(named.name).starts_with("sim") || named.name == "ptx";
}

}  // namespace

// Runs each golden in one pass, and as a prompt with decode steps. On simulators, each golden runs
// on one backend in one of the two ways. Neighbours by name, which are of one family, take turns.
TEST_CASE("gpu model: logits of every family are transformers'") {
  const std::vector<test::NamedBackend> backends = test::gpu_backends();
  size_t turn = 0;
  for (const std::string& name : test::family_cases()) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    const test::RunSettings steps = {.chunk = 1,
                                     .prompt = static_cast<int64_t>(model.ids.size()) - 3};
    ++turn;
    for (size_t i = 0; i < backends.size(); ++i) {
      CAPTURE(backends[i].name);
      const bool simulated = is_simulated(backends[i]), first = turn / backends.size() % 2 == 0;
      if (simulated && turn % backends.size() != i) continue;
      const auto backend = backends[i].make();
      const auto check = [&](const test::RunSettings& settings) {
        test::check_logits(
            model, test::run_model(model.checkpoint, model.config, *backend, model.ids, settings));
      };
      if (!simulated || first) check({});
      if (!simulated || !first) check(steps);
    }
  }
}

TEST_CASE("gpu model: a router in F32 beside BF16 weights keeps its digits") {
  const test::TempDir temp;
  const std::vector<int32_t> ids = ids_below(64, 30);
  const auto logits = [&](Backend& backend, DType dtype) {
    const auto folder = temp / std::string(dtype_name(dtype));
    test::write_close_routers(folder, dtype, 0);
    const Checkpoint checkpoint = Checkpoint::open(folder);
    return test::run_model(checkpoint, read_model_config(checkpoint), backend, ids);
  };
  const auto exact = logits(*make_cpu_backend(1), DType::f32);
  test::on_every_backend([&](Backend& backend) {
    // BF16 changes logits by about 2^-8. Another expert changes them by their own size.
    CHECK(test::logit_difference(logits(backend, DType::bf16), exact) < 0.1);
  });
}

TEST_CASE("gpu model: hyper-connections and sinks in F32 beside BF16 weights are the CPU's") {
  const test::TempDir temp;
  const test::FamilyModel exact("hy-v4-saved-dense");
  const Checkpoint checkpoint =
      test::write_narrow_model(temp / "model", exact.golden, {".hc_", "sink_param"});
  const ModelConfig config = read_model_config(checkpoint);
  const std::vector<int32_t> ids(exact.ids.begin(), exact.ids.begin() + 24);
  const auto expected = test::run_model(checkpoint, config, *make_cpu_backend(1), ids);
  test::on_every_backend([&](Backend& backend) {
    // Activations in BF16 change logits by about 2^-8.
    CHECK(test::logit_difference(test::run_model(checkpoint, config, backend, ids), expected) <
          0.1);
  });
}

// Runs each golden on one backend, in turn; on simulators only every third golden.
TEST_CASE("gpu model: amax and greedy text of every family are transformers'") {
  // The prompt, a step that is run, one that is recorded, and one that is replayed.
  constexpr int kSimulated = 4;
  const std::vector<test::NamedBackend> backends = test::gpu_backends();
  if (backends.empty()) return;
  const std::vector<std::string> names = test::family_cases();
  const size_t step = is_simulated(backends[0]) ? 3 : 1;
  for (size_t i = 0; i < names.size(); i += step) {
    const test::NamedBackend& named = backends[i / step % backends.size()];
    CAPTURE(names[i]);
    CAPTURE(named.name);
    const test::FamilyModel model(names[i]);
    const auto backend = named.make();
    Log log(Verbosity::quiet);
    test::check_amax(
        model, collect_magnitudes({model.checkpoint, model.config, *backend}, {model.ids}, log));
    const std::vector<int32_t> prompt(model.ids.begin(),
                                      model.ids.begin() + test::FamilyModel::kPrompt);
    const int count = is_simulated(named) ? kSimulated : static_cast<int>(model.greedy.size());
    const std::vector<int32_t> expected(model.greedy.begin(), model.greedy.begin() + count);
    CHECK(test::run_greedy({model.checkpoint, model.config, *backend}, prompt, count) == expected);
  }
}

TEST_CASE("gpu model: every matrix multiplies what it does in transformers") {
  for (const test::NamedBackend& named : test::gpu_backends()) {
    CAPTURE(named.name);
    for (const char* name : {"phi3", "glm4-moe", "deepseek-v3"}) {
      const auto backend = named.make();
      test::check_input_ranges(name, *backend);
    }
  }
}

}  // namespace fp8kv
