#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "checkpoint/model/read_model_config.h"
#include "support/expect_error.h"
#include "support/models/tiny_config.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using test::through_folder;

// A tiny model. Tests change its weights, config or files before it is read.
struct TinyFolder {
  explicit TinyFolder(const test::TinyConfig& config = test::tiny_config())
      : tensors(test::tiny_tensors(config)), path(temp / "model"), name(quote(path.string())) {
    test::write_tiny_checkpoint(path, config);
  }
  void set(const std::string& key, const std::string& value) const {
    const std::string text = test::read_file(path / "config.json");
    std::ofstream(path / "config.json") << json_with_member(text, key, value);
  }
  void remove(const std::string& tensor) {
    std::erase_if(tensors, [&](const test::TinyTensor& t) { return t.name == tensor; });
    write();
  }
  void add(const std::string& tensor, const Shape& shape) {
    tensors.push_back({tensor, shape, std::vector<float>(size_t(shape.elements()))});
    write();
  }
  std::vector<float>& values(const std::string& tensor) {
    for (test::TinyTensor& each : tensors) {
      if (each.name == tensor) return each.values;
    }
    FAIL("no such tensor");
    return tensors[0].values;
  }
  void write() const { test::write_tiny_weights(path, tensors, DType::f32); }
  ModelConfig read() const { return read_model_config(Checkpoint::open(path)); }
  std::string error() const {
    return test::error_of([this] { read(); });
  }

  test::TempDir temp;
  std::vector<test::TinyTensor> tensors;
  fs::path path;
  std::string name;
};

}  // namespace

TEST_CASE("read_model_config: tied embeddings may be stored under either name") {
  test::TinyConfig config = test::tiny_config();
  config.tied_embeddings = true;
  CHECK(through_folder(config).tied_embeddings);
  CHECK(through_folder(config, {.tied_as_lm_head = true}).tied_embeddings);
}

TEST_CASE("read_model_config: embeddings that the config ties are tied where both are stored") {
  TinyFolder model;
  CHECK_FALSE(model.read().tied_embeddings);
  const auto embedding = model.values("model.embed_tokens.weight");
  model.values("lm_head.weight") = embedding;
  model.write();
  model.set("tie_word_embeddings", "true");
  CHECK(model.read().tied_embeddings);
  CHECK(model.read().vocab_size * model.read().dim == int64_t(embedding.size()));
}

// transformers 5.23 unties the matrices, older versions and vLLM drop lm_head.
TEST_CASE("read_model_config: of tied matrices that are both stored and differ, none is chosen") {
  TinyFolder model;
  model.values("lm_head.weight") = model.values("model.embed_tokens.weight");
  model.values("lm_head.weight").back() += 1;
  model.write();
  CHECK_FALSE(model.read().tied_embeddings);
  model.set("tie_word_embeddings", "true");
  CHECK(model.error() == cat(model.name,
                             ": tensor 'lm_head.weight': differs from 'model.embed_tokens.weight', "
                             "though config.json has \"tie_word_embeddings\": true"));
  CHECK(test::help_of([&] { model.read(); }) ==
        "set \"tie_word_embeddings\": false in config.json where lm_head counts, else leave it out "
        "of the weights: runtimes differ in which they take");
}

TEST_CASE("read_model_config: an untied model needs both matrices, a tied one needs one") {
  TinyFolder model;
  model.remove("lm_head.weight");
  CHECK(model.error() == cat(model.name,
                             ": tensor 'lm_head.weight': is missing, and config.json does not say "
                             "that it is the embeddings"));
  CHECK(test::help_of([&] { model.read(); }) ==
        "if it is, set \"tie_word_embeddings\": true in config.json");
  model.set("tie_word_embeddings", "true");
  CHECK(model.read().tied_embeddings);
  model.remove("model.embed_tokens.weight");
  CHECK(model.error() == cat(model.name, ": has no tensor 'model.embed_tokens.weight'"));
}

TEST_CASE("read_model_config: the dtype is that of the weights") {
  const TinyFolder model;
  model.set("torch_dtype", R"("float16")");
  CHECK(model.read().dtype == DType::f32);
}

