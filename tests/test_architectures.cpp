#include <fstream>

#include <doctest/doctest.h>

#include "io/architectures.h"
#include "support/expect_error.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "support/tiny_checkpoint.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSupported =
    "supported are LlamaForCausalLM (Llama 1, 2, 3.x and what shares their form), "
    "MistralForCausalLM (Mistral, with or without sliding window), Qwen2ForCausalLM (Qwen 2, 2.5) "
    "and Qwen3ForCausalLM (Qwen 3, dense)";

ModelConfig parse(const std::string& text) {
  return parse_model_config(Json::parse(text, "config.json"));
}

std::string error_of(const std::string& text) {
  return test::error_of([&] { parse(text); });
}

template <typename Work>
std::string help_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.help();
  }
  return "";
}

ModelConfig tiny(const std::string& architecture) {
  ModelConfig config = test::tiny_config();
  config.architecture = architecture;
  if (architecture == "MistralForCausalLM") config.model_type = "mistral";
  if (architecture == "Qwen2ForCausalLM") {
    config.model_type = "qwen2";
    config.qkv_bias = true;
  }
  if (architecture == "Qwen3ForCausalLM") {
    config.model_type = "qwen3";
    config.qk_norm = true;
  }
  return config;
}

// The tiny config.json of an architecture with one member set to a JSON value; null removes it.
std::string with(const std::string& architecture, const std::string& key,
                 const std::string& value) {
  return json_with_member(test::tiny_config_json(tiny(architecture)), key, value);
}

std::string llama_with(const std::string& key, const std::string& value) {
  return with("LlamaForCausalLM", key, value);
}

void check_equal(const ModelConfig& a, const ModelConfig& b) {
  CHECK(a.architecture == b.architecture);
  CHECK(a.model_type == b.model_type);
  CHECK(a.dtype == b.dtype);
  CHECK(a.dim == b.dim);
  CHECK(a.hidden_dim == b.hidden_dim);
  CHECK(a.head_dim == b.head_dim);
  CHECK(a.n_layers == b.n_layers);
  CHECK(a.n_heads == b.n_heads);
  CHECK(a.n_kv_heads == b.n_kv_heads);
  CHECK(a.vocab_size == b.vocab_size);
  CHECK(a.max_seq_len == b.max_seq_len);
  CHECK(a.norm_eps == b.norm_eps);
  CHECK(a.rope.theta == b.rope.theta);
  CHECK(a.rope.scaling == b.rope.scaling);
  CHECK(a.rope.factor == b.rope.factor);
  CHECK(a.rope.low_freq_factor == b.rope.low_freq_factor);
  CHECK(a.rope.high_freq_factor == b.rope.high_freq_factor);
  CHECK(a.rope.original_context == b.rope.original_context);
  CHECK(a.rope.beta_fast == b.rope.beta_fast);
  CHECK(a.rope.beta_slow == b.rope.beta_slow);
  CHECK(a.rope.truncate == b.rope.truncate);
  CHECK(a.rope.attention_factor == b.rope.attention_factor);
  CHECK(a.qkv_bias == b.qkv_bias);
  CHECK(a.qk_norm == b.qk_norm);
  CHECK(a.o_bias == b.o_bias);
  CHECK(a.mlp_bias == b.mlp_bias);
  CHECK(a.tied_embeddings == b.tied_embeddings);
  CHECK(a.window == b.window);
  CHECK(a.window_layers == b.window_layers);
  CHECK(a.eos_ids == b.eos_ids);
  CHECK(a.bos_id == b.bos_id);
}

// Writes a checkpoint, reads its config back.
ModelConfig through_folder(const ModelConfig& config, const test::TinyOptions& options = {}) {
  const test::TempDir temp;
  test::write_tiny_checkpoint(temp / "model", config, options);
  return read_model_config(Checkpoint::open(temp / "model"));
}

