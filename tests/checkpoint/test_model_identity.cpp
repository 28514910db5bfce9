// The contents of a model's identity, and the comparison of two identities.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <set>

#include <doctest/doctest.h>

#include "checkpoint/identity/model_identity.h"
#include "checkpoint/identity/sampled_rows.h"
#include "checkpoint/model/read_model_config.h"
#include "config/families/tensor_table.h"
#include "core/scales/compare_models.h"
#include "support/models/tiny_config.h"
#include "support/places.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Tensors = std::vector<test::TinyTensor>;

ModelIdentity identity_of(const fs::path& folder) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  return model_identity(checkpoint, read_model_config(checkpoint));
}

ModelIdentity identity_of(const test::TinyConfig& config, const test::TinyOptions& options = {}) {
  const test::TempDir temp;
  test::write_tiny_checkpoint(temp / "m", config, options);
  return identity_of(temp / "m");
}

// The identity of the tiny model after `edit` has changed its tensors.
ModelIdentity identity_after(const std::function<void(test::TinyTensor&)>& edit, int n_shards = 1,
                             const test::TinyConfig& config = test::tiny_config()) {
  const test::TempDir temp;
  test::write_tiny_checkpoint(temp / "m", config);
  Tensors tensors = test::tiny_tensors(config);
  for (test::TinyTensor& tensor : tensors) edit(tensor);
  if (n_shards > 1) fs::remove(temp / "m/model.safetensors");
  test::write_tiny_weights(temp / "m", tensors, config.dtype, n_shards);
  return identity_of(temp / "m");
}

ModelIdentity after_change_of(const std::string& name) {
  bool found = false;
  const ModelIdentity identity = identity_after([&](test::TinyTensor& tensor) {
    if (tensor.name != name) return;
    found = true;
    tensor.values.back() *= 1.5f;
  });
  CHECK(found);
  return identity;
}

ModelMatch match_of(const ModelIdentity& a, const ModelIdentity& b) {
  return compare_models(a, b).match;
}

// Writes a sparse file of `bytes`, whose header lists `tensors`.
void write_sparse(const fs::path& path, const std::vector<TensorEntry>& tensors, uint64_t bytes) {
  const std::string head = safetensors_head(tensors, {});
  std::ofstream(path, std::ios::binary) << head;
  fs::resize_file(path, head.size() + bytes);
}

// The system's counter of what this process has read from files.
uint64_t read_counter(const std::string& name) {
  std::ifstream in("/proc/self/io");
  for (std::string key; in >> key;) {
    uint64_t value = 0;
    in >> value;
    if (key == name) return value;
  }
  return 0;
}

uint64_t bytes_read() {
  return read_counter("rchar:");
}

// Checks that a sampled row costs at most one 4 KiB page of a cold file. A small matrix is read
// whole, because it has no more pages than sampled rows.
void check_rows_cost(const Checkpoint& checkpoint, const ModelConfig& config, uint64_t most_reads) {
  const uint64_t bytes = bytes_read(), reads = read_counter("syscr:");
  CHECK(sampled_rows(checkpoint, config).size() == static_cast<size_t>(config.n_layers()));
  const uint64_t taken = read_counter("syscr:") - reads;
  std::printf("sampled rows: %llu reads, %llu bytes\n", static_cast<unsigned long long>(taken),
              static_cast<unsigned long long>(bytes_read() - bytes));
  CHECK(taken <= most_reads);
  CHECK(bytes_read() - bytes <= most_reads * 4096);
}

