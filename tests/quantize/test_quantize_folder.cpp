#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/digest.h"
#include "checkpoint/model/read_model_config.h"
#include "checkpoint/model_weights.h"
#include "config/families/tensor_table.h"
#include "json/json.h"
#include "quantize/linear_choice.h"
#include "quantize/quantize_folder.h"
#include "quantize/schemes.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_checkpoint.h"
#include "support/models/tiny_config.h"
#include "support/places.h"
#include "support/sanitizers.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

uint64_t mixed(uint64_t at) {
  uint64_t z = at + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Weights by the formula of tests/golden/make_fp8_weights.py.
std::vector<float> golden_weights(uint64_t index, const Shape& shape) {
  const int64_t columns = shape[shape.rank() - 1];
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const uint64_t h = mixed((index << 32) + static_cast<uint64_t>(i));
    const int64_t row = i / columns;
    const double mantissa = 1 + static_cast<double>(h >> 1 & 127) / 128;
    int64_t exponent = static_cast<int64_t>((h >> 8) % 8) - 11;
    if (row % 5 == 4) exponent -= 10 + 2 * (row % 11);
    double value = std::ldexp(mantissa, static_cast<int>(exponent));
    if (row % 7 == 3) value = 0;
    values.push_back(static_cast<float>((h & 1) == 1 ? -value : value));
  }
  return values;
}

Shape shape_of(const Json& dims) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < dims.size(); ++i) sizes.push_back(dims[i].as_int());
  return Shape(sizes);
}

test::TinyConfig golden_config(const Json& of) {
  test::TinyConfig config = test::tiny_config();
  config.dtype = *dtype_from_name(of.at("dtype").as_string());
  config.dim = of.at("dim").as_int();
  config.hidden_dim = of.at("hidden").as_int();
  config.head_dim = of.at("head").as_int();
  config.n_heads = of.at("heads").as_int();
  config.n_kv_heads = of.at("kv_heads").as_int();
  config.vocab_size = of.at("vocab").as_int();
  config.n_layers = 1;
  return config;
}

void write_golden_model(const Json& of, const fs::path& folder) {
  std::vector<test::TinyTensor> tensors;
  const Json list = of.at("tensors");
  for (size_t i = 0; i < list.size(); ++i) {
    const Shape shape = shape_of(list[i].at("shape"));
    tensors.push_back({list[i].at("name").as_string(), shape, golden_weights(i, shape)});
  }
  const test::TinyConfig config = golden_config(of);
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << test::tiny_config_json(config);
  test::write_tiny_weights(folder, tensors, config.dtype);
}

QuantizeReport quantize(const fs::path& model, const fs::path& out, QuantizeFolderOptions options) {
  const Checkpoint checkpoint = Checkpoint::open(model);
  Log log(Verbosity::quiet);
  options.version = "test";
  const ModelConfig config = read_model_config(checkpoint);
  const LinearChoice choice = check_quantisable(checkpoint, config, out, options);
  std::map<std::string, float> inputs;
  if (options.scheme->static_inputs) {
    for (const std::string& name : choice.quantised) {
      inputs[name] = 3.0f;  // INPUT_AMAX of the golden
    }
    options.inputs = &inputs;
  }
  return quantize_folder(checkpoint, choice, out, options, log);
}

std::string text_of(const Json& json) {
  JsonWriter out;
  return out.value(json).text();
}

// The modules that config.json lists as not quantised, for a model of this architecture.
Strings ignored_in(const std::string& architecture) {
  const test::TempDir temp;
  test::write_tiny_checkpoint(temp / "model", test::tiny_config(architecture));
  return quantize(temp / "model", temp / "out", {.scheme = &fp8_scheme_at("fp8-dynamic")}).ignore;
}

}  // namespace