// A tiny model whose weights, config or files a test changes before it is read.
struct TinyFolder {
  explicit TinyFolder(const ModelConfig& config = test::tiny_config())
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

TEST_CASE("architectures: every field goes through config.json, in both spellings") {
  for (const bool new_spelling : {false, true}) {
    CAPTURE(new_spelling);
    ModelConfig llama = tiny("LlamaForCausalLM");
    llama.dtype = DType::bf16;
    llama.head_dim = 16;  // not dim / n_heads
    llama.norm_eps = 1e-6;
    llama.qkv_bias = llama.o_bias = llama.mlp_bias = true;
    llama.tied_embeddings = true;
    llama.eos_ids = {2, 5, 7};
    llama.rope = {500000.0, RopeScaling::llama3, 32.0, 1.5, 4.5, 64};
    check_equal(through_folder(llama, {.new_spelling = new_spelling}), llama);

    ModelConfig mistral = tiny("MistralForCausalLM");
    mistral.dtype = DType::f16;
    mistral.window = 7;
    mistral.n_kv_heads = 1;
    mistral.bos_id = -1;
    mistral.rope.theta = 1e6;
    check_equal(through_folder(mistral, {.n_shards = 2, .new_spelling = new_spelling}), mistral);

    ModelConfig qwen = tiny("Qwen2ForCausalLM");
    qwen.n_layers = 3;
    qwen.n_kv_heads = 4;
    qwen.window = 9;
    qwen.window_layers = {false, true, false};
    qwen.rope.scaling = RopeScaling::linear;
    qwen.rope.factor = 4;
    check_equal(through_folder(qwen, {.new_spelling = new_spelling}), qwen);

    ModelConfig qwen3 = tiny("Qwen3ForCausalLM");
    qwen3.qkv_bias = qwen3.o_bias = true;
    qwen3.window = 5;
    qwen3.window_layers = {true, false};
    qwen3.rope = {1e6, RopeScaling::yarn, 2, 1, 4, 64, 16, 2, false, 1.25};
    check_equal(through_folder(qwen3, {.new_spelling = new_spelling}), qwen3);
  }
}

TEST_CASE("architectures: reads the config.json of Llama 3.1 8B") {
  const ModelConfig config = parse(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu",
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
    "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 128256})");
  CHECK(config.dtype == DType::bf16);
  CHECK(config.head_dim == 128);
  CHECK(config.n_kv_heads == 8);
  CHECK(config.max_seq_len == 131072);
  CHECK(config.rope.theta == 500000.0);
  CHECK(config.rope.scaling == RopeScaling::llama3);
  CHECK(config.rope.factor == 8.0);
  CHECK(config.rope.original_context == 8192);
  CHECK(config.eos_ids == std::vector<int32_t>{128001, 128008, 128009});
  CHECK(config.bos_id == 128000);
  CHECK(config.window == 0);
}

TEST_CASE("architectures: reads the config.json of Llama 1, which lacks the newer keys") {
  const ModelConfig config = parse(R"({
    "architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
    "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 11008,
    "initializer_range": 0.02, "max_position_embeddings": 2048, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "pad_token_id": 0, "rms_norm_eps": 1e-06,
    "torch_dtype": "float16", "use_cache": true, "vocab_size": 32000})");
  CHECK(config.n_kv_heads == 32);
  CHECK(config.rope.theta == 10000.0);
  CHECK(config.rope.scaling == RopeScaling::none);
  CHECK_FALSE(config.tied_embeddings);
}

TEST_CASE("architectures: reads the config.json of Qwen2.5 7B, whose window is switched off") {
  const ModelConfig config = parse(R"({
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
    "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944,
    "max_position_embeddings": 32768, "max_window_layers": 28, "model_type": "qwen2",
    "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_sliding_window": false,
    "vocab_size": 152064})");
  CHECK(config.qkv_bias);
  CHECK_FALSE(config.o_bias);
  CHECK(config.head_dim == 128);
  CHECK(config.window == 0);
  CHECK(config.window_layers.empty());
}

TEST_CASE("architectures: reads the config.json of Qwen3 0.6B, whose heads are normalised") {
  const ModelConfig config = parse(R"({
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
    "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true,
    "use_sliding_window": false, "vocab_size": 151936})");
  CHECK(config.qk_norm);
  CHECK_FALSE(config.qkv_bias);
  CHECK_FALSE(config.o_bias);
  CHECK(config.head_dim == 128);
  CHECK(config.tied_embeddings);
  CHECK(config.window == 0);
}

