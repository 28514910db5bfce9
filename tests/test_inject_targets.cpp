#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "core/half.h"
#include "io/architectures.h"
#include "io/find_scales.h"
#include "io/inject.h"
#include "io/scale_file.h"
#include "io/scale_names.h"
#include "io/scale_patch.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "support/tiny_checkpoint.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

constexpr const char* kShard = "model-kv-scales.safetensors";

// Any positive normal floats that a maximum over heads can be told from.
KvScales random_scales(const ModelConfig& config, Rng& rng, bool per_head) {
  const auto any = [&] {
    const uint64_t bits = rng.next();
    return float_from_bits(static_cast<uint32_t>((1 + bits % 254) << 23 | (bits >> 41)));
  };
  KvScales scales;
  scales.model_type = config.model_type;
  scales.n_kv_heads = config.n_kv_heads;
  scales.layers.resize(static_cast<size_t>(config.n_layers));
  for (LayerScales& layer : scales.layers) {
    const size_t heads = per_head ? static_cast<size_t>(config.n_kv_heads) : 1;
    for (size_t head = 0; head < heads; ++head) layer.k.push_back(any());
    for (size_t head = 0; head < heads; ++head) layer.v.push_back(any());
  }
  return scales;
}

// What a form makes of scales: the heads' maximum where it has no room for heads, and the larger
// of K and V where it has one number for both.
std::vector<LayerScales> carried(const KvScales& scales, const std::string& target) {
  if (target == "vllm" || target == "json") return scales.layers;
  std::vector<LayerScales> layers = per_tensor(scales).layers;
  if (target != "tgi-2028") return layers;
  for (LayerScales& layer : layers) layer.k = layer.v = {std::max(layer.k[0], layer.v[0])};
  return layers;
}

// A tiny model in "model", and room for outputs beside it.
struct Workplace {
  explicit Workplace(const ModelConfig& model = test::tiny_config(),
                     const test::TinyOptions& options = {})
      : config(model) {
    test::write_tiny_checkpoint(folder / "model", config, options);
  }

  InjectReport inject(const std::string& from, const KvScales& scales, const std::string& to,
                      const std::string& target, bool replace = false) const {
    return inject_scales(Checkpoint::open(folder / from), scales, folder / to,
                         {.target = target, .overwrite = true, .replace = replace});
  }
  KvScales scales_in(const std::string& name) const {
    if (!fs::is_directory(folder / name)) return read_scale_file(folder / name);
    return scales_at(Checkpoint::open(folder / name)).scales;
  }
  std::string error(const KvScales& scales, const std::string& target, bool replace = false) const {
    std::string text = test::error_of([&] { inject("model", scales, "out", target, replace); });
    const std::string path = folder.path().string() + "/";
    for (size_t at; (at = text.find(path)) != text.npos;) text.erase(at, path.size());
    return text;
  }
  // Gives the model's config.json one more member.
  void add_to_config(const std::string& key, const std::string& value) const {
    const std::string text = test::read_file(folder / "model/config.json");
    folder.write("model/config.json", json_with_member(text, key, value));
  }
  Json config_of(const std::string& name) const {
    return Json::read(folder / name / "config.json");
  }
  Strings scale_tensors(const std::string& name) const {
    return kv_scale_names(Checkpoint::open(folder / name));
  }

  ModelConfig config;
  test::TempDir folder;
};

ModelConfig one_layer() {
  ModelConfig config = test::tiny_config();
  config.n_layers = 1;
  return config;
}

KvScales one_scale(float k = 0.5f, float v = 0.25f) {
  KvScales scales;
  scales.layers = {{{k}, {v}}};
  return scales;
}

// Names and contents of a folder's files.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[fs::relative(entry.path(), folder).string()] = test::read_file(entry.path());
  }
  return files;
}

Strings target_names() {
  Strings names;
  for (const InjectTarget& target : inject_targets()) names.push_back(target.name);
  return names;
}