TEST_CASE("read_model_config: weights of another or of two dtypes are refused") {
  const TinyFolder model;
  const std::byte data[4 * 64 * 48] = {};
  const auto write = [&](DType q, DType norm) {
    std::vector<TensorToWrite> items;
    for (const test::TinyTensor& tensor : model.tensors) {
      const bool is_q = tensor.name.ends_with("q_proj.weight");
      const bool is_norm = tensor.name == "model.norm.weight";
      const DType dtype = is_q ? q : is_norm ? norm : DType::bf16;
      items.push_back({tensor.name, ConstTensorView(data, dtype, tensor.shape)});
    }
    model.temp.write("model/model.safetensors", safetensors_bytes(items, {}));
  };
  write(DType::f8_e4m3, DType::bf16);
  CHECK(model.error() == cat(model.name,
                             ": tensor 'model.layers.0.self_attn.q_proj.weight': is F8_E4M3 "
                             "without a scale beside it, but config.json has no "
                             "quantization_config"));
  write(DType::bf16, DType::f32);
  CHECK(model.error() == cat(model.name,
                             ": tensor 'model.norm.weight': is F32, but "
                             "'model.layers.0.self_attn.q_proj.weight' is BF16"));
  write(DType::bf16, DType::bf16);
  CHECK(model.read().dtype == DType::bf16);
}

TEST_CASE(
    "read_model_config: weights that are not quantised, though a config says so, are refused") {
  const TinyFolder model;
  const auto refused = [&](const char* block) {
    model.set("quantization_config", block);
    return model.error();
  };
  const std::string config = quote((model.path / "config.json").string());
  const std::string refusal = ", but all of them are F32, F16 or BF16";
  CHECK(refused(R"({"quant_method": "gptq", "bits": 4})") ==
        cat(config, ": quantization_config: the weights are quantised (quant_method 'gptq')",
            refusal));
  CHECK(refused(R"({"quant_method": "fp8", "kv_cache_scheme": "static"})") ==
        cat(config, ": quantization_config: the weights are quantised (quant_method 'fp8')",
            refusal));
  CHECK(refused(R"({"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups":
                    {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8}}}})") ==
        cat(config, ": quantization_config.config_groups.group_0: quantises weights", refusal));
  CHECK(refused(R"({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8",
                    "kv_cache_quant_algo": "FP8"}})") ==
        cat(config, ": quantization_config: quantises the weights with modelopt", refusal));
  CHECK(test::help_of([&] { model.read(); }) ==
        "take the quantization_config out of config.json where the weights are not quantised");
}

TEST_CASE(
    "read_model_config: ModelOpt's own file may be the only one to say that weights are "
    "quantised") {
  const TinyFolder model;
  const auto file = model.temp.write("model/hf_quant_config.json",
                                     R"({"producer": {"name": "modelopt", "version": "0.37.0"},
                                         "quantization": {"quant_algo": "FP8"}})");
  CHECK(model.error() == cat(quote(file.string()),
                             ": quantises the weights with modelopt, but all of them are F32, F16 "
                             "or BF16"));
  model.temp.write("model/hf_quant_config.json",
                   R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}})");
  CHECK(model.read().n_layers() == 2);
}

TEST_CASE("read_model_config: a quantization_config about the KV cache alone is no hindrance") {
  const TinyFolder model;
  const auto accepted = [&](const std::string& block) {
    model.set("quantization_config", block);
    return model.read().n_layers() == 2;
  };
  const std::string groups = R"("quant_method": "compressed-tensors", "config_groups": {"group_0":
      {"targets": ["Linear"], "weights": {"num_bits": 8}}}, "kv_cache_scheme": {"num_bits": 8})";
  CHECK(accepted(R"({"quant_method": "compressed-tensors", "config_groups": {}, "ignore": [],
                     "kv_cache_scheme": {"num_bits": 8, "type": "float"}})"));
  CHECK(accepted(R"({"quant_method": "compressed-tensors", "config_groups": {"group_0":
                     {"targets": ["Linear"], "weights": null, "input_activations": null}}})"));
  CHECK(accepted("{" + groups + R"(, "ignore": ["re:.*"]})"));
  CHECK(accepted(R"({"quant_method": "modelopt", "quantization": {"quant_algo": null,
                     "kv_cache_quant_algo": "FP8"}})"));

  std::string every = R"("lm_head")";
  for (const char* layer : {"0", "1"}) {
    for (const char* linear :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
          "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      every += cat(R"(, "model.layers.)", layer, ".", linear, "\"");
    }
  }
  CHECK(accepted(cat("{", groups, R"(, "ignore": [)", every, "]}")));
  const std::string but_one = every.substr(0, every.rfind(','));
  model.set("quantization_config", cat("{", groups, R"(, "ignore": [)", but_one, "]}"));
  CHECK(model.error() == cat(quote((model.path / "config.json").string()),
                             ": quantization_config.config_groups.group_0: quantises weights, but "
                             "all of them are F32, F16 or BF16"));
}

