#include <doctest/doctest.h>

#include "config/architectures.h"
#include "support/expect_error.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

using test::config_with;
using test::error_of_config;
using test::llama_with;
using test::parse_config;
using test::through_folder;

constexpr const char* kSupported =
    "supported are LlamaForCausalLM (Llama 1, 2, 3.x and what shares their form), "
    "MistralForCausalLM (Mistral, with or without sliding window), Qwen2ForCausalLM (Qwen 2, "
    "2.5), Qwen3ForCausalLM (Qwen 3, dense) and Olmo2ForCausalLM (OLMo 2)";

// Windows as the layers have them: 0 is none.
std::vector<int64_t> windows_of(const ModelConfig& config) {
  std::vector<int64_t> windows;
  for (int64_t i = 0; i < config.n_layers(); ++i) windows.push_back(config.window(i));
  return windows;
}

std::vector<int64_t> windows_of(const test::TinyConfig& config) {
  std::vector<int64_t> windows(static_cast<size_t>(config.n_layers), config.window);
  for (size_t i = 0; i < config.window_layers.size(); ++i) {
    if (!config.window_layers[i]) windows[i] = 0;
  }
  return windows;
}

void check_equal(const ModelConfig& a, const test::TinyConfig& b) {
  CHECK(a.architecture == b.architecture);
  CHECK(a.model_type == b.model_type);
  CHECK(a.dtype == b.dtype);
  CHECK(a.dim == b.dim);
  CHECK(a.hidden_dim == b.hidden_dim);
  CHECK(a.head_dim() == b.head_dim);
  CHECK(a.n_layers() == b.n_layers);
  CHECK(a.n_heads == b.n_heads);
  CHECK(a.n_kv_heads() == b.n_kv_heads);
  CHECK(a.vocab_size == b.vocab_size);
  CHECK(a.max_seq_len == b.max_seq_len);
  CHECK(a.norm_eps == b.norm_eps);
  REQUIRE(a.ropes.size() == 1);
  CHECK(a.layer_ropes == std::vector<int32_t>(a.layers.size(), 0));
  CHECK(a.ropes[0].theta == b.rope.theta);
  CHECK(a.ropes[0].scaling == b.rope.scaling);
  CHECK(a.ropes[0].factor == b.rope.factor);
  CHECK(a.ropes[0].low_freq_factor == b.rope.low_freq_factor);
  CHECK(a.ropes[0].high_freq_factor == b.rope.high_freq_factor);
  CHECK(a.ropes[0].original_context == b.rope.original_context);
  CHECK(a.ropes[0].beta_fast == b.rope.beta_fast);
  CHECK(a.ropes[0].beta_slow == b.rope.beta_slow);
  CHECK(a.ropes[0].truncate == b.rope.truncate);
  CHECK(a.ropes[0].attention_factor == b.rope.attention_factor);
  CHECK(a.qkv_bias == b.qkv_bias);
  CHECK(a.block.qk_norm == b.block.qk_norm);
  CHECK(a.block.norm_place == b.block.norm_place);
  CHECK(a.o_bias == b.o_bias);
  CHECK(a.mlp_bias == b.mlp_bias);
  CHECK(a.tied_embeddings == b.tied_embeddings);
  CHECK(windows_of(a) == windows_of(b));
  CHECK(a.eos_ids == b.eos_ids);
  CHECK(a.bos_id == b.bos_id);
}

}  // namespace