TEST_CASE("targets: what is put in comes out bit for bit, in every form that can carry it") {
  Rng rng(17);
  for (int round = 0; round < 12; ++round) {
    ModelConfig config = test::tiny_config();
    config.n_layers = static_cast<int64_t>(1 + rng.next() % 12);
    config.n_kv_heads = round % 3 == 0 ? 1 : round % 3 == 1 ? 2 : 4;
    const Workplace place(config, {.n_shards = 1 + round % 3});
    const KvScales scales = random_scales(config, rng, round % 2 == 0);
    for (const std::string& target : target_names()) {
      CAPTURE(target);
      const std::string out = "to-" + target;
      place.inject("model", scales, out, target);
      const KvScales back = place.scales_in(out);
      CHECK(back.layers == carried(scales, target));
      CHECK(back.format == Fp8Format::e4m3fn);
      CHECK(back.model_type == "llama");
      CHECK(back.n_kv_heads == config.n_kv_heads);
    }
  }
}

TEST_CASE("targets: through every pair of forms nothing is lost that both can carry") {
  Rng rng(23);
  for (int round = 0; round < 4; ++round) {
    ModelConfig config = test::tiny_config();
    config.n_layers = static_cast<int64_t>(1 + rng.next() % 4);
    const Workplace place(config, {.n_shards = 1 + round % 2});
    const KvScales scales = random_scales(config, rng, round % 2 == 0);
    for (const std::string& first : target_names()) {
      place.inject("model", scales, "first", first);
      const KvScales between = place.scales_in("first");
      for (const std::string& second : target_names()) {
        CAPTURE(first);
        CAPTURE(second);
        fs::remove_all(place.folder / "second");
        place.inject("model", between, "second", second);
        KvScales expected;
        expected.layers = carried(scales, first);
        CHECK(place.scales_in("second").layers == carried(expected, second));
      }
      fs::remove_all(place.folder / "first");
    }
  }
}

TEST_CASE("targets: replacing scales gives the files that injecting at first gives") {
  Rng rng(29);
  const Workplace place(test::tiny_config(), {.n_shards = 2});
  const KvScales before = random_scales(place.config, rng, false);
  const KvScales after = random_scales(place.config, rng, true);
  for (const InjectTarget& first : inject_targets()) {
    if (first.is_file) continue;
    place.inject("model", before, "first", first.name);
    for (const InjectTarget& second : inject_targets()) {
      if (second.is_file) continue;
      CAPTURE(first.name);
      CAPTURE(second.name);
      place.inject("first", after, "replaced", second.name, true);
      place.inject("model", after, "direct", second.name);
      CHECK(contents(place.folder / "replaced") == contents(place.folder / "direct"));
    }
  }
}

TEST_CASE("targets: each writes its own tensors, and kv_cache_torch_dtype always") {
  const std::string at = "model.layers.0.self_attn.";
  const std::map<std::string, Strings> expected = {
      {"tgi", {at + "k_scale", at + "kv_scale", at + "v_scale"}},
      {"tgi-2028", {at + "kv_scale"}},
      {"vllm", {at + "k_scale", at + "v_scale"}},
      {"vllm-rocm", {at + "k_scale", at + "v_scale"}},
      {"sglang", {at + "k_scale", at + "v_scale"}}};
  const Workplace place(one_layer());
  for (const auto& [target, names] : expected) {
    CAPTURE(target);
    place.inject("model", one_scale(), target, target);
    CHECK(place.scale_tensors(target) == names);
    CHECK(place.config_of(target).at("kv_cache_torch_dtype").as_string() == "float8_e4m3fn");
    for (const TensorEntry& entry :
         read_safetensors_header(place.folder / target / kShard).tensors) {
      CHECK(entry.dtype == DType::f32);
      CHECK(entry.shape.elements() == 1);
    }
  }
}

TEST_CASE("targets: what is made can be computed with, block or none") {
  const Workplace place;
  Rng rng(31);
  for (const InjectTarget& target : inject_targets()) {
    if (target.is_file) continue;
    CAPTURE(target.name);
    place.inject("model", random_scales(place.config, rng, false), "out", target.name);
    CHECK(read_model_config(Checkpoint::open(place.folder / "out")).n_layers == 2);
  }
}