// Keys and order as transformers 5.23.0 saves Qwen2Config(use_sliding_window=True, ...).
TEST_CASE("architectures: reads what transformers 5 writes") {
  const ModelConfig config = parse(R"({
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": null,
    "dtype": "float16", "eos_token_id": null, "hidden_act": "silu", "hidden_size": 64,
    "initializer_range": 0.02, "intermediate_size": 128,
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
    "max_position_embeddings": 32768, "max_window_layers": 1, "model_type": "qwen2",
    "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2,
    "pad_token_id": null, "rms_norm_eps": 1e-06,
    "rope_parameters": {"rope_theta": 20000.0, "rope_type": "default"}, "sliding_window": 4096,
    "tie_word_embeddings": false, "transformers_version": "5.23.0", "use_cache": true,
    "use_sliding_window": true, "vocab_size": 151936})");
  CHECK(config.dtype == DType::f16);
  CHECK(config.rope.theta == 20000.0);
  CHECK(config.window == 4096);
  CHECK(config.window_layers == std::vector<bool>{false, true, true});
  CHECK(config.layer_window(0) == 0);
  CHECK(config.layer_window(1) == 4096);
  CHECK(config.eos_ids.empty());
  CHECK(config.bos_id == -1);
}

TEST_CASE("architectures: the window of Qwen2 begins at max_window_layers") {
  ModelConfig qwen = tiny("Qwen2ForCausalLM");
  qwen.n_layers = 3;
  qwen.window = 8;
  const std::string text = test::tiny_config_json(qwen);
  const auto from = [&](const char* first) {
    return parse(json_with_member(text, "max_window_layers", first));
  };
  CHECK(from("0").window == 8);
  CHECK(from("0").window_layers.empty());
  CHECK(from("2").window_layers == std::vector<bool>{false, false, true});
  CHECK(from("3").window == 0);
  CHECK(from("3").window_layers.empty());
}

TEST_CASE("architectures: a window that contradicts itself is refused") {
  const std::string qwen = test::tiny_config_json(tiny("Qwen2ForCausalLM"));
  const auto with_types = [](const std::string& text, const char* types) {
    return json_with_member(text, "layer_types", types);
  };
  CHECK(error_of(with_types(qwen, R"(["full_attention"])")) ==
        R"(config.json: layer_types: is ["full_attention"], expected an array of 2 layer types)");
  CHECK(error_of(with_types(qwen, R"(["full_attention", "linear_attention"])")) ==
        "config.json: layer_types[1]: the layer type 'linear_attention' is not supported");
  CHECK(error_of(with_types(qwen, R"(["full_attention", "sliding_attention"])")) ==
        "config.json: layer_types: has sliding_attention, but use_sliding_window is not true");
  CHECK(error_of(with_types(json_with_member(qwen, "use_sliding_window", "true"),
                            R"(["full_attention", "sliding_attention"])")) ==
        "config.json: layer_types: has sliding_attention, but sliding_window is not given");
  CHECK(error_of(with("MistralForCausalLM", "sliding_window", "0")) ==
        "config.json: sliding_window: is 0, expected 1 to 2147483647");
  CHECK(error_of(with_types(with("MistralForCausalLM", "sliding_window", "4"),
                            R"(["full_attention", "sliding_attention"])")) ==
        "config.json: layer_types: does not fit sliding_window, which is one for all layers of "
        "MistralForCausalLM");
  CHECK(error_of(R"({"architectures": ["MistralForCausalLM"], "num_hidden_layers": 1,
                     "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 8,
                     "vocab_size": 8, "max_position_embeddings": 8, "rms_norm_eps": 1e-5})") ==
        "config.json: the key 'sliding_window' is missing");
}

