#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "model/cache/capacity.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A model with one caching layer for each entry of `reaches`: its window in tokens, or 0 for all.
ModelDescription model_with(int64_t n_heads, int64_t n_kv_heads, int64_t k, int64_t v,
                            const std::vector<int64_t>& reaches) {
  ModelDescription model;
  model.n_heads = n_heads;
  for (const int64_t reach : reaches) {
    const Mixing mixing = reach > 0 ? Mixing::window : Mixing::full;
    model.layers.push_back({mixing, reach, n_kv_heads, k, v, model.n_layers()});
  }
  return model;
}

ModelDescription heads(int64_t n_heads, int64_t n_kv_heads) {
  return model_with(n_heads, n_kv_heads, 128, 128, {0});
}

// Llama 3 8B has 8,030,261,248 parameters, 128,256 * 4,096 of them in the embedding.
const WeightBytes kLlama8B = {2 * 8030261248u, 2 * (8030261248u - 525336576u)};

// Plans with a cache and a baseline of these types.
CachePlan plan(const ModelDescription& model, const WeightBytes& weights, const Deployment& on,
               DType dtype, DType baseline) {
  return plan_cache(model, weights, on, token_bytes(model, CacheType(dtype)),
                    token_bytes(model, CacheType(baseline)));
}

CachePlan llama8b(const Deployment& on, DType dtype) {
  return plan(model_with(32, 8, 128, 128, std::vector<int64_t>(32)), kLlama8B, on, dtype,
              DType::bf16);
}

TEST_CASE("capacity: the gains and step times of Llama 3 8B as worked out by hand") {
  // ms at 3.0 TB/s with a 16-bit and an 8-bit cache.
  struct Row {
    int64_t batch, context;
    double half_ms, fp8_ms, gain;
  };
  for (const Row& row : {Row{1, 2048, 5.09, 5.05, 1.01}, Row{1, 32768, 6.43, 5.72, 1.12},
                         Row{16, 4096, 7.87, 6.43, 1.22}, Row{64, 4096, 16.46, 10.73, 1.53}}) {
    const Deployment on{0, 1, row.batch, row.context};
    const CachePlan half = llama8b(on, DType::bf16), fp8 = llama8b(on, DType::f8_e4m3);
    CHECK(static_cast<double>(half.step_bytes) / 3e9 == doctest::Approx(row.half_ms).epsilon(2e-3));
    CHECK(static_cast<double>(fp8.step_bytes) / 3e9 == doctest::Approx(row.fp8_ms).epsilon(2e-3));
    CHECK(fp8.gain == doctest::Approx(row.gain).epsilon(5e-3));
    CHECK(half.gain == 1);
  }
}

TEST_CASE("capacity: tokens are what the weights leave over what one takes") {
  const CachePlan plan = llama8b({80 * kGiB, 1, 1, 8192}, DType::f8_e4m3);
  CHECK(plan.bytes_per_token == 65536);
  CHECK(plan.bytes_per_sequence == 65536 * 8192);
  CHECK(plan.free_bytes == 80 * kGiB - 2 * 8030261248u);
  CHECK(plan.tokens == plan.free_bytes / 65536);
  CHECK(plan.sequences == plan.free_bytes / (65536 * 8192));
  CHECK(llama8b({80 * kGiB, 1, 1, 8192}, DType::bf16).tokens == plan.tokens / 2);
}

TEST_CASE("capacity: a window holds no more than its tokens") {
  ModelDescription model = model_with(4, 2, 64, 32, {0, 100});
  model.layers.push_back({Mixing::recurrent});
  const Deployment on{50000, 1, 1, 150};
  const CachePlan made = plan(model, {0, 0}, on, DType::f16, DType::f16);
  CHECK(made.bytes_per_token == 2 * 2 * (96 + 96));
  const uint64_t sequence = 2 * 2 * 96 * (150 + 100);  // K and V elements, heads, bytes
  CHECK(made.bytes_per_sequence == sequence);
  CHECK(made.sequences == 0);
  // In 50,000 bytes the window's 100 tokens do not fit (76,800 at 768 each), so all tokens count in
  // both layers.
  CHECK(made.tokens == 50000 / 768);
  const CachePlan more = plan(model, {0, 0}, {300000, 1, 1, 150}, DType::f16, DType::f16);
  CHECK(more.sequences == 300000 / sequence);
  // The rest, 12,000 bytes, is 15 tokens at 768 each: all of them are within the window.
  CHECK(more.tokens == 3 * 150 + (300000 - 3 * sequence) / 768);
}

TEST_CASE("capacity: a step reads K and V of chosen tokens alone, and an indexer's keys for all") {
  ModelDescription model = heads(32, 8);
  model.layers[0].most_seen = 2048;
  model.layers[0].index_bytes = 256;
  constexpr uint64_t kToken = 8 * 256;  // in FP8
  const auto on = [&](int64_t context) {
    return plan(model, {}, {0, 1, 1, context}, DType::f8_e4m3, DType::bf16);
  };
  CHECK(on(32768).bytes_per_sequence == (kToken + 256) * 32768);
  CHECK(on(32768).step_bytes == kToken * 2048 + 256 * 32768);
  CHECK(on(1000).step_bytes == (kToken + 256) * 1000);
  CHECK(on(32768).gain ==
        doctest::Approx((2 * kToken * 2048 + 256 * 32768.0) / (kToken * 2048 + 256 * 32768.0)));
}