std::string block_of(const Workplace& place, const std::string& name) {
  const auto block = place.config_of(name).find("quantization_config");
  return block ? JsonWriter(JsonWriter::Layout::one_line).value(*block).text() : "";
}

TEST_CASE("targets: the blocks of a model that is not quantised") {
  const Workplace place(one_layer());
  const std::string compressed_tensors =
      R"({"quant_method": "compressed-tensors", "format": "dense", "quantization_status": "frozen", )"
      R"("config_groups": {}, "ignore": ["lm_head", "re:.*_proj$"], "kv_cache_scheme": )"
      R"({"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": false, "symmetric": true}})";
  const std::map<std::string, std::string> expected = {
      {"tgi", ""},
      {"tgi-2028", ""},
      {"vllm", compressed_tensors},
      {"sglang", compressed_tensors},
      {"vllm-rocm",
       R"({"quant_method": "fp8", "activation_scheme": "dynamic", "ignored_layers": ["lm_head", )"
       R"("model.layers.0.mlp.down_proj", "model.layers.0.mlp.gate_proj", )"
       R"("model.layers.0.mlp.up_proj", "model.layers.0.self_attn.k_proj", )"
       R"("model.layers.0.self_attn.o_proj", "model.layers.0.self_attn.q_proj", )"
       R"("model.layers.0.self_attn.v_proj"]})"}};
  for (const auto& [target, block] : expected) {
    CAPTURE(target);
    place.inject("model", one_scale(), target, target);
    CHECK(block_of(place, target) == block);
  }
}

TEST_CASE("targets: scales per head go out as attn_head for vLLM, else as their maximum") {
  const Workplace place(one_layer());
  KvScales scales;
  scales.layers = {{{0.5f, 0.25f}, {1, 2}}};
  const InjectReport report = place.inject("model", scales, "vllm", "vllm");
  for (const TensorEntry& entry : read_safetensors_header(place.folder / "vllm" / kShard).tensors) {
    CHECK(entry.shape == Shape{2, 1, 1});
  }
  CHECK(place.config_of("vllm")
            .at("quantization_config")
            .at("kv_cache_scheme")
            .at("strategy")
            .as_string() == "attn_head");
  CHECK(report.notes.size() == 1);  // of the single file
  CHECK(place.inject("model", scales, "sglang", "sglang").notes[0] ==
        "the scales of 2 KV heads were reduced to their maximum: SGLang has one per layer");
  CHECK(block_of(place, "sglang").find(R"("strategy": "tensor")") != std::string::npos);
}

TEST_CASE("targets: one number for K and V is said where there were two") {
  const Workplace place(test::tiny_config(), {.n_shards = 2});
  KvScales scales;
  scales.layers = {{{0.5f}, {0.25f}}, {{1}, {1}}};
  CHECK(place.inject("model", scales, "out", "tgi-2028").notes ==
        Strings{"K and V share one scale, the larger of the two: 1 layer had two"});
}

TEST_CASE("targets: a scale file is checked against the model and carries its type and heads") {
  const Workplace place(one_layer());
  const InjectReport report = place.inject("model", one_scale(), "s.json", "json");
  CHECK(report.files.size() == 1);
  CHECK(report.files[0].name == "s.json");
  CHECK(report.files[0].how == "written");
  CHECK(report.written_bytes == fs::file_size(place.folder / "s.json"));
  const KvScales back = read_scale_file(place.folder / "s.json");
  CHECK(back.model_type == "llama");
  CHECK(back.n_kv_heads == 2);
  KvScales two = one_scale();
  two.layers.push_back(two.layers[0]);
  CHECK(place.error(two, "json") == "the scales: has scales for 2 layers, the model has 1");
  fs::create_directory(place.folder / "out");
  CHECK(place.error(one_scale(), "json") == "'out': is a folder, expected a scale file to write");
}