TEST_CASE("architectures: an unknown one is refused with the list of the known") {
  const auto refused = [](const char* value) {
    return error_of(llama_with("architectures", value));
  };
  CHECK(refused(R"(["Qwen3MoeForCausalLM"])") ==
        "config.json: architectures: 'Qwen3MoeForCausalLM' is not supported");
  CHECK(refused(R"(["LLaMAForCausalLM"])") ==
        "config.json: architectures: 'LLaMAForCausalLM' is not supported (did you mean "
        "'LlamaForCausalLM'?)");
  CHECK(refused("[]") == "config.json: names no architecture under 'architectures'");
  CHECK(refused("null") == "config.json: names no architecture under 'architectures'");
  CHECK(refused("[1]") == "config.json: architectures[0]: is a number (1), expected a string");
  CHECK(help_of([] { parse(llama_with("architectures", R"(["Qwen3MoeForCausalLM"])")); }) ==
        kSupported);
  CHECK(error_of(json_with_member(llama_with("architectures", R"(["BaichuanForCausalLM"])"),
                                  "auto_map", R"({"AutoConfig": "x"})")) ==
        "config.json: architectures: 'BaichuanForCausalLM' is not supported, and it brings code "
        "of its own (auto_map), which is never run here");
}

TEST_CASE("architectures: impossible dimensions are refused by key") {
  CHECK(error_of(llama_with("hidden_size", "0")) ==
        "config.json: hidden_size: is 0, expected 1 to 268435456");
  CHECK(error_of(llama_with("num_hidden_layers", "-1")) ==
        "config.json: num_hidden_layers: is -1, expected 1 to 65536");
  CHECK(error_of(llama_with("vocab_size", "4611686018427387904")) ==
        "config.json: vocab_size: is 4611686018427387904, expected 1 to 268435456");
  CHECK(error_of(llama_with("intermediate_size", "1.5")) ==
        "config.json: intermediate_size: is a number (1.5), expected an integer");
  CHECK(error_of(R"({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1,
                     "num_attention_heads": 2, "hidden_size": 8})") ==
        "config.json: the key 'intermediate_size' is missing");
  CHECK(error_of(llama_with("max_position_embeddings", "null")) ==
        "config.json: the key 'max_position_embeddings' is null");
  CHECK(error_of(llama_with("num_key_value_heads", "3")) ==
        "config.json: num_key_value_heads: is 3, which does not divide the 4 attention heads");
  CHECK(error_of(llama_with("num_key_value_heads", "8")) ==
        "config.json: num_key_value_heads: is 8, which does not divide the 4 attention heads");
  CHECK(error_of(llama_with("head_dim", "7")) ==
        "config.json: has heads of 7 elements, expected an even number, since they are rotated in "
        "pairs");
  CHECK(error_of(json_with_member(llama_with("head_dim", "null"), "hidden_size", "34")) ==
        "config.json: hidden_size: is 34, which the 4 attention heads do not divide, and there is "
        "no head_dim");
  CHECK(error_of(llama_with("rms_norm_eps", "0")) ==
        "config.json: rms_norm_eps: is 0, expected a small positive number");
}

TEST_CASE("architectures: what would compute something else is refused by name") {
  CHECK(error_of(llama_with("hidden_act", R"("gelu")")) ==
        "config.json: hidden_act: the activation 'gelu' is not supported");
  CHECK(error_of(llama_with("attn_logit_softcapping", "50.0")) ==
        "config.json: attn_logit_softcapping: is 50.0: capping of logits is not supported");
  CHECK(error_of(llama_with("final_logit_softcapping", "30.0")) ==
        "config.json: final_logit_softcapping: is 30.0: capping of logits is not supported");
  CHECK(error_of(llama_with("partial_rotary_factor", "0.5")) ==
        "config.json: partial_rotary_factor: is 0.5: rotating only a part of each head is not "
        "supported");
  CHECK(error_of(llama_with("torch_dtype", R"("float64")")) ==
        "config.json: torch_dtype: is 'float64', expected float32, float16 or bfloat16");
  CHECK(error_of(llama_with("eos_token_id", "[1, -1]")) ==
        "config.json: eos_token_id[1]: is -1, expected a token id");
  CHECK(parse(llama_with("partial_rotary_factor", "1.0")).rope.theta == 10000.0);
  CHECK(parse(llama_with("hidden_act", R"("swish")")).n_layers == 2);
}