// Measures the time and the bytes to identify a model of this shape.
void check_cost(const test::TinyConfig& shape, size_t n_layers, uint64_t most_reads) {
  const test::TempDir temp;
  temp.write("config.json", test::tiny_config_json(shape));
  std::vector<TensorEntry> tensors;
  uint64_t bytes = 0;
  const ModelConfig model = test::model_of(shape);
  const auto add = [&](const std::vector<ModelTensor>& list) {
    for (const ModelTensor& tensor : list) {
      const uint64_t size = static_cast<uint64_t>(tensor.shape.elements()) * 2;
      tensors.push_back({tensor.name, DType::bf16, tensor.shape, bytes, bytes + size});
      bytes += size;
    }
  };
  for (int64_t i = 0; i < model.n_layers(); ++i) add(layer_tensors(model, i));
  add(outer_tensors(model));
  write_sparse(temp / "model.safetensors", tensors, bytes);
  const Checkpoint checkpoint = Checkpoint::open(temp.path());
  const ModelConfig config = read_model_config(checkpoint);
  const uint64_t before = bytes_read();
  const auto start = std::chrono::steady_clock::now();
  const ModelIdentity identity = model_identity(checkpoint, config);
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::printf("identity of %.0f GB: %.1f ms, %llu bytes\n", static_cast<double>(bytes) / 1e9, ms,
              static_cast<unsigned long long>(bytes_read() - before));
  CHECK(bytes_read() - before <= 1'000'000);
  CHECK(bytes_read() - before >= 500'000);  // the identity is read, not skipped
  CHECK(identity.layers.size() == n_layers);
  check_rows_cost(checkpoint, config, most_reads);
}

}  // namespace

TEST_CASE("identity: every tensor that can reach K or V is in it, the others are its rest") {
  test::TinyConfig config = test::tiny_config();
  const ModelIdentity before = identity_of(config);
  const std::set<std::string> behind = {"model.layers.1.self_attn.q_proj.weight",
                                        "model.layers.1.self_attn.o_proj.weight",
                                        "model.layers.1.post_attention_layernorm.weight",
                                        "model.layers.1.mlp.gate_proj.weight",
                                        "model.layers.1.mlp.up_proj.weight",
                                        "model.layers.1.mlp.down_proj.weight",
                                        "model.norm.weight",
                                        "lm_head.weight"};
  for (const test::TinyTensor& tensor : test::tiny_tensors(config)) {
    CAPTURE(tensor.name);
    const ModelIdentity after = after_change_of(tensor.name);
    const bool is_behind = behind.contains(tensor.name);
    CHECK((fingerprint_of(after) == fingerprint_of(before)) == is_behind);
    CHECK((after.rest == before.rest) == !is_behind);
    CHECK(match_of(before, after) == (is_behind ? ModelMatch::same_kv : ModelMatch::fine_tune));
    if (is_behind) continue;
    const ModelComparison comparison = compare_models(before, after);
    CHECK(comparison.embedding == (tensor.name == "model.embed_tokens.weight"));
    const std::vector<size_t> layer =
        tensor.name.starts_with("model.layers.0.")   ? std::vector{size_t{0}}
        : tensor.name.starts_with("model.layers.1.") ? std::vector{size_t{1}}
                                                     : std::vector<size_t>{};
    CHECK(comparison.layers == layer);
  }
}

TEST_CASE("identity: another number of the config is another model, and is named") {
  const ModelIdentity before = identity_of(test::tiny_config());
  const auto difference = [&](const std::function<void(test::TinyConfig&)>& edit) {
    test::TinyConfig config = test::tiny_config();
    edit(config);
    const ModelIdentity after = identity_of(config);
    CHECK(match_of(before, after) == ModelMatch::other);
    CHECK(fingerprint_of(after) != fingerprint_of(before));
    return difference_text(compare_models(before, after));
  };
  CHECK(difference([](auto& config) { config.rope.theta = 500; }) ==
        "rope_theta is 500 instead of 10000");
  CHECK(difference([](auto& config) { config.norm_eps = 1e-6; }) ==
        "rms_norm_eps is 1e-06 instead of 1e-05");
  CHECK(difference([](auto& config) { config.hidden_dim = 64; }) ==
        "intermediate_size is 64 instead of 48");
  CHECK(difference([](auto& config) { config.dtype = DType::bf16; }) ==
        "torch_dtype is bfloat16 instead of float32");
  CHECK(difference([](auto& config) { config.n_layers = 3; }) ==
        "num_hidden_layers is 3 instead of 2");
  CHECK(difference([](auto& config) {
          config.rope.scaling = RopeScaling::linear, config.rope.factor = 2;
        }) == "factor is 2 instead of not set and rope_type is linear instead of not set");
  CHECK(difference([](auto& config) {
          config.rope.theta = 500, config.norm_eps = 1e-6, config.hidden_dim = 64;
          config.dtype = DType::bf16;
        }) ==
        "intermediate_size is 64 instead of 48, rms_norm_eps is 1e-06 instead of 1e-05, rope_theta "
        "is 500 instead of 10000 and 1 other number");
}