TEST_CASE("targets: a scale file is not written into the model, nor over a file unasked") {
  const Workplace place(one_layer());
  const Checkpoint model = Checkpoint::open(place.folder / "model");
  CHECK(test::error_of(
            [&] {
              inject_scales(model, one_scale(), place.folder / "model/s.json", {.target = "json"});
            },
            ErrorKind::usage)
            .ends_with("which is never modified"));
  place.folder.write("s.json", "mine");
  CHECK(test::error_of([&] {
          inject_scales(model, one_scale(), place.folder / "s.json", {.target = "json"});
        }) == quote((place.folder / "s.json").string()) + ": already exists");
  CHECK(test::read_file(place.folder / "s.json") == "mine");
}

constexpr const char* kFp8Block =
    R"({"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"]})";
constexpr const char* kGroups =
    R"({"quant_method": "compressed-tensors", "format": "float-quantized",
        "quantization_status": "compressed", "config_groups": {"group_0": {"targets": ["Linear"]}},
        "ignore": ["lm_head"]})";
constexpr const char* kModelOptBlock =
    R"({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]})";

TEST_CASE("targets: a model of AutoFP8 is extended in AutoFP8's form") {
  for (const std::string target : {"tgi", "vllm", "vllm-rocm", "sglang"}) {
    CAPTURE(target);
    const Workplace place(one_layer());
    place.add_to_config("quantization_config", kFp8Block);
    place.inject("model", one_scale(), "out", target);
    CHECK(
        block_of(place, "out") ==
        R"({"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"], )"
        R"("kv_cache_scheme": "static"})");
    CHECK(place.scale_tensors("out") ==
          Strings{"model.layers.0.self_attn.k_scale", "model.layers.0.self_attn.v_scale"});
  }
}

TEST_CASE("targets: a model of compressed-tensors gets a kv_cache_scheme, per head for vLLM") {
  for (const char* key : {"quantization_config", "compression_config"}) {
    CAPTURE(key);
    const Workplace place(one_layer());
    place.add_to_config(key, kGroups);
    KvScales scales;
    scales.layers = {{{0.5f, 0.25f}, {1, 2}}};
    place.inject("model", scales, "out", "vllm");
    const Json block = place.config_of("out").at(key);
    CHECK(block.at("config_groups").has("group_0"));
    CHECK(block.at("kv_cache_scheme").at("strategy").as_string() == "attn_head");
    CHECK(place.scales_in("out").layers == scales.layers);
    place.inject("model", scales, "out", "tgi");
    CHECK(place.config_of("out").at(key).at("kv_cache_scheme").at("strategy").as_string() ==
          "tensor");
  }
}

TEST_CASE("targets: kv_scale is never written beside a quantization_config, and that is said") {
  const Workplace place(one_layer(), {.n_shards = 2});
  place.add_to_config("quantization_config", kGroups);
  CHECK(place.inject("model", one_scale(), "out", "tgi").notes ==
        Strings{"kv_scale is left out: beside the config of 'compressed-tensors' vLLM would take "
                "it for K's"});
  CHECK(place.scale_tensors("out") ==
        Strings{"model.layers.0.self_attn.k_scale", "model.layers.0.self_attn.v_scale"});
}

TEST_CASE("targets: a model of ModelOpt is extended in both its files, under its own names") {
  const Workplace place(one_layer());
  place.add_to_config("quantization_config", kModelOptBlock);
  place.folder.write(
      "model/hf_quant_config.json",
      R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}})");
  place.inject("model", one_scale(), "out", "vllm");
  CHECK(block_of(place, "out") ==
        R"({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"], )"
        R"("kv_cache_scheme": {"dynamic": false, "num_bits": 8, "type": "float"}})");
  const Json file = Json::read(place.folder / "out/hf_quant_config.json");
  CHECK(file.at("quantization").at("kv_cache_quant_algo").as_string() == "FP8");
  CHECK(file.at("producer").at("name").as_string() == "modelopt");
  CHECK(place.scale_tensors("out") == Strings{"model.layers.0.self_attn.k_proj.k_scale",
                                              "model.layers.0.self_attn.v_proj.v_scale"});
}

