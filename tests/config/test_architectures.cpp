#include <doctest/doctest.h>

#include "config/architectures.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

using test::config_with;
using test::llama_with;
using test::parse_config;
using test::through_folder;

// The window of each layer; 0 means none.
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

// The keys and their order in transformers 5.23.0 for Qwen2Config(use_sliding_window=True, ...).
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

// transformers and all runtimes ignore these keys in these families.
TEST_CASE("architectures: keys of other families change no window") {
  CHECK(windows_of(parse_config(llama_with("sliding_window", "4"))) == std::vector<int64_t>{0, 0});
  const std::string mistral = config_with("MistralForCausalLM", "sliding_window", "4");
  CHECK(windows_of(parse_config(json_with_member(mistral, "use_sliding_window", "false"))) ==
        std::vector<int64_t>{4, 4});
  const std::string qwen = config_with("Qwen2ForCausalLM", "sliding_window", "4");
  CHECK(windows_of(parse_config(json_with_member(qwen, "use_sliding_window", "null"))) ==
        std::vector<int64_t>{0, 0});
}

TEST_CASE("architectures: a language model inside another has what its family leaves out") {
  const char* gemma3_4b = R"({"architectures": ["Gemma3ForConditionalGeneration"],
      "model_type": "gemma3", "torch_dtype": "bfloat16", "eos_token_id": [1, 106],
      "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
      "model_type": "gemma3_text", "num_hidden_layers": 34,
      "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024},
      "vision_config": {"model_type": "siglip_vision_model"}})";
  const ModelConfig config = parse_config(gemma3_4b);
  CHECK(config.architecture == "Gemma3ForConditionalGeneration");
  CHECK(config.n_heads == 8);
  CHECK(config.n_kv_heads() == 4);
  CHECK(config.head_dim() == 256);
  CHECK(config.vocab_size == 262208);
  CHECK(config.max_seq_len == 131072);
  CHECK(config.tied_embeddings);
  CHECK(config.eos_ids == std::vector<int32_t>{1, 106});
  CHECK(config.window(0) == 1024);
  CHECK(config.window(5) == 0);
  REQUIRE(config.ropes.size() == 2);
  CHECK(config.ropes[0].theta == 1e6);
  CHECK(config.ropes[0].factor == 8);
  CHECK(config.ropes[1].theta == 1e4);
  CHECK(config.layer_ropes[0] == 1);
  CHECK(config.layer_ropes[5] == 0);
  // All sizes come from the defaults of Llama.
  const ModelConfig llava = parse_config(R"({"architectures": ["LlavaForConditionalGeneration"],
      "model_type": "llava", "torch_dtype": "float16", "text_config": {"model_type": "llama",
      "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "vocab_size": 32064}})");
  CHECK(llava.n_layers() == 32);
  CHECK(llava.dim == 4096);
  CHECK(llava.vocab_size == 32064);
}

TEST_CASE("architectures: InternLM 3 has its biases under the names of transformers 5 as well") {
  JsonWriter text;
  text.value(test::family_golden("internlm3-bias").at("config"));
  const auto with = [&](const char* attention, const char* rest) {
    std::string config = json_with_member(text.text(), "qkv_bias", "null");
    config = json_with_member(config, "bias", "null");
    config = json_with_member(config, "attention_bias", attention);
    return parse_config(json_with_member(config, "mlp_bias", rest));
  };
  CHECK(with("true", "true").qkv_bias);
  CHECK(with("true", "true").o_bias);
  CHECK(with("true", "true").mlp_bias);
  CHECK_FALSE(with("true", "false").o_bias);
  CHECK_FALSE(with("null", "null").qkv_bias);
  CHECK(test::error_of_config(json_with_member(text.text(), "mlp_bias", "false")) ==
        "config.json: bias: is true, but config.json: mlp_bias is false");
}

// transformers 5.23 saves Mistral 3 like this by default, and obeys the outer key in every such
// model.
TEST_CASE("architectures: embeddings tied by the model around the language model are tied") {
  const ModelConfig config = parse_config(R"({"architectures": ["LlavaForConditionalGeneration"],
      "model_type": "llava", "tie_word_embeddings": true, "torch_dtype": "float16", "text_config":
      {"model_type": "llama", "max_position_embeddings": 4096, "rms_norm_eps": 1e-05,
       "vocab_size": 32064, "tie_word_embeddings": false}})");
  CHECK(config.tied_embeddings);
}

}  // namespace fp8kv