TEST_CASE("quantize_folder: every byte is the one that llm-compressor writes") {
  const Json golden =
      Json::read(test::source_dir() / "tests" / "golden" / "fp8-weights.json").at("cases");
  REQUIRE(golden.size() == 15);
  for (size_t i = 0; i < golden.size(); ++i) {
    const Json of = golden[i];
    CAPTURE(of.at("name").as_string());
    CAPTURE(of.at("dtype").as_string());
    const std::string scheme = of.at("scheme").as_string();
    CAPTURE(scheme);
    const test::TempDir temp;
    write_golden_model(of, temp / "model");
    quantize(temp / "model", temp / "out", {.scheme = &fp8_scheme_at(scheme)});
    const Checkpoint made = Checkpoint::open(temp / "out");
    const Json expected = of.at("made");
    CHECK(made.tensors().size() == expected.size());
    for (size_t t = 0; t < expected.size(); ++t) {
      const std::string& name = expected.key(t);
      CAPTURE(name);
      const TensorEntry& entry = made.at(name);
      CHECK(dtype_name(entry.dtype) == expected.value(t).at("dtype").as_string());
      CHECK(entry.shape == shape_of(expected.value(t).at("shape")));
      Sha256 digest;
      digest.add(made.read(name));
      CHECK(digest.hex() == expected.value(t).at("sha256").as_string());
    }
    const Json block = made.config().at("quantization_config");
    if (of.has("group")) {
      CHECK(text_of(block.at("config_groups").at("group_0")) == text_of(of.at("group")));
    }
    CHECK(block.at("quant_method").as_string() == "compressed-tensors");
    CHECK(block.at("format").as_string() == "float-quantized");
    CHECK_NOTHROW(read_model_config(made));
  }
}

TEST_CASE("quantize_folder: the same bytes for any number of threads") {
  const test::TempDir temp;
  test::TinyConfig config = test::tiny_config();
  config.dtype = DType::bf16;
  config.hidden_dim = 20'000;  // large enough for several pieces per matrix
  test::write_tiny_checkpoint(temp / "model", config, {.n_shards = 2});
  for (const Fp8Scheme& scheme : fp8_schemes()) {
    quantize(temp / "model", temp / "one", {.scheme = &scheme, .threads = 1, .overwrite = true});
    quantize(temp / "model", temp / "five", {.scheme = &scheme, .threads = 5, .overwrite = true});
    const Checkpoint one = Checkpoint::open(temp / "one");
    for (const Shard& shard : one.shards()) {
      CHECK(test::read_file(temp / "one" / shard.file) ==
            test::read_file(temp / "five" / shard.file));
    }
  }
}

TEST_CASE("quantize_folder: routers and lm_head are left alone, experts are not") {
  CHECK(ignored_in("LlamaForCausalLM") == Strings{"lm_head"});
  CHECK(ignored_in("MixtralForCausalLM") == Strings{"lm_head",
                                                    "model.layers.0.block_sparse_moe.gate",
                                                    "model.layers.1.block_sparse_moe.gate"});
  CHECK(ignored_in("Qwen2MoeForCausalLM") ==
        Strings{"lm_head", "model.layers.0.mlp.gate", "model.layers.0.mlp.shared_expert_gate",
                "model.layers.1.mlp.gate", "model.layers.1.mlp.shared_expert_gate"});
}

TEST_CASE("quantize_folder: every matrix is quantised or in the list, and nothing is in both") {
  for (const char* architecture :
       {"LlamaForCausalLM", "MixtralForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM",
        "OlmoeForCausalLM", "Olmo2ForCausalLM", "Qwen3ForCausalLM"}) {
    CAPTURE(architecture);
    const test::TempDir temp;
    test::write_tiny_checkpoint(temp / "model", test::tiny_config(architecture));
    const QuantizeReport report =
        quantize(temp / "model", temp / "out", {.scheme = &fp8_scheme_at("fp8-dynamic")});
    const Checkpoint made = Checkpoint::open(temp / "out");
    for (const auto& [name, location] : made.tensors()) {
      if (location.entry.shape.rank() != 2 || name.ends_with("_scale")) continue;
      CAPTURE(name);
      const std::string module = name.substr(0, name.size() - std::string(".weight").size());
      const bool listed =
          std::find(report.ignore.begin(), report.ignore.end(), module) != report.ignore.end();
      const bool quantised = location.entry.dtype == DType::f8_e4m3;
      CHECK(quantised == (made.find(name + "_scale") != nullptr));
      CHECK((quantised != listed || name == "model.embed_tokens.weight"));
    }
  }
}