TEST_CASE("targets: a model of an early ModelOpt has its quantisation in a file of its own") {
  const Workplace place(one_layer());
  place.folder.write("model/hf_quant_config.json",
                     R"({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": null}})");
  place.inject("model", one_scale(), "out", "sglang");
  CHECK(block_of(place, "out").empty());
  const Json file = Json::read(place.folder / "out/hf_quant_config.json");
  CHECK(file.at("quantization").at("kv_cache_quant_algo").as_string() == "FP8");
}

TEST_CASE("targets: a model whose cache is quantised otherwise is refused") {
  const Workplace place(one_layer());
  place.add_to_config("quantization_config",
                      R"({"quant_method": "compressed-tensors", "config_groups": {"g": {}},
                          "kv_cache_scheme": {"num_bits": 4, "type": "float"}})");
  CHECK(place.error(one_scale(), "vllm") ==
        "'model/config.json': quantization_config.kv_cache_scheme: is "
        "{\"num_bits\": 4, \"type\": \"float\"}, expected a cache of 8-bit floats");
  const Workplace modelopt(one_layer());
  modelopt.folder.write(
      "model/hf_quant_config.json",
      R"({"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}})");
  CHECK(modelopt.error(one_scale(), "vllm") ==
        "'model/hf_quant_config.json': quantization.kv_cache_quant_algo: is 'NVFP4', expected "
        "'FP8'");
}

TEST_CASE("targets: what a runtime cannot take beside a quantisation is refused with the reason") {
  const struct {
    const char* target;
    const char* method;
    const char* reason;
  } cases[] = {
      {"tgi", "modelopt",
       "ModelOpt calls the scales k_proj.k_scale and v_proj.v_scale, which TGI does not read"},
      {"tgi-2028", "fp8",
       "its form is one of FP16 and BF16 models: the branch was never merged, and other weights "
       "were never tried with it"},
      {"vllm", "gptq",
       "only a config of compressed-tensors, fp8 or modelopt makes it read KV scales"},
      {"sglang", "quark",
       "a config of Quark must describe the output of every K and V projection, which is not "
       "written here"},
      {"vllm-rocm", "compressed-tensors",
       "with such a config vLLM does not double the scales on MI300, so that values saturate "
       "early"}};
  for (const auto& wrong : cases) {
    const Workplace place(one_layer());
    place.add_to_config(
        "quantization_config",
        cat(R"({"config_groups": {"g": {}}, "quant_method": ")", wrong.method, "\"}"));
    CHECK(place.error(one_scale(), wrong.target) == cat("'model': is quantised by '", wrong.method,
                                                        "', and cannot take scales for '",
                                                        wrong.target, "': ", wrong.reason));
    CHECK_FALSE(fs::exists(place.folder / "out"));
    CHECK_NOTHROW(place.inject("model", one_scale(), "s.json", "json"));
  }
}

TEST_CASE("targets: GPTQ and AWQ models take scales for TGI, whose weights do not matter") {
  const Workplace place(one_layer());
  place.add_to_config("quantization_config", R"({"quant_method": "gptq", "bits": 4})");
  place.inject("model", one_scale(), "out", "tgi");
  CHECK(block_of(place, "out") == R"({"quant_method": "gptq", "bits": 4})");
  CHECK(place.scales_in("out").layers == one_scale().layers);
}

TEST_CASE("targets: vllm-rocm lists every layer by name, and so wants names it knows") {
  const Workplace place(one_layer());
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(place.config);
  tensors.push_back({"model.layers.0.mlp.experts.0.up_proj.weight", {2, 2}, {1, 2, 3, 4}});
  test::write_tiny_weights(place.folder / "model", tensors, DType::f32);
  CHECK(place.error(one_scale(), "vllm-rocm") ==
        "'model': has experts, and cannot take scales for 'vllm-rocm': vLLM 0.6 to 0.10 quantises "
        "them, whatever is to be left out");
  place.inject("model", one_scale(), "out", "vllm");
  CHECK(block_of(place, "out").find(R"("re:.*experts$")") != std::string::npos);
  tensors.pop_back();
  for (auto& tensor : tensors) tensor.name = "language_" + tensor.name;
  test::write_tiny_weights(place.folder / "model", tensors, DType::f32);
  CHECK(place.error(one_scale(), "vllm-rocm") ==
        "'model': calls its layers 'language_model.layers', and cannot take scales for "
        "'vllm-rocm': every linear layer must be listed by the name that vLLM has for it, which is "
        "only known for 'model.layers'");
}