TEST_CASE("identity: what changes no K and V changes nothing but the rest") {
  const ModelIdentity before = identity_of(test::tiny_config());
  CHECK(identity_of(test::tiny_config(), {.n_shards = 3}) == before);
  CHECK(identity_of(test::tiny_config(), {.new_spelling = true}) == before);
  test::TinyConfig longer = test::tiny_config();
  longer.max_seq_len = 4096;
  longer.eos_ids = {1, 2};
  longer.bos_id = 3;
  CHECK(identity_of(longer) == before);
}

TEST_CASE("identity: a matrix that is stored under either name is the same embedding") {
  test::TinyConfig tied = test::tiny_config();
  tied.tied_embeddings = true;
  const auto as_lm_head = [](test::TinyTensor& tensor) {
    if (tensor.name == "model.embed_tokens.weight") tensor.name = "lm_head.weight";
  };
  CHECK(identity_of(tied) == identity_after(as_lm_head, 1, tied));
}

TEST_CASE("identity: says how far the weights of a fine-tune moved, and where") {
  const ModelIdentity before = identity_of(test::tiny_config());
  // Scales all weights of a layer by one factor, which is then that layer's relative movement.
  const auto scaled = [](float layer_0, float layer_1) {
    return identity_after([=](test::TinyTensor& tensor) {
      const bool first = tensor.name.starts_with("model.layers.0.");
      if (!first && !tensor.name.starts_with("model.layers.1.")) return;
      for (float& value : tensor.values) value *= first ? layer_0 : layer_1;
    });
  };
  const ModelComparison tuned = compare_models(before, scaled(1.01f, 1.02f));
  CHECK(tuned.match == ModelMatch::fine_tune);
  CHECK(tuned.moved == doctest::Approx(0.02).epsilon(1e-4));
  CHECK(difference_text(tuned) ==
        "the weights of layers 0 and 1 are others, moved by up to 2.00 % of their size (layer 1)");
  CHECK(compare_models(before, scaled(1.0f, 1.29f)).match == ModelMatch::fine_tune);
  const ModelComparison far = compare_models(before, scaled(1.31f, 1.0f));
  CHECK(far.match == ModelMatch::other);
  CHECK(difference_text(far) ==
        "the weights of layer 0 are others, moved by up to 31 % of their size (layer 0)");
}

TEST_CASE("identity: a model that was trained apart is another, in each dtype") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    test::TinyConfig config = test::tiny_config();
    config.dtype = dtype;
    const ModelComparison comparison =
        compare_models(identity_of(config), identity_of(config, {.seed = 2}));
    CHECK(comparison.match == ModelMatch::other);
    CHECK(comparison.moved > 0.8);
    CHECK(comparison.moved <= std::sqrt(2.0));
    CHECK(comparison.layers == std::vector<size_t>{0, 1});
    CHECK(comparison.embedding);
  }
}

TEST_CASE("identity: the movement in half precision is that of the numbers") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    test::TinyConfig config = test::tiny_config();
    config.dtype = dtype;
    const ModelIdentity half = identity_after(
        [](test::TinyTensor& tensor) {
          if (!tensor.name.starts_with("model.layers.0.")) return;
          for (float& value : tensor.values) value *= 0.875f;
        },
        1, config);
    // 7/8 of a value rounds by at most 2^-9 of it (bfloat16).
    CHECK(compare_models(identity_of(config), half).moved == doctest::Approx(0.125).epsilon(0.02));
  }
}