TEST_CASE("architectures: every field goes through config.json, in both spellings") {
  for (const bool new_spelling : {false, true}) {
    CAPTURE(new_spelling);
    test::TinyConfig llama = test::tiny_config("LlamaForCausalLM");
    llama.dtype = DType::bf16;
    llama.head_dim = 16;  // not dim / n_heads
    llama.norm_eps = 1e-6;
    llama.qkv_bias = llama.o_bias = llama.mlp_bias = true;
    llama.tied_embeddings = true;
    llama.eos_ids = {2, 5, 7};
    llama.rope = {500000.0, RopeScaling::llama3, 32.0, 1.5, 4.5, 64};
    check_equal(through_folder(llama, {.new_spelling = new_spelling}), llama);

    test::TinyConfig mistral = test::tiny_config("MistralForCausalLM");
    mistral.dtype = DType::f16;
    mistral.window = 7;
    mistral.n_kv_heads = 1;
    mistral.bos_id = -1;
    mistral.rope.theta = 1e6;
    check_equal(through_folder(mistral, {.n_shards = 2, .new_spelling = new_spelling}), mistral);

    test::TinyConfig qwen = test::tiny_config("Qwen2ForCausalLM");
    qwen.n_layers = 3;
    qwen.n_kv_heads = 4;
    qwen.window = 9;
    qwen.window_layers = {false, true, false};
    qwen.rope.scaling = RopeScaling::linear;
    qwen.rope.factor = 4;
    check_equal(through_folder(qwen, {.new_spelling = new_spelling}), qwen);

    test::TinyConfig qwen3 = test::tiny_config("Qwen3ForCausalLM");
    qwen3.qkv_bias = qwen3.o_bias = true;
    qwen3.window = 5;
    qwen3.window_layers = {true, false};
    qwen3.rope = {1e6, RopeScaling::yarn, 2, 1, 4, 64, 16, 2, false, 1.25};
    check_equal(through_folder(qwen3, {.new_spelling = new_spelling}), qwen3);

    test::TinyConfig olmo2 = test::tiny_config("Olmo2ForCausalLM");
    olmo2.qkv_bias = olmo2.o_bias = true;
    olmo2.n_kv_heads = 4;
    check_equal(through_folder(olmo2, {.new_spelling = new_spelling}), olmo2);
  }
}

TEST_CASE("architectures: reads the config.json of Llama 3.1 8B") {
  const ModelConfig config = parse_config(R"({
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
  CHECK(config.head_dim() == 128);
  CHECK(config.n_kv_heads() == 8);
  CHECK(config.max_seq_len == 131072);
  CHECK(config.ropes[0].theta == 500000.0);
  CHECK(config.ropes[0].scaling == RopeScaling::llama3);
  CHECK(config.ropes[0].factor == 8.0);
  CHECK(config.ropes[0].original_context == 8192);
  CHECK(config.eos_ids == std::vector<int32_t>{128001, 128008, 128009});
  CHECK(config.bos_id == 128000);
  CHECK(windows_of(config) == std::vector<int64_t>(32, 0));
}

TEST_CASE("architectures: reads the config.json of Llama 1, which lacks the newer keys") {
  const ModelConfig config = parse_config(R"({
    "architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
    "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 11008,
    "initializer_range": 0.02, "max_position_embeddings": 2048, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "pad_token_id": 0, "rms_norm_eps": 1e-06,
    "torch_dtype": "float16", "use_cache": true, "vocab_size": 32000})");
  CHECK(config.n_kv_heads() == 32);
  CHECK(config.ropes[0].theta == 10000.0);
  CHECK(config.ropes[0].scaling == RopeScaling::none);
  CHECK_FALSE(config.tied_embeddings);
}

TEST_CASE("architectures: reads the config.json of Qwen2.5 7B, whose window is switched off") {
  const ModelConfig config = parse_config(R"({
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
    "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944,
    "max_position_embeddings": 32768, "max_window_layers": 28, "model_type": "qwen2",
    "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_sliding_window": false,
    "vocab_size": 152064})");
  CHECK(config.qkv_bias);
  CHECK_FALSE(config.o_bias);
  CHECK(config.head_dim() == 128);
  CHECK(windows_of(config) == std::vector<int64_t>(28, 0));
}

TEST_CASE("architectures: reads the config.json of Qwen3 0.6B, whose heads are normalised") {
  const ModelConfig config = parse_config(R"({
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
    "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true,
    "use_sliding_window": false, "vocab_size": 151936})");
  CHECK(config.block.qk_norm == QkNorm::per_head);
  CHECK_FALSE(config.qkv_bias);
  CHECK_FALSE(config.o_bias);
  CHECK(config.head_dim() == 128);
  CHECK(config.tied_embeddings);
  CHECK(windows_of(config) == std::vector<int64_t>(28, 0));
}

TEST_CASE("architectures: reads the config.json of OLMo 2 7B, whose norms follow its blocks") {
  const ModelConfig config = parse_config(R"({
    "architectures": ["Olmo2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "eos_token_id": 100257, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "olmo2",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
    "pad_token_id": 100277, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 500000,
    "tie_word_embeddings": false, "torch_dtype": "float32", "use_cache": true,
    "vocab_size": 100352})");
  CHECK(config.block.norm_place == NormPlace::after);
  CHECK(config.block.qk_norm == QkNorm::whole);
  CHECK_FALSE(config.qkv_bias);
  CHECK_FALSE(config.o_bias);
  CHECK(config.head_dim() == 128);
  CHECK(config.eos_ids == std::vector<int32_t>{100257});
  CHECK(windows_of(config) == std::vector<int64_t>(32, 0));
}