// transformers gives a layer one scale of shape [1], and refuses to load another.
TEST_CASE("targets: a scale has the shape that the config's own tool writes") {
  const Workplace place(one_layer());
  const auto shape_for = [&](const std::string& target) {
    place.inject("model", one_scale(), "out", target);
    return Checkpoint::open(place.folder / "out").at("model.layers.0.self_attn.k_scale").shape;
  };
  CHECK(shape_for("vllm") == Shape{1});
  CHECK(shape_for("sglang") == Shape{1});
  CHECK(shape_for("vllm-rocm") == Shape{});
  CHECK(shape_for("tgi") == Shape{});
  place.add_to_config("quantization_config", kGroups);
  CHECK(shape_for("tgi") == Shape{1});
}

// transformers takes a model.safetensors for the whole model, and where the config promises scales
// that it does not hold, it runs with what memory holds.
TEST_CASE("targets: beside a compressed-tensors config a single file becomes a first shard") {
  const Workplace place(one_layer());
  const std::string weights = test::read_file(place.folder / "model/model.safetensors");
  const InjectReport report = place.inject("model", one_scale(), "out", "vllm");
  const std::map<std::string, std::string> files = contents(place.folder / "out");
  CHECK(files.count("model.safetensors") == 0);
  CHECK(files.at("model-00001-of-00001.safetensors") == weights);
  const Json index = Json::read(place.folder / "out/model.safetensors.index.json");
  CHECK(index.at("weight_map").at("lm_head.weight").as_string() ==
        "model-00001-of-00001.safetensors");
  CHECK(index.at("weight_map").at("model.layers.0.self_attn.k_scale").as_string() == kShard);
  CHECK(report.notes ==
        Strings{"model.safetensors is called model-00001-of-00001.safetensors: beside a "
                "model.safetensors transformers ignores the index, and would run with scales that "
                "nobody set"});
  // It keeps that name from then on.
  place.inject("out", one_scale(1, 2), "again", "tgi", true);
  CHECK(contents(place.folder / "again").at("model-00001-of-00001.safetensors") == weights);
}

TEST_CASE("targets: a single file whose new name is taken is left alone") {
  const Workplace place(one_layer());
  place.folder.write("model/model-00001-of-00001.safetensors", "x");
  CHECK(place.error(one_scale(), "vllm") ==
        "'model/model-00001-of-00001.safetensors': stands in the way of 'model.safetensors', which "
        "is to get that name");
  place.inject("model", one_scale(), "out", "tgi");
  CHECK(contents(place.folder / "out").at("model-00001-of-00001.safetensors") == "x");
}

TEST_CASE("replace: a single file that is written anew becomes a first shard too") {
  const Workplace place(one_layer());
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(place.config);
  for (const char* name : {"k_scale", "v_scale"}) {
    tensors.push_back({cat("model.layers.0.self_attn.", name), Shape{1}, {3}});
  }
  test::write_tiny_weights(place.folder / "model", tensors, DType::f32);
  place.inject("model", one_scale(), "out", "vllm", true);
  CHECK(contents(place.folder / "out").count("model.safetensors") == 0);
  CHECK(place.scales_in("out").layers == one_scale().layers);
}

// A model whose only shard holds scales among the weights, and one tensor that ends the file.
void write_with_scales(const Workplace& place, const Strings& scales) {
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(place.config);
  for (const std::string& name : scales) tensors.push_back({name, Shape{}, {3}});
  fs::remove(place.folder / "model/model.safetensors");
  test::write_tiny_weights(place.folder / "model", tensors, DType::f32, 2);
}