// A Python script computed these from docs/scale-file.md.
TEST_CASE("identity: real models have the fingerprints computed elsewhere") {
  CHECK(fingerprint_of(identity_of(test::source_dir() / "datasets" / "demo")) ==
        "kv-v2:1031a00f173af9db554aab2a8fab77fcd471a0a948f87e1e0e4bec5755aa607b");
  for (const auto& [name, fingerprint] :
       {std::pair("stories260K-hf-f32",
                  "kv-v2:9c6bab59505cdbbd9f6c14cfe1e09f8d6922dd25a988f3d24731554b9fdc4f1a"),
        {"stories260K-hf-bf16-sharded",
         "kv-v2:920583c730880bc4777cc26f93a06b499908a281f998be6219086aed3abf0b2d"},
        {"stories260K-hf-f16-untied",
         "kv-v2:a66c53f8a45a9fd41ac098394e18441ac422d83e2c823c36ff385ba0bb4742e4"}}) {
    const auto path = test::shared_data(cat("models/", name));
    if (!path) return;
    CHECK(fingerprint_of(identity_of(*path)) == fingerprint);
  }
}

TEST_CASE("identity: every expert counts, for the layers after its own") {
  test::TinyConfig config = test::tiny_config("Qwen3MoeForCausalLM");
  config.n_layers = 3;
  const ModelIdentity before = identity_of(config);
  // Changes all three matrices of an expert. One of them is sampled.
  const auto after_change_of_expert = [&](const std::string& expert) {
    return identity_after(
        [&](test::TinyTensor& tensor) {
          if (tensor.name.find(expert) == std::string::npos) return;
          for (float& value : tensor.values) value *= 1.5f;
        },
        1, config);
  };
  for (int expert = 0; expert < 6; ++expert) {
    const ModelIdentity after = after_change_of_expert(cat("layers.0.mlp.experts.", expert, "."));
    CHECK(compare_models(before, after).layers == std::vector<size_t>{0});
  }
  // No K or V depends on the experts of the last layer.
  const ModelIdentity last = after_change_of_expert("layers.2.mlp.experts.3.");
  CHECK(compare_models(before, last).layers.empty());
  CHECK(last.rest != before.rest);
}

TEST_CASE("identity: another number of experts for a token is another model") {
  test::TinyConfig config = test::tiny_config("Qwen3MoeForCausalLM");
  const ModelIdentity before = identity_of(config);
  config.experts->routing.per_token = 3;
  CHECK(match_of(before, identity_of(config)) == ModelMatch::other);
  config.experts->routing = {.per_token = 2, .normalise = false};
  CHECK(match_of(before, identity_of(config)) == ModelMatch::other);
}

// Qwen3-30B-A3B has 18,432 matrices of experts.
TEST_CASE("identity: a model of thousands of experts costs at most a megabyte") {
  test::TinyConfig shape = test::tiny_config("Qwen3MoeForCausalLM");
  shape.dtype = DType::bf16;
  shape.n_layers = 48;
  shape.dim = 2048;
  shape.n_heads = 32;
  shape.n_kv_heads = 4;
  shape.head_dim = 128;
  shape.vocab_size = 151936;
  shape.dense_layers = {};
  shape.experts->count = 128;
  shape.experts->hidden_dim = 768;
  shape.experts->routing.per_token = 8;
  check_cost(shape, 48, 32768 + 18432 + 2000);
}

TEST_CASE("identity: a model of 140 GB costs at most a megabyte") {
  test::TinyConfig shape = test::tiny_config();
  shape.dtype = DType::bf16;
  shape.n_layers = 80;
  shape.dim = 8192;
  shape.hidden_dim = 28672;
  shape.n_heads = 64;
  shape.n_kv_heads = 8;
  shape.head_dim = 128;
  shape.vocab_size = 128256;
  check_cost(shape, 80, 32768 + 2000);
}

}  // namespace fp8kv