// Keys and order as transformers 5.23.0 saves Qwen2Config(use_sliding_window=True, ...).
TEST_CASE("architectures: reads what transformers 5 writes") {
  const ModelConfig config = parse_config(R"({
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
  CHECK(config.ropes[0].theta == 20000.0);
  CHECK(windows_of(config) == std::vector<int64_t>{0, 4096, 4096});
  CHECK(config.eos_ids.empty());
  CHECK(config.bos_id == -1);
}

TEST_CASE("architectures: the window of Qwen2 begins at max_window_layers") {
  test::TinyConfig qwen = test::tiny_config("Qwen2ForCausalLM");
  qwen.n_layers = 3;
  qwen.window = 8;
  const std::string text = test::tiny_config_json(qwen);
  const auto from = [&](const char* first) {
    return windows_of(parse_config(json_with_member(text, "max_window_layers", first)));
  };
  CHECK(from("0") == std::vector<int64_t>{8, 8, 8});
  CHECK(from("2") == std::vector<int64_t>{0, 0, 8});
  CHECK(from("3") == std::vector<int64_t>{0, 0, 0});
}

TEST_CASE("architectures: a window that contradicts itself is refused") {
  const std::string qwen = test::tiny_config_json(test::tiny_config("Qwen2ForCausalLM"));
  const auto with_types = [](const std::string& text, const char* types) {
    return json_with_member(text, "layer_types", types);
  };
  CHECK(error_of_config(with_types(qwen, R"(["full_attention"])")) ==
        R"(config.json: layer_types: is ["full_attention"], expected an array of 2 layer types)");
  CHECK(error_of_config(with_types(qwen, R"(["full_attention", "linear_attention"])")) ==
        "config.json: layer_types[1]: is \"linear_attention\", which makes the mixing of layer 1 "
        "'recurrent', expected 'full' or 'window' in Qwen2ForCausalLM");
  CHECK(error_of_config(with_types(json_with_member(qwen, "sliding_window", "4"),
                                   R"(["full_attention", "sliding_attention"])")) ==
        "config.json: layer_types: has sliding_attention, but use_sliding_window is not true");
  CHECK(error_of_config(with_types(json_with_member(qwen, "use_sliding_window", "true"),
                                   R"(["full_attention", "sliding_attention"])")) ==
        "config.json: the key 'sliding_window' is missing, though there are layers that need it");
  CHECK(error_of_config(config_with("MistralForCausalLM", "sliding_window", "0")) ==
        "config.json: sliding_window: is 0, expected 1 to 2147483647");
  CHECK(error_of_config(with_types(config_with("MistralForCausalLM", "sliding_window", "4"),
                                   R"(["full_attention", "sliding_attention"])")) ==
        "config.json: layer_types: does not fit sliding_window, which is one for all layers of "
        "MistralForCausalLM");
  CHECK(error_of_config(json_with_member(config_with("MistralForCausalLM", "sliding_window", "4"),
                                         "hybrid_override_pattern", R"("**")")) ==
        "config.json: hybrid_override_pattern: does not fit sliding_window, which is one for all "
        "layers of MistralForCausalLM");
  CHECK(error_of_config(R"({"architectures": ["MistralForCausalLM"], "num_hidden_layers": 1,
                     "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 8,
                     "vocab_size": 8, "max_position_embeddings": 8, "rms_norm_eps": 1e-5})") ==
        "config.json: the key 'sliding_window' is missing");
}