TEST_CASE("replace: scales among weights are taken out, and only that shard is written anew") {
  const Workplace place(one_layer());
  const std::string at = "model.layers.0.self_attn.";
  // k_proj.k_scale has values no runtime can use elsewhere; q_scale is no scale of the cache.
  write_with_scales(
      place, {at + "k_proj.k_scale", at + "v_proj.v_scale", at + "q_scale", at + "k_zero_point"});
  const Checkpoint source = Checkpoint::open(place.folder / "model");
  const InjectReport report = place.inject("model", one_scale(), "out", "vllm", true);
  const Checkpoint out = Checkpoint::open(place.folder / "out");
  CHECK(place.scale_tensors("out") == Strings{at + "k_scale", at + "v_scale"});
  CHECK(place.scales_in("out").layers == one_scale().layers);
  for (const auto& [name, location] : source.tensors()) {
    CAPTURE(name);
    if (scale_spelling(name)) {
      CHECK((out.find(name) == nullptr || location.entry.shape == Shape{}));
    } else {
      CHECK(out.at(name).shape == location.entry.shape);
      CHECK(out.read(name) == source.read(name));
    }
  }
  CHECK(out.find(at + "q_scale") != nullptr);
  std::map<std::string, std::string> how;
  for (const InjectedFile& file : report.files) how[file.name] = file.how;
  CHECK(how["model-00001-of-00002.safetensors"] != "rewritten");
  CHECK(how["model-00002-of-00002.safetensors"] == "rewritten");
  CHECK(report.notes == Strings{"3 scale tensors of the model were replaced"});
  for (const InjectedFile& file : report.files) {
    CHECK(file.bytes == fs::file_size(place.folder / "out" / file.name));
  }
}

TEST_CASE("replace: the index counts what is there") {
  const Workplace place(one_layer());
  write_with_scales(place, {"model.layers.0.self_attn.kv_scale"});
  place.inject("model", one_scale(), "out", "vllm", true);
  uint64_t bytes = 0;
  const Checkpoint out = Checkpoint::open(place.folder / "out");
  for (const auto& [name, location] : out.tensors()) {
    bytes += location.entry.end - location.entry.begin;
  }
  const Json index = Json::read(place.folder / "out/model.safetensors.index.json");
  CHECK(index.at("metadata").at("total_size").as_int() == static_cast<int64_t>(bytes));
}

TEST_CASE("replace: without it, scales that are there are in the way") {
  const Workplace place(one_layer());
  write_with_scales(place, {"model.layers.0.self_attn.kv_scale"});
  CHECK(place.error(one_scale(), "vllm") == "'model': already carries scales (kv_scale)");
}

TEST_CASE("replace: a shard of the new one's name that holds weights is kept out of harm") {
  const Workplace place(one_layer());
  fs::rename(place.folder / "model/model.safetensors", place.folder / "model" / kShard);
  std::string map;
  for (const auto& tensor : test::tiny_tensors(place.config)) {
    map += cat(map.empty() ? "" : ", ", '"', tensor.name, "\": \"", kShard, '"');
  }
  place.folder.write("model/model.safetensors.index.json",
                     cat(R"({"metadata": {}, "weight_map": {)", map, "}}"));
  CHECK(place.error(one_scale(), "vllm", true) == cat("'model/", kShard,
                                                      "': holds 'lm_head.weight', expected nothing "
                                                      "but KV scales"));
}

TEST_CASE("replace: a block for the cache alone goes with its scales, one of weights stays") {
  const Workplace place(one_layer());
  place.inject("model", one_scale(), "first", "vllm");
  place.inject("first", one_scale(), "second", "tgi", true);
  CHECK(block_of(place, "second").empty());
  const Workplace quantised(one_layer());
  quantised.add_to_config("quantization_config", kGroups);
  quantised.inject("model", one_scale(), "first", "vllm");
  quantised.inject("first", one_scale(1, 2), "second", "tgi", true);
  CHECK(quantised.config_of("second").at("quantization_config").at("config_groups").has("group_0"));
  CHECK(quantised.scales_in("second").layers == one_scale(1, 2).layers);
}

}  // namespace
}  // namespace fp8kv