TEST_CASE("architectures: rope scaling is read in every spelling") {
  const auto rope = [](const char* key, const char* value) {
    return parse(llama_with(key, value)).rope;
  };
  CHECK(rope("rope_scaling", R"({"type": "linear", "factor": 2})").scaling == RopeScaling::linear);
  CHECK(rope("rope_scaling", R"({"type": "linear", "factor": 2})").factor == 2.0);
  CHECK(rope("rope_scaling", R"({"rope_type": "default"})").scaling == RopeScaling::none);
  CHECK(rope("rope_parameters", R"({"rope_theta": 5.0})").theta == 5.0);
  CHECK(rope("rope_parameters", R"({"rope_type": "linear", "factor": 3.0})").factor == 3.0);
  CHECK(rope("rope_parameters", R"({"rope_type": "linear", "factor": 3.0})").theta == 10000.0);
  CHECK(rope("rope_theta", "12345.5").theta == 12345.5);
}

TEST_CASE("architectures: rope scaling that is unknown or impossible is refused") {
  const auto refused = [](const char* value) {
    return error_of(llama_with("rope_scaling", value));
  };
  CHECK(refused(R"({"type": "dynamic", "factor": 2.0})") ==
        "config.json: rope_scaling.type: the rope scaling 'dynamic' is not supported");
  CHECK(help_of([] { parse(llama_with("rope_scaling", R"({"rope_type": "longrope"})")); }) ==
        "supported are 'default', 'linear', 'llama3' and 'yarn'");
  CHECK(refused(R"({"type": "linear"})") ==
        "config.json: rope_scaling: the key 'factor' is missing");
  CHECK(refused(R"({"type": "linear", "factor": 0.5})") ==
        "config.json: rope_scaling.factor: is 0.5, expected at least 1");
  CHECK(refused(R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4,
                    "high_freq_factor": 4, "original_max_position_embeddings": 8192})") ==
        "config.json: rope_scaling: high_freq_factor is 4, expected more than low_freq_factor, "
        "which is 4");
  CHECK(refused(R"("linear")") == R"(config.json: rope_scaling: is "linear", expected an object)");
  CHECK(refused(R"({"rope_type": "default", "partial_rotary_factor": 0.25})") ==
        "config.json: rope_scaling.partial_rotary_factor: is 0.25: rotating only a part of each "
        "head is not supported");
  CHECK(refused(R"({"full_attention": {"rope_type": "default"}})") ==
        "config.json: rope_scaling.full_attention: a rope of its own for some layers is not "
        "supported");
  CHECK(error_of(llama_with("rope_theta", "0")) ==
        "config.json: rope_theta: is 0, expected a positive number");
}

TEST_CASE("architectures: yarn is read with its defaults, and reaches beyond what was trained") {
  const auto with_yarn = [](const char* more) {
    return llama_with(
        "rope_scaling",
        cat(R"({"type": "yarn", "original_max_position_embeddings": 128)", more, "}"));
  };
  const ModelConfig config = parse(with_yarn(R"(, "factor": 4.0)"));
  CHECK(config.rope.scaling == RopeScaling::yarn);
  CHECK(config.rope.factor == 4);
  CHECK(config.rope.original_context == 128);
  CHECK(config.rope.beta_fast == 32);
  CHECK(config.rope.beta_slow == 1);
  CHECK(config.rope.truncate);
  CHECK(config.rope.attention_factor == doctest::Approx(1.138629436111989).epsilon(1e-15));
  CHECK(config.max_seq_len == 512);  // max_position_embeddings is 128
  CHECK(parse(with_yarn(R"(, "factor": 4.0, "attention_factor": 1.5)")).rope.attention_factor ==
        1.5);

  CHECK(error_of(llama_with("rope_scaling", R"({"type": "yarn", "factor": 2})")) ==
        "config.json: rope_scaling: the key 'original_max_position_embeddings' is missing");
  CHECK(error_of(with_yarn(R"(, "factor": 4.0, "mscale": 0.7)")) ==
        "config.json: rope_scaling.mscale: is 0.7: this part of yarn is not supported");
  CHECK(error_of(with_yarn(R"(, "factor": 4.0, "beta_slow": 32)")) ==
        "config.json: rope_scaling: beta_fast is 32, expected more than beta_slow, which is 32");
  CHECK(error_of(with_yarn(R"(, "factor": 4.0, "rope_theta": 1)")) ==
        "config.json: rope_scaling: rope_theta is 1, expected more than 1");
  CHECK(error_of(with_yarn(R"(, "factor": 1e9)")) ==
        "config.json: its rope reaches to position 1.28e+11");
}