TEST_CASE("quantize_folder: parts that are not the language model's are left alone by a pattern") {
  const test::TempDir temp;
  const test::TinyConfig config = test::tiny_config();
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(config);
  tensors.push_back({"model.vision_tower.blocks.0.fc1.weight", {2, 3}, {1, 2, 3, 4, 5, 6}});
  fs::create_directories(temp / "model");
  temp.write("model/config.json", test::tiny_config_json(config));
  test::write_tiny_weights(temp / "model", tensors, config.dtype);
  const QuantizeReport report =
      quantize(temp / "model", temp / "out", {.scheme = &fp8_scheme_at("fp8-dynamic")});
  CHECK(report.ignore == Strings{"lm_head", "re:.*vision_tower\\..*"});
  const Checkpoint made = Checkpoint::open(temp / "out");
  CHECK(made.at("model.vision_tower.blocks.0.fc1.weight").dtype == DType::f32);
}

TEST_CASE("quantize_folder: an index counts the new bytes and names every tensor") {
  const test::TempDir temp;
  test::write_tiny_checkpoint(temp / "model", test::tiny_config(), {.n_shards = 3});
  const QuantizeReport report =
      quantize(temp / "model", temp / "out", {.scheme = &fp8_scheme_at("fp8-dynamic")});
  const Checkpoint made = Checkpoint::open(temp / "out");
  REQUIRE(made.index());
  CHECK(made.index()->at("weight_map").size() == made.tensors().size());
  uint64_t bytes = 0;
  for (const auto& [name, location] : made.tensors()) {
    bytes += location.entry.end - location.entry.begin;
  }
  CHECK(made.index()->at("metadata").at("total_size").as_int() == static_cast<int64_t>(bytes));
  CHECK(report.plan.after_bytes == bytes);
}

TEST_CASE("quantize_folder: a weight that is no number is named with its place") {
  const test::TempDir temp;
  const test::TinyConfig config = test::tiny_config();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -HUGE_VALF}) {
    std::vector<test::TinyTensor> tensors = test::tiny_tensors(config);
    for (test::TinyTensor& tensor : tensors) {
      if (tensor.name == "model.layers.1.mlp.down_proj.weight") tensor.values[48 * 3 + 5] = bad;
    }
    fs::create_directories(temp / "model");
    temp.write("model/config.json", test::tiny_config_json(config));
    test::write_tiny_weights(temp / "model", tensors, config.dtype);
    const std::string error = test::error_of(
        [&] { quantize(temp / "model", temp / "out", {.scheme = &fp8_scheme_at("fp8-block")}); });
    CHECK(error.find(cat("tensor 'model.layers.1.mlp.down_proj.weight': element [3, 5] is ",
                         std::isnan(bad) ? "nan" : "-inf", ", expected a finite number")) !=
          std::string::npos);
    CHECK(!fs::exists(temp / "out"));
  }
}

TEST_CASE("quantize_folder: models that no runtime would read are refused") {
  const test::TempDir temp;
  const auto error = [&](const fs::path& model) {
    return test::error_of(
        [&] { quantize(model, temp / "out", {.scheme = &fp8_scheme_at("fp8-dynamic")}); });
  };
  test::write_tiny_checkpoint(temp / "plain", test::tiny_config());
  quantize(temp / "plain", temp / "fp8", {.scheme = &fp8_scheme_at("fp8-dynamic")});
  CHECK(error(temp / "fp8").find("is quantised by 'compressed-tensors' already") !=
        std::string::npos);
  size_t folders = 0;
  for (const auto& entry :
       fs::directory_iterator(test::source_dir() / "tests" / "golden" / "quantised")) {
    CAPTURE(entry.path().string());
    CHECK(error(entry.path()).find("' already") != std::string::npos);
    ++folders;
  }
  CHECK(folders > 10);
}