TEST_CASE("architectures: layers that it does not have are refused by what makes them so") {
  const auto refused = [](const char* key, const char* value) {
    return error_of_config(llama_with(key, value));
  };
  CHECK(refused("layer_types", R"(["full_attention", "linear_attention"])") ==
        "config.json: layer_types[1]: is \"linear_attention\", which makes the mixing of layer 1 "
        "'recurrent', expected 'full' in LlamaForCausalLM");
  CHECK(refused("full_attention_interval", "2") ==
        "config.json: full_attention_interval: is 2, which makes the mixing of layer 0 "
        "'recurrent', expected 'full' in LlamaForCausalLM");
  // What decides is to blame, whatever else there is.
  const std::string typed = llama_with("layer_types", R"(["full_attention", "full_attention"])");
  CHECK(error_of_config(json_with_member(typed, "hybrid_override_pattern", R"("*M")")) ==
        "config.json: hybrid_override_pattern: is \"*M\", which makes the mixing of layer 1 "
        "'recurrent', expected 'full' in LlamaForCausalLM");
  CHECK(refused("v_head_dim", "4") ==
        "config.json: v_head_dim: is 4, but LlamaForCausalLM has heads of the same size for K and "
        "V");
  CHECK(refused("num_kv_shared_layers", "1") ==
        "config.json: num_kv_shared_layers: is 1, but LlamaForCausalLM has a KV cache of its own "
        "in every layer");
  CHECK(test::help_of([] { parse_config(llama_with("v_head_dim", "4")); }) ==
        "plan, inspect, extract and inject take such a model");
  CHECK(refused("attn_layer_indices", "[0]") ==
        "config.json: attn_layer_indices: which layers hold what cache is said in a way not known "
        "here");
}

TEST_CASE("architectures: layers with heads of their own are refused by key") {
  const auto refused = [](const char* key, const char* value) {
    const std::string qwen = config_with("Qwen2ForCausalLM", "sliding_window", "4");
    const std::string on = json_with_member(qwen, "use_sliding_window", "true");
    const std::string mixed =
        json_with_member(on, "layer_types", R"(["full_attention", "sliding_attention"])");
    const std::string k_eq_v = json_with_member(mixed, "attention_k_eq_v", "true");
    return error_of_config(json_with_member(k_eq_v, key, value));
  };
  CHECK(refused("global_head_dim", "16") ==
        "config.json: global_head_dim: is 16, but Qwen2ForCausalLM has heads of the same size in "
        "every layer");
  CHECK(refused("num_global_key_value_heads", "1") ==
        "config.json: num_global_key_value_heads: is 1, but Qwen2ForCausalLM has as many KV heads "
        "in every layer");
}

// transformers reads the window of neither, and so do all that run them.
TEST_CASE("architectures: keys of other families change no window") {
  CHECK(windows_of(parse_config(llama_with("sliding_window", "4"))) == std::vector<int64_t>{0, 0});
  const std::string mistral = config_with("MistralForCausalLM", "sliding_window", "4");
  CHECK(windows_of(parse_config(json_with_member(mistral, "use_sliding_window", "false"))) ==
        std::vector<int64_t>{4, 4});
  const std::string qwen = config_with("Qwen2ForCausalLM", "sliding_window", "4");
  CHECK(windows_of(parse_config(json_with_member(qwen, "use_sliding_window", "null"))) ==
        std::vector<int64_t>{0, 0});
}

TEST_CASE("architectures: an unknown one is refused with the list of the known") {
  const auto refused = [](const char* value) {
    return error_of_config(llama_with("architectures", value));
  };
  CHECK(refused(R"(["Qwen3MoeForCausalLM"])") ==
        "config.json: architectures: 'Qwen3MoeForCausalLM' is not supported");
  CHECK(refused(R"(["LLaMAForCausalLM"])") ==
        "config.json: architectures: 'LLaMAForCausalLM' is not supported (did you mean "
        "'LlamaForCausalLM'?)");
  CHECK(refused("[]") == "config.json: names no architecture under 'architectures'");
  CHECK(refused("null") == "config.json: names no architecture under 'architectures'");
  CHECK(refused("[1]") == "config.json: architectures[0]: is a number (1), expected a string");
  CHECK(test::help_of([] {
          parse_config(llama_with("architectures", R"(["Qwen3MoeForCausalLM"])"));
        }) == kSupported);
  CHECK(error_of_config(json_with_member(llama_with("architectures", R"(["BaichuanForCausalLM"])"),
                                         "auto_map", R"({"AutoConfig": "x"})")) ==
        "config.json: architectures: 'BaichuanForCausalLM' is not supported, and it brings code "
        "of its own (auto_map), which is never run here");
}