TEST_CASE("architectures: quantised weights are refused with their method") {
  const auto refused = [](const char* value) {
    return error_of(llama_with("quantization_config", value));
  };
  CHECK(refused(R"({"quant_method": "gptq", "bits": 4})") ==
        "config.json: quantization_config: the weights are quantised (quant_method 'gptq'), and "
        "only F32, F16 and BF16 weights can be computed with");
  CHECK(refused(R"({"quant_method": "fp8", "kv_cache_scheme": "static"})") ==
        "config.json: quantization_config: the weights are quantised (quant_method 'fp8'), and "
        "only F32, F16 and BF16 weights can be computed with");
  CHECK(refused(R"({"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups":
                    {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8}}}})") ==
        "config.json: quantization_config.config_groups.group_0: quantises weights, and only F32, "
        "F16 and BF16 weights can be computed with");
  CHECK(refused(R"({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8",
                    "kv_cache_quant_algo": "FP8"}})") ==
        "config.json: quantization_config: quantises the weights with modelopt, and only F32, F16 "
        "and BF16 weights can be computed with");
  CHECK(help_of([] { parse(llama_with("quantization_config", R"({"quant_method": "awq"})")); }) ==
        "calibrate the unquantised model that this one was made from");
}

TEST_CASE("architectures: a quantization_config about the KV cache alone is no hindrance") {
  const auto accepted = [](const std::string& value) {
    return parse(llama_with("quantization_config", value)).n_layers == 2;
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
  CHECK(error_of(llama_with("quantization_config",
                            cat("{", groups, R"(, "ignore": [)", but_one, "]}"))) ==
        "config.json: quantization_config.config_groups.group_0: quantises weights, and only F32, "
        "F16 and BF16 weights can be computed with");
}

TEST_CASE("architectures: tied embeddings may be stored under either name") {
  ModelConfig config = test::tiny_config();
  config.tied_embeddings = true;
  CHECK(through_folder(config).tied_embeddings);
  CHECK(through_folder(config, {.tied_as_lm_head = true}).tied_embeddings);
}

TEST_CASE("architectures: embeddings that the config ties are tied where both are stored") {
  const TinyFolder model;
  CHECK_FALSE(model.read().tied_embeddings);
  model.set("tie_word_embeddings", "true");
  CHECK(model.read().tied_embeddings);
}

TEST_CASE("architectures: an untied model needs both matrices, a tied one needs one") {
  TinyFolder model;
  model.remove("lm_head.weight");
  CHECK(model.error() == cat(model.name,
                             ": tensor 'lm_head.weight': is missing, and config.json does not say "
                             "that it is the embeddings"));
  CHECK(help_of([&] { model.read(); }) ==
        "if it is, set \"tie_word_embeddings\": true in config.json");
  model.set("tie_word_embeddings", "true");
  CHECK(model.read().tied_embeddings);
  model.remove("model.embed_tokens.weight");
  CHECK(model.error() == cat(model.name, ": has no tensor 'model.embed_tokens.weight'"));
}

TEST_CASE("architectures: the dtype is that of the weights") {
  const TinyFolder model;
  model.set("torch_dtype", R"("float16")");
  CHECK(model.read().dtype == DType::f32);
}

TEST_CASE("architectures: weights of another or of two dtypes are refused") {
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
                             ": tensor 'model.layers.0.self_attn.q_proj.weight': is F8_E4M3, "
                             "expected F32, F16 or BF16"));
  write(DType::bf16, DType::f32);
  CHECK(model.error() == cat(model.name,
                             ": tensor 'model.norm.weight': is F32, but "
                             "'model.layers.0.self_attn.q_proj.weight' is BF16"));
  write(DType::bf16, DType::bf16);
  CHECK(model.read().dtype == DType::bf16);
}