TEST_CASE("capacity: a state takes the same for any length and any cache") {
  ModelDescription model = model_with(4, 2, 64, 32, {0});
  model.layers.push_back({Mixing::recurrent});
  model.layers.back().state_bytes = 10000;
  const auto at = [&](int64_t tokens, DType dtype) {
    return plan(model, {0, 0}, {1000000, 1, 1, tokens}, dtype, DType::f16);
  };
  const uint64_t half = 2 * 2 * 96, fp8 = half / 2;  // per token, in the one layer with a cache
  CHECK(at(1, DType::f16).bytes_per_token == half);
  CHECK(at(1, DType::f16).bytes_per_sequence == half + 10000);
  CHECK(at(1, DType::f8_e4m3).bytes_per_sequence == fp8 + 10000);
  CHECK(at(1, DType::f8_e4m3).state_bytes == 10000);
  CHECK(at(1000, DType::f8_e4m3).bytes_per_sequence == 1000 * fp8 + 10000);
  CHECK(at(1000, DType::f8_e4m3).sequences == 1000000 / (1000 * fp8 + 10000));
  // An FP8 cache gains nothing for short sequences, and nearly half for long ones.
  CHECK(at(1, DType::f8_e4m3).gain == doctest::Approx((half + 10000.0) / (fp8 + 10000.0)));
  CHECK(at(1000, DType::f8_e4m3).gain ==
        doctest::Approx((1000.0 * half + 10000) / (1000.0 * fp8 + 10000)));
  CHECK(plan(model, {0, 0}, {0, 2, 1, 1}, DType::f16, DType::f16).state_bytes == 5000);
}

TEST_CASE("capacity: GPUs share weights and KV heads, and repeat heads when there are more") {
  CHECK(kv_heads_per_gpu(heads(32, 8), 4) == 2);
  CHECK(kv_heads_per_gpu(heads(32, 8), 8) == 1);
  CHECK(kv_heads_per_gpu(heads(32, 8), 16) == 1);
  CHECK(kv_heads_per_gpu(heads(32, 1), 8) == 1);
  const CachePlan sixteen = llama8b({kGiB, 16, 1, 1024}, DType::f8_e4m3);
  CHECK(sixteen.bytes_per_token == 65536 / 8);
  CHECK(sixteen.free_bytes == kGiB - 2 * 8030261248u / 16);
  CHECK(sixteen.step_bytes == kLlama8B.read / 16 + 1024 * 65536 / 8);
}

TEST_CASE("capacity: GPUs that cannot share the heads are refused") {
  const auto refusal = [](int64_t n_heads, int64_t n_kv_heads, int64_t tp) {
    return test::error_of([&] { kv_heads_per_gpu(heads(n_heads, n_kv_heads), tp); },
                          ErrorKind::usage);
  };
  CHECK(refusal(32, 8, 3) == "3 GPUs cannot share a model with 32 attention heads");
  CHECK(refusal(12, 3, 2) == "2 GPUs cannot share a model with 3 KV heads");
  CHECK(refusal(24, 4, 6) == "6 GPUs cannot share a model with 4 KV heads");
}

TEST_CASE("capacity: weights that do not fit leave room for nothing") {
  const CachePlan plan = llama8b({8 * kGiB, 1, 1, 8192}, DType::f8_e4m3);
  CHECK(plan.free_bytes == 0);
  CHECK(plan.sequences == 0);
  CHECK(plan.tokens == 0);
}

TEST_CASE("capacity: sizes beyond counting are refused") {
  const auto refusal = [](size_t n_layers) {
    constexpr int64_t kMost = int64_t{1} << 28;
    const ModelDescription model =
        model_with(kMost, kMost, kMost, kMost, std::vector<int64_t>(n_layers));
    return test::error_of([&] { plan(model, {}, {0, 1, 1, 1 << 30}, DType::f16, DType::f16); });
  };
  CHECK(refusal(1) ==
        "a cache of 288230376151711744 times 1073741824 bytes is larger than can be counted");
  CHECK(refusal(1000) == "a cache of more than 2^63 bytes is larger than can be counted");
}

TEST_CASE("capacity: a step reads no embedding that has an output matrix beside it") {
  const test::TempDir folder;
  test::TinyConfig config = test::tiny_config();
  test::write_tiny_checkpoint(folder / "untied", config);
  config.tied_embeddings = true;
  test::write_tiny_checkpoint(folder / "tied", config);
  const WeightBytes untied = weight_bytes(Checkpoint::open(folder / "untied"));
  const WeightBytes tied = weight_bytes(Checkpoint::open(folder / "tied"));
  uint64_t elements = 0;
  for (const test::TinyTensor& tensor : test::tiny_tensors(config))
    elements += tensor.values.size();
  CHECK(tied.all == 4 * elements);
  CHECK(tied.read == tied.all);
  CHECK(untied.all == tied.all + 4 * 64 * 32);
  CHECK(untied.read == tied.all);
  CHECK_FALSE(tied.experts);
}

}  // namespace
}  // namespace fp8kv