// Experts stored in one tensor give the same rows as experts in tensors of their own.
TEST_CASE("quantize_folder: experts in one tensor are written apart") {
  const fs::path source = test::source_dir() / "tests" / "golden" / "granite-moe";
  const Checkpoint from = Checkpoint::open(source);
  for (const char* scheme : {"fp8-dynamic", "fp8-block", "fp8-static"}) {
    CAPTURE(std::string(scheme));
    const test::TempDir temp;
    const QuantizeReport report =
        quantize(source, temp / "out", {.scheme = &fp8_scheme_at(scheme)});
    uint64_t bytes_before = 0;
    for (const auto& [name, location] : from.tensors()) {
      bytes_before += location.entry.end - location.entry.begin;
    }
    CHECK(report.plan.before_bytes == bytes_before);
    const Checkpoint made = Checkpoint::open(temp / "out");
    const std::string experts = "model.layers.1.block_sparse_moe.experts.";
    CHECK(made.at(experts + "3.gate_proj.weight").shape == Shape{7, 20});
    CHECK(made.at(experts + "3.down_proj.weight").shape == Shape{20, 7});
    CHECK(made.find("model.layers.1.block_sparse_moe.input_linear.weight") == nullptr);
    const ModelConfig config = read_model_config(made);
    const ModelWeights weights(made, DType::f32);
    const MappedTensor all = from.map("model.layers.1.block_sparse_moe.input_linear.weight");
    for (const ModelTensor& tensor : layer_tensors(config, 1)) {
      if (tensor.name != experts + "3.up_proj.weight") continue;
      const Weight weight = weights.at(tensor);
      const std::string bytes = weights.read(weight, 0, weight.bytes());
      const auto* found = reinterpret_cast<const float*>(bytes.data());
      const float* wanted =
          all.view.as<float>() + (3 * 14 + 7) * 20;  // skips three experts and one gate
      for (int i = 0; i < 7 * 20; ++i) {
        // Half of the distance between two codes, or of the smallest code.
        CHECK(std::abs(found[i] - wanted[i]) <= std::abs(wanted[i]) / 15 + 1e-4f);
      }
    }
  }
}

// Every matrix of a family's layers becomes FP8, whatever the tensors' names and fusions. The
// resulting folder is a model that its own config.json describes.
TEST_CASE("quantize_folder: every family that can be computed, or the reason why not") {
  const std::set<std::string> columns_only = {"GPT2LMHeadModel", "GptOssForCausalLM",
                                              "Llama4ForCausalLM", "Llama4ForConditionalGeneration",
                                              "Qwen3VLMoeForConditionalGeneration"};
  // Their files have all experts of a layer in one tensor.
  const std::set<std::string> experts_only = {"InklingForCausalLM",
                                              "InklingForConditionalGeneration"};
  std::set<std::string> refused, refused_experts;
  size_t made = 0;
  for (const std::string& name : test::family_cases()) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    const test::TempDir temp;
    try {
      quantize(model.checkpoint.folder(), temp / "out", {.scheme = &fp8_scheme_at("fp8-dynamic")});
    } catch (const Error& error) {
      const std::string said = error.what();
      const bool columns = said.find("stored with its rows as columns") != std::string::npos;
      const bool experts =
          said.find("has all experts of a layer in one tensor") != std::string::npos;
      INFO(said);
      CHECK(columns != experts);
      (columns ? refused : refused_experts).insert(model.config.architecture);
      continue;
    }
    const Checkpoint out = Checkpoint::open(temp / "out");
    const ModelConfig config = read_model_config(out);
    CHECK(config.stored_as == "fp8, a scale for each row");
    size_t codes = 0;
    for (const auto& [tensor, location] : out.tensors()) {
      codes += location.entry.dtype == DType::f8_e4m3 ? 1 : 0;
    }
    size_t parts = 0;
    for (const LayerDescription& layer : config.layers) {
      parts += layer.mixing != Mixing::none ? 1 : 0;
      parts += layer.feed_forward != FeedForward::none ? 1 : 0;
    }
    CHECK(codes >= 2 * parts - 2);
    ++made;
  }
  CHECK(made > 40);
  CHECK(std::ranges::includes(columns_only, refused));
  CHECK(std::ranges::includes(experts_only, refused_experts));
  // ThreadSanitizer gets a third of the models, and so perhaps not all that are refused.
  if (!test::kThreadSanitizer) {
    CHECK(refused == columns_only);
    CHECK(refused_experts == experts_only);
  }
}

}  // namespace fp8kv