TEST_CASE("architectures: every tensor must be there with its shape") {
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

TEST_CASE("architectures: weights of the norms of heads are asked for by name and shape") {
  TinyFolder model(tiny("Qwen3ForCausalLM"));
  CHECK(model.read().qk_norm);
  const std::string k_norm = "model.layers.1.self_attn.k_norm.weight";
  model.remove(k_norm);
  CHECK(model.error() == cat(model.name, ": has no tensor '", k_norm,
                             "' (did you mean 'model.layers.0.self_attn.k_norm.weight'?)"));
  model.add(k_norm, {16});
  CHECK(model.error() == cat(model.name, ": tensor '", k_norm,
                             "': has the shape [16], expected [8] from config.json"));
}

TEST_CASE("architectures: weights that the model has no use for are refused, scales are not") {
  TinyFolder model;
  model.add("model.layers.0.self_attn.k_scale", {});
  model.add("model.layers.0.self_attn.rotary_emb.inv_freq", {4});
  model.add("score.weight", {1, 32});
  CHECK(model.read().n_layers == 2);
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

TEST_CASE("architectures: generation_config.json overrules the end tokens") {
  const TinyFolder model;
  model.temp.write("model/generation_config.json", R"({"eos_token_id": [3, 4]})");
  CHECK(model.read().eos_ids == std::vector<int32_t>{3, 4});
  model.temp.write("model/generation_config.json", R"({"bos_token_id": 9})");
  CHECK(model.read().eos_ids == std::vector<int32_t>{2});
}

TEST_CASE("architectures: the shape of an unknown model can be told") {
  const auto shape = [](const char* text) {
    return parse_model_shape(Json::parse(text, "config.json"));
  };
  const ModelConfig qwen3 = shape(R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
      "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
      "quantization_config": {"quant_method": "fp8"}})");
  CHECK(qwen3.architecture == "Qwen3ForCausalLM");
  CHECK(qwen3.model_type == "qwen3");
  CHECK(qwen3.n_layers == 28);
  CHECK(qwen3.n_heads == 16);
  CHECK(qwen3.n_kv_heads == 8);
  CHECK(qwen3.head_dim == 128);
  CHECK(qwen3.max_seq_len == 40960);

  const ModelConfig gpt2 = shape(R"({"model_type": "gpt2", "n_layer": 12, "n_head": 12,
                                     "n_embd": 768, "n_positions": 1024})");
  CHECK(gpt2.architecture == "");
  CHECK(gpt2.n_layers == 12);
  CHECK(gpt2.n_kv_heads == 12);
  CHECK(gpt2.head_dim == 64);

  const ModelConfig wrapped = shape(R"({"model_type": "gemma3", "text_config": {
      "num_hidden_layers": 34, "num_attention_heads": 8, "num_key_value_heads": 4,
      "head_dim": 256}})");
  CHECK(wrapped.model_type == "gemma3");
  CHECK(wrapped.n_layers == 34);
  CHECK(wrapped.head_dim == 256);
  CHECK(wrapped.dim == 0);
}

TEST_CASE("architectures: a shape that cannot be told is an error") {
  const auto refused = [](const char* text) {
    return test::error_of([&] { parse_model_shape(Json::parse(text, "config.json")); });
  };
  CHECK(refused("{}") == "config.json: the key 'num_hidden_layers' is missing");
  CHECK(refused(R"({"num_hidden_layers": 2, "num_attention_heads": 4})") ==
        "config.json: the key 'hidden_size' is missing");
  CHECK(refused(R"({"num_hidden_layers": 2, "kv_lora_rank": 512})") ==
        "config.json: kv_lora_rank: attention through a latent vector (MLA) has no K and V per "
        "head");
}

TEST_CASE("architectures: reads the real models") {
  for (const char* name :
       {"stories260K-hf-f32", "stories260K-hf-bf16-sharded", "stories260K-hf-f16-untied"}) {
    const auto folder = test::shared_data(cat("models/", name));
    if (!folder) return;
    CAPTURE(name);
    const ModelConfig config = read_model_config(Checkpoint::open(*folder));
    CHECK(config.n_layers == 5);
    CHECK(config.n_kv_heads == 4);
    CHECK(config.tied_embeddings == !std::string(name).ends_with("untied"));
    CHECK(config.eos_ids == std::vector<int32_t>{2});
  }
}

}  // namespace fp8kv