TEST_CASE("read_model_config: every tensor must be there with its shape") {
  TinyFolder model;
  model.set("num_key_value_heads", "4");
  CHECK(model.error() == cat(model.name,
                             ": tensor 'model.layers.0.self_attn.k_proj.weight': has the shape "
                             "[16, 32], expected [32, 32] from config.json"));
  model.set("num_key_value_heads", "2");
  model.set("vocab_size", "65");
  CHECK(model.error() == cat(model.name,
                             ": tensor 'model.embed_tokens.weight': has the shape [64, 32], "
                             "expected [65, 32] from config.json"));
  model.set("vocab_size", "64");
  model.remove("model.layers.1.mlp.up_proj.weight");
  CHECK(model.error() == cat(model.name,
                             ": has no tensor 'model.layers.1.mlp.up_proj.weight' (did you mean "
                             "'model.layers.0.mlp.up_proj.weight'?)"));
}

TEST_CASE("read_model_config: weights of the norms of heads are asked for by name and shape") {
  TinyFolder model(test::tiny_config("Qwen3ForCausalLM"));
  CHECK(model.read().block.qk_norm == QkNorm::per_head);
  const std::string k_norm = "model.layers.1.self_attn.k_norm.weight";
  model.remove(k_norm);
  CHECK(model.error() == cat(model.name, ": has no tensor '", k_norm,
                             "' (did you mean 'model.layers.0.self_attn.k_norm.weight'?)"));
  model.add(k_norm, {16});
  CHECK(model.error() == cat(model.name, ": tensor '", k_norm,
                             "': has the shape [16], expected [8] from config.json"));
}

TEST_CASE("read_model_config: weights that the model has no use for are refused, scales are not") {
  TinyFolder model;
  model.add("model.layers.0.self_attn.k_scale", {});
  model.add("model.layers.0.self_attn.rotary_emb.inv_freq", {4});
  model.add("score.weight", {1, 32});
  CHECK(model.read().n_layers() == 2);
  model.add("model.layers.0.self_attn.q_norm.weight", {8});
  CHECK(model.error() == cat(model.name,
                             ": tensor 'model.layers.0.self_attn.q_norm.weight': is not a part of "
                             "LlamaForCausalLM with this config.json"));
  model.remove("model.layers.0.self_attn.q_norm.weight");
  model.set("num_hidden_layers", "1");
  CHECK(model.error() == cat(model.name,
                             ": tensor 'model.layers.1.input_layernorm.weight': is not a part of "
                             "LlamaForCausalLM with this config.json"));
}

TEST_CASE("read_model_config: what changes values beside the weights is refused") {
  TinyFolder model;
  const std::string tensor = "model.layers.0.self_attn.o_proj.pre_quant_scale";
  model.add(tensor, {32});
  CHECK(model.error() == cat(model.name, ": tensor '", tensor,
                             "': multiplies what the matrix is given, which is not computed here"));
  model.remove(tensor);
  model.set("quantization_config",
            R"({"quant_method": "compressed-tensors", "kv_cache_scheme": null, "transform_config":
            {"config_groups": {"R3": {"apply": [{"location": "k_cache"}]}}}})");
  CHECK(model.error() ==
        cat("'", (model.path / "config.json").string(),
            "': quantization_config.transform_config.config_groups.R3.apply[0]: changes values at "
            "the location 'k_cache' while the model runs, which is not computed here"));
}

TEST_CASE("read_model_config: generation_config.json overrules the end tokens") {
  const TinyFolder model;
  model.temp.write("model/generation_config.json", R"({"eos_token_id": [3, 4]})");
  CHECK(model.read().eos_ids == std::vector<int32_t>{3, 4});
  model.temp.write("model/generation_config.json", R"({"bos_token_id": 9})");
  CHECK(model.read().eos_ids == std::vector<int32_t>{2});
}

TEST_CASE("read_model_config: reads the real models") {
  for (const char* name :
       {"stories260K-hf-f32", "stories260K-hf-bf16-sharded", "stories260K-hf-f16-untied"}) {
    const auto folder = test::shared_data(cat("models/", name));
    if (!folder) return;
    CAPTURE(name);
    const ModelConfig config = read_model_config(Checkpoint::open(*folder));
    CHECK(config.n_layers() == 5);
    CHECK(config.n_kv_heads() == 4);
    CHECK(config.tied_embeddings == !std::string(name).ends_with("untied"));
    CHECK(config.eos_ids == std::vector<int32_t>{2});
  }
}

}  // namespace fp8kv