TEST_CASE("architectures: impossible dimensions are refused by key") {
  CHECK(error_of_config(llama_with("hidden_size", "0")) ==
        "config.json: hidden_size: is 0, expected 1 to 268435456");
  CHECK(error_of_config(llama_with("num_hidden_layers", "-1")) ==
        "config.json: num_hidden_layers: is -1, expected 1 to 65536");
  CHECK(error_of_config(llama_with("vocab_size", "4611686018427387904")) ==
        "config.json: vocab_size: is 4611686018427387904, expected 1 to 268435456");
  CHECK(error_of_config(llama_with("intermediate_size", "1.5")) ==
        "config.json: intermediate_size: is a number (1.5), expected an integer");
  CHECK(error_of_config(R"({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1,
                     "num_attention_heads": 2, "hidden_size": 8})") ==
        "config.json: the key 'intermediate_size' is missing");
  CHECK(error_of_config(llama_with("max_position_embeddings", "null")) ==
        "config.json: the key 'max_position_embeddings' is null");
  CHECK(error_of_config(llama_with("num_key_value_heads", "3")) ==
        "config.json: num_key_value_heads: is 3, which does not divide the 4 attention heads");
  CHECK(error_of_config(llama_with("num_key_value_heads", "8")) ==
        "config.json: num_key_value_heads: is 8, which does not divide the 4 attention heads");
  CHECK(error_of_config(llama_with("head_dim", "7")) ==
        "config.json: has heads of 7 elements, expected an even number, since they are rotated in "
        "pairs");
  CHECK(error_of_config(json_with_member(llama_with("head_dim", "null"), "hidden_size", "34")) ==
        "config.json: hidden_size: is 34, which the 4 attention heads do not divide, and there is "
        "no head_dim");
  CHECK(error_of_config(llama_with("rms_norm_eps", "0")) ==
        "config.json: rms_norm_eps: is 0, expected a small positive number");
}

// transformers takes the class by model_type, and vLLM by architectures.
TEST_CASE("architectures: a model_type of another architecture is refused") {
  CHECK(error_of_config(llama_with("model_type", R"("mistral")")) ==
        "config.json: model_type: is \"mistral\", but 'architectures' names 'LlamaForCausalLM', "
        "which is 'llama'");
  CHECK(test::help_of([] { parse_config(llama_with("model_type", R"("qwen2")")); }) ==
        "correct the one that is wrong: runtimes differ in which they go by");
  CHECK(parse_config(llama_with("model_type", "null")).n_layers() == 2);
  for (const Architecture& row : architectures()) {
    CAPTURE(row.name);
    CHECK(parse_config(config_with(row.name, "model_type", cat("\"", row.model_type, "\"")))
              .n_layers() == 2);
    CHECK(error_of_config(config_with(row.name, "model_type", R"("gpt2")"))
              .starts_with("config.json: model_type: is \"gpt2\", but 'architectures' names "));
  }
}

// With it transformers 5.23 lets every token see all others, whatever the model.
TEST_CASE("architectures: attention to what comes later is refused") {
  for (const Architecture& row : architectures()) {
    CAPTURE(row.name);
    CHECK(error_of_config(config_with(row.name, "is_causal", "false")) ==
          "config.json: is_causal: is false: attention to tokens that come later is not supported");
    CHECK(parse_config(config_with(row.name, "is_causal", "true")).n_layers() == 2);
  }
}

TEST_CASE("architectures: what would compute something else is refused by name") {
  CHECK(error_of_config(llama_with("hidden_act", R"("gelu")")) ==
        "config.json: hidden_act: the activation 'gelu' is not supported");
  CHECK(test::help_of([] { parse_config(llama_with("hidden_act", R"("gelu")")); }) ==
        "supported by LlamaForCausalLM: 'silu' and 'swish'");
  CHECK(parse_config(llama_with("hidden_act", R"("swish")")).block.activation == Activation::silu);
  CHECK(error_of_config(llama_with("attn_logit_softcapping", "50.0")) ==
        "config.json: attn_logit_softcapping: is 50.0: capping of logits is not supported");
  CHECK(error_of_config(llama_with("final_logit_softcapping", "30.0")) ==
        "config.json: final_logit_softcapping: is 30.0: capping of logits is not supported");
  CHECK(error_of_config(llama_with("partial_rotary_factor", "0.5")) ==
        "config.json: partial_rotary_factor: is 0.5: rotating only a part of each head is not "
        "supported");
  CHECK(error_of_config(llama_with("torch_dtype", R"("float64")")) ==
        "config.json: torch_dtype: is 'float64', expected float32, float16 or bfloat16");
  CHECK(error_of_config(llama_with("eos_token_id", "[1, -1]")) ==
        "config.json: eos_token_id[1]: is -1, expected a token id");
  CHECK(parse_config(llama_with("partial_rotary_factor", "1.0")).ropes[0].theta == 10000.0);
  CHECK(parse_config(llama_with("hidden_act", R"("swish")")).n_layers() == 2);
}

}  // namespace fp8kv
