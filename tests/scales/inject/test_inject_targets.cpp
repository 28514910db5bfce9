#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "checkpoint/model/read_model_config.h"
#include "json/json.h"
#include "scales/write/inject.h"
#include "scales/write/scale_patch.h"
#include "support/expect_error.h"
#include "support/workplaces/inject_place.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using test::block_of;
using test::contents;
using test::kGroups;
using test::one_layer;
using test::one_scale;
using test::random_scales;

constexpr const char* kShard = "model-kv-scales.safetensors";

// The scales as a form can carry them. Forms without heads take the maximum over heads. A form with
// one number for K and V takes the larger one.
std::vector<LayerScales> carried(const KvScales& scales, const std::string& target) {
  if (target == "vllm" || target == "json") return scales.layers;
  std::vector<LayerScales> layers = per_tensor(scales).layers;
  if (target != "tgi-2028") return layers;
  for (LayerScales& layer : layers) layer.k = layer.v = {std::max(layer.k[0], layer.v[0])};
  return layers;
}

Strings target_names() {
  Strings names;
  for (const InjectTarget& target : inject_targets()) names.push_back(target.name);
  return names;
}

}  // namespace

TEST_CASE("targets: what is put in comes out bit for bit, in every form that can carry it") {
  Rng rng(17);
  for (int round = 0; round < 12; ++round) {
    test::TinyConfig config = test::tiny_config();
    config.n_layers = static_cast<int64_t>(1 + rng.next() % 12);
    config.n_kv_heads = round % 3 == 0 ? 1 : round % 3 == 1 ? 2 : 4;
    const test::InjectPlace place(config, {.n_shards = 1 + round % 3});
    const KvScales scales = random_scales(config, rng, round % 2 == 0);
    for (const std::string& target : target_names()) {
      CAPTURE(target);
      const std::string out = "to-" + target;
      place.inject("model", scales, out, target);
      const KvScales back = place.scales_in(out);
      CHECK(back.layers == carried(scales, target));
      CHECK(back.format == KvFormat::e4m3fn);
      CHECK(back.model_type == "llama");
      CHECK(back.n_kv_heads == config.n_kv_heads);
    }
  }
}

TEST_CASE("targets: through every pair of forms nothing is lost that both can carry") {
  Rng rng(23);
  for (int round = 0; round < 4; ++round) {
    test::TinyConfig config = test::tiny_config();
    config.n_layers = static_cast<int64_t>(1 + rng.next() % 4);
    const test::InjectPlace place(config, {.n_shards = 1 + round % 2});
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
  const test::InjectPlace place(test::tiny_config(), {.n_shards = 2});
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
  const test::InjectPlace place(one_layer());
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
  const test::InjectPlace place;
  Rng rng(31);
  for (const InjectTarget& target : inject_targets()) {
    if (target.is_file) continue;
    CAPTURE(target.name);
    place.inject("model", random_scales(place.config, rng, false), "out", target.name);
    CHECK(read_model_config(Checkpoint::open(place.folder / "out")).n_layers() == 2);
  }
}

TEST_CASE("targets: the blocks of a model that is not quantised") {
  const test::InjectPlace place(one_layer());
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
  const test::InjectPlace place(one_layer());
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
  CHECK(report.notes.size() == 1);  // about the single file
  CHECK(place.inject("model", scales, "sglang", "sglang").notes[0] ==
        "the scales of 2 KV heads were reduced to their maximum: SGLang has one per layer");
  CHECK(block_of(place, "sglang").find(R"("strategy": "tensor")") != std::string::npos);
}

TEST_CASE("targets: one number for K and V is said where there were two") {
  const test::InjectPlace place(test::tiny_config(), {.n_shards = 2});
  KvScales scales;
  scales.layers = {{{0.5f}, {0.25f}}, {{1}, {1}}};
  CHECK(place.inject("model", scales, "out", "tgi-2028").notes ==
        Strings{"K and V share one scale, the larger of the two: 1 layer had two"});
}

TEST_CASE("targets: a scale file is checked against the model and carries its type and heads") {
  const test::InjectPlace place(one_layer());
  const InjectReport report = place.inject("model", one_scale(), "s.json", "json");
  CHECK(report.files.size() == 1);
  CHECK(report.files[0].name == "s.json");
  CHECK(report.files[0].made == FileMade::written);
  CHECK(report.written_bytes == fs::file_size(place.folder / "s.json"));
  const KvScales back = read_scale_file(place.folder / "s.json");
  CHECK(back.model_type == "llama");
  CHECK(back.n_kv_heads == 2);
  KvScales two = one_scale();
  two.layers.push_back(two.layers[0]);
  CHECK(place.error(two, "json") == "the scales: is for 2 layers, the model has 1");
  fs::create_directory(place.folder / "out");
  CHECK(place.error(one_scale(), "json") == "'out': is a folder, expected a scale file to write");
}

TEST_CASE("targets: a scale file is not written into the model, nor over a file unasked") {
  const test::InjectPlace place(one_layer());
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

TEST_CASE("targets: vllm-rocm lists every layer by name, and so wants names it knows") {
  const test::InjectPlace place(one_layer());
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(place.config);
  tensors.push_back({"model.layers.0.mlp.experts.0.up_proj.weight", {2, 2}, {1, 2, 3, 4}});
  test::write_tiny_weights(place.folder / "model", tensors, DType::f32);
  CHECK(place.error(one_scale(), "vllm-rocm") ==
        "'model': has experts, and cannot take scales for 'vllm-rocm': vLLM 0.6 to 0.10 quantises "
        "them, whatever is to be left out");
  place.inject("model", one_scale(), "out", "vllm");
  CHECK(block_of(place, "out").find(R"("re:.*experts$")") != std::string::npos);
  std::filesystem::remove_all(place.folder / "out");
  tensors.pop_back();
  for (auto& tensor : tensors) tensor.name = "language_" + tensor.name;
  test::write_tiny_weights(place.folder / "model", tensors, DType::f32);
  CHECK(place.error(one_scale(), "vllm-rocm") ==
        "'model': calls its layers 'language_model.layers', and cannot take scales for "
        "'vllm-rocm': every linear layer must be listed by the name that vLLM has for it, which is "
        "only known for 'model.layers'");
}

// transformers gives a layer one scale of shape [1], and loads no other shape.
TEST_CASE("targets: a scale has the shape that the config's own tool writes") {
  const test::InjectPlace place(one_layer());
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

// transformers takes model.safetensors for the whole model. If the config promises scales that the
// file lacks, it runs with uninitialised memory.
TEST_CASE("targets: beside a compressed-tensors config a single file becomes a first shard") {
  const test::InjectPlace place(one_layer());
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
  // A second injection keeps that name.
  place.inject("out", one_scale(1, 2), "again", "tgi", true);
  CHECK(contents(place.folder / "again").at("model-00001-of-00001.safetensors") == weights);
}

TEST_CASE("targets: a single file whose new name is taken is left alone") {
  const test::InjectPlace place(one_layer());
  place.folder.write("model/model-00001-of-00001.safetensors", "x");
  CHECK(place.error(one_scale(), "vllm") ==
        "'model/model-00001-of-00001.safetensors': stands in the way of 'model.safetensors', which "
        "is to get that name");
  place.inject("model", one_scale(), "out", "tgi");
  CHECK(contents(place.folder / "out").at("model-00001-of-00001.safetensors") == "x");
}

}  // namespace fp8kv
