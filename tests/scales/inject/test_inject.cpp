#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "checkpoint/identity/fingerprint.h"
#include "config/describe/describe_model.h"
#include "json/json.h"
#include "scales/read/find_scales.h"
#include "scales/write/inject.h"
#include "scales/write/scale_patch.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "support/workplaces/inject_workplace.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

using test::scales_for;
using test::Workplace;

TEST_CASE("inject: what is put in comes out bit for bit, whatever the shape of the model") {
  Rng rng(5);
  for (int round = 0; round < 12; ++round) {
    test::TinyConfig config = test::tiny_config();
    config.n_layers = static_cast<int64_t>(1 + rng.next() % 12);
    config.n_kv_heads = round % 3 == 0 ? 1 : round % 3 == 1 ? 2 : 4;
    config.dtype = round % 2 == 0 ? DType::bf16 : DType::f16;
    const Workplace place(config, {.n_shards = 1 + round % 3});
    const KvScales scales = scales_for(config, rng.next(), round % 4 == 0);
    place.inject(scales);
    const KvScales back = scales_at(Checkpoint::open(place.out())).scales;
    CHECK(back.layers == per_tensor(scales).layers);
    CHECK(back.format == KvFormat::e4m3fn);
    CHECK(back.model_type == "llama");
    CHECK(back.n_kv_heads == config.n_kv_heads);
  }
}

TEST_CASE("inject: the new shard has three F32 scalars per layer, and the rest is as it was") {
  const Workplace place;
  const KvScales scales = scales_for(place.config);
  place.inject(scales);
  const Checkpoint out = Checkpoint::open(place.out());
  const SafetensorsHeader shard = read_safetensors_header(place.out() / kScaleShard);
  CHECK(shard.metadata == std::map<std::string, std::string>{{"format", "pt"}});
  Strings names;
  for (const TensorEntry& entry : shard.tensors) {
    CHECK(entry.dtype == DType::f32);
    CHECK(entry.shape == Shape{});
    names.push_back(entry.name);
  }
  CHECK(names == Strings{"model.layers.0.self_attn.k_scale", "model.layers.0.self_attn.kv_scale",
                         "model.layers.0.self_attn.v_scale", "model.layers.1.self_attn.k_scale",
                         "model.layers.1.self_attn.kv_scale", "model.layers.1.self_attn.v_scale"});
  const float largest = std::max(scales.layers[1].k[0], scales.layers[1].v[0]);
  float written = 0;
  const std::string bytes = out.read("model.layers.1.self_attn.kv_scale");
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&written));
  CHECK(written == largest);
  CHECK(out.tensors().size() == place.open().tensors().size() + 6);
  CHECK(test::read_file(place.out() / "model.safetensors") ==
        test::read_file(place.model() / "model.safetensors"));
}

TEST_CASE("inject: the config keeps every byte but for the one member") {
  const Workplace place;
  const std::string config =
      "{\"num_hidden_layers\": 2,   \"num_attention_heads\":4,\n\t\"num_key_value_heads\": 2.0,\n"
      "  \"hidden_size\": 32, \"model_type\": \"llama\", \"x\": [1e5, \"\\u00e9\"],\n"
      "  \"architectures\": [\"LlamaForCausalLM\"]\n}";
  place.folder.write("model/config.json", config);
  place.inject(scales_for(place.config));
  std::string expected = config;
  const std::string last = "[\"LlamaForCausalLM\"]";
  expected.insert(expected.find(last) + last.size(),
                  ",\"kv_cache_torch_dtype\": \"float8_e4m3fn\"");
  CHECK(test::read_file(place.out() / "config.json") == expected);
}

TEST_CASE("inject: an index that is there grows, in the format of Hugging Face") {
  const Workplace place;
  fs::rename(place.model() / "model.safetensors", place.model() / "weights.safetensors");
  std::string map;
  for (const auto& tensor : test::tiny_tensors(place.config)) {
    map += cat(map.empty() ? "" : ",", quote(tensor.name), ":'weights.safetensors'");
  }
  std::string index = cat("{'weight_map':{", map,
                          "},'metadata':{'total_size':1000.0,'total_parameters':7,'by':'me'}}");
  std::replace(index.begin(), index.end(), '\'', '"');
  place.folder.write("model/model.safetensors.index.json", index);
  place.inject(scales_for(place.config));
  const std::string text = test::read_file(place.out() / "model.safetensors.index.json");
  CHECK(
      text.starts_with("{\n  \"metadata\": {\n    \"total_parameters\": 7,\n    \"by\": \"me\",\n"
                       "    \"total_size\": 1024\n  },\n  \"weight_map\": {\n"
                       "    \"lm_head.weight\": \"weights.safetensors\",\n"
                       "    \"model.embed_tokens.weight\": \"weights.safetensors\",\n"));
  CHECK(
      text.ends_with("    \"model.layers.1.self_attn.v_scale\": \"model-kv-scales.safetensors\",\n"
                     "    \"model.norm.weight\": \"weights.safetensors\"\n  }\n}\n"));
  const Json names = Json::parse(text, "index").at("weight_map");
  for (size_t i = 1; i < names.size(); ++i) CHECK(names.key(i - 1) < names.key(i));
}

TEST_CASE("inject: a single-file model gets an index that names both files, and a note") {
  const Workplace place;
  const InjectReport report = place.inject(scales_for(place.config));
  const Json index = Json::read(place.out() / "model.safetensors.index.json");
  uint64_t weight_bytes = 0;
  for (const auto& tensor : test::tiny_tensors(place.config))
    weight_bytes += tensor.values.size() * 4;
  CHECK(index.at("metadata").at("total_size").as_int() == static_cast<int64_t>(weight_bytes + 24));
  CHECK(index.at("weight_map").at("lm_head.weight").as_string() == "model.safetensors");
  CHECK(index.at("weight_map").at("model.layers.0.self_attn.k_scale").as_string() == kScaleShard);
  CHECK(report.notes ==
        Strings{"transformers prefers model.safetensors and so ignores the index and the scales: "
                "there the model works as before"});
}

TEST_CASE("inject: the names follow those of the checkpoint") {
  const Workplace place;
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(place.config);
  for (auto& tensor : tensors) tensor.name = "language_" + tensor.name;
  test::write_tiny_weights(place.model(), tensors, DType::f32);
  place.inject(scales_for(place.config));
  CHECK(Checkpoint::open(place.out()).find("language_model.layers.1.self_attn.kv_scale"));
}

TEST_CASE("inject: a model without K projections where they should be is refused") {
  const Workplace place;
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(place.config);
  const auto write_without = [&](const std::string& gone) {
    std::vector<test::TinyTensor> kept;
    for (const auto& tensor : tensors) {
      if (tensor.name.find(gone) == std::string::npos) kept.push_back(tensor);
    }
    test::write_tiny_weights(place.model(), kept, DType::f32);
  };
  write_without("k_proj");
  CHECK(place.error(scales_for(place.config)) ==
        "'model': has no stacks of layers with K projections, such as "
        "*.layers.N.self_attn.k_proj.*, expected one");
  write_without("0.self_attn.k_proj");
  CHECK(place.error(scales_for(place.config)) ==
        "'model': has no K projection in layer 0 of 'model.layers', where there are scales to put");
}

TEST_CASE("inject: scales for FNUZ are halved, those of heads reduced, and both is said") {
  const Workplace place(test::tiny_config(), {.n_shards = 2});
  KvScales scales = scales_for(place.config);
  scales.layers = {{{0.5f, 0.25f}, {1, 2}}, {{3, 4}, {8, 6}}};
  scales.provenance.observation = Observation::before_rope;
  const InjectReport report = place.inject(with_format(scales, KvFormat::e4m3fnuz));
  CHECK(scales_at(Checkpoint::open(place.out())).scales.layers ==
        std::vector<LayerScales>{{{0.5f}, {2}}, {{4}, {8}}});
  CHECK(report.notes ==
        Strings{"scales for E4M3FNUZ were halved to those for E4M3FN",
                "the scales of 2 KV heads were reduced to their maximum: TGI has one per layer",
                "K was observed before RoPE, but is cached after it, where a value can be up to "
                "1.41 times as large and then saturates"});
}

TEST_CASE("inject: scales that are all 1 are written with a word") {
  const Workplace place(test::tiny_config(), {.n_shards = 2});
  KvScales scales = scales_for(place.config);
  scales.layers = {{{1}, {1}}, {{1}, {1}}};
  CHECK(place.inject(scales).notes ==
        Strings{"every scale is 1, which is also what runtimes use when there is none"});
}

TEST_CASE("inject: scales that do not fit or cannot be used are refused, and nothing is written") {
  const Workplace place;
  const InjectOptions options{.target = "tgi", .scales_name = "'s.json'"};
  test::TinyConfig other = place.config;
  other.n_layers = 3;
  CHECK(place.error(scales_for(other), options) == "'s.json': is for 3 layers, the model has 2");
  other = place.config;
  other.n_kv_heads = 4;
  CHECK(place.error(scales_for(other), options) ==
        "'s.json': has scales for 4 KV heads, the model has 2");
  other = place.config;
  other.model_type = "qwen2";
  CHECK(place.error(scales_for(other), options) ==
        "'s.json': is for model_type 'qwen2', the model is 'llama'");
  KvScales zero = scales_for(place.config);
  zero.layers[1].k[0] = 0;
  CHECK(place.error(zero, options) ==
        "'s.json': layer 1: the K scale is 0, expected a positive, finite, normal number");
  KvScales e5m2 = scales_for(place.config);
  e5m2.format = KvFormat::e5m2;
  CHECK(place.error(e5m2, options) == "scales made for float8_e5m2 cannot serve float8_e4m3fn");
  CHECK(place.beside().empty());
}

TEST_CASE("inject: scales with the fingerprint of another model are refused") {
  const Workplace place;
  KvScales scales = scales_for(place.config);
  const std::string own = model_fingerprint(place.open(), test::model_of(place.config));
  scales.provenance.model_fingerprint = own;
  CHECK_NOTHROW(place.inject(scales, {.target = "tgi", .dry_run = true}));
  scales.provenance.model_fingerprint = "kv-proj-v1:00";
  CHECK(place.error(scales) ==
        cat("the scales: was calibrated on another model than 'model': the K and V projections are "
            "others (",
            own, " instead of kv-proj-v1:00)"));
  CHECK(place.beside().empty());
}

TEST_CASE("inject: a checkpoint that carries scales already is refused") {
  const Workplace place;
  const KvScales scales = scales_for(place.config);
  place.inject(scales);
  const Checkpoint injected = Checkpoint::open(place.out());
  CHECK(place.without_folder(test::error_of([&] {
    inject_scales(injected, scales, place.folder / "again", {.target = "tgi"});
  })) == "'out': already carries scales (kv_scale and k_scale/v_scale)");
  place.folder.write(cat("model/", kScaleShard), "left over");
  CHECK(place.error(scales, {.target = "tgi", .overwrite = true}) ==
        "'model': already has a file 'model-kv-scales.safetensors'");
}

TEST_CASE("inject: real checkpoints of every layout take scales and give them back") {
  for (const char* name :
       {"stories260K-hf-f32", "stories260K-hf-bf16-sharded", "stories260K-hf-f16-untied"}) {
    const auto path = test::shared_data(cat("models/", name));
    if (!path) return;
    const test::TempDir folder;
    const Checkpoint source = Checkpoint::open(*path);
    const ModelDescription model = describe_model(source.config());
    test::TinyConfig alike;
    alike.model_type = model.model_type;
    alike.n_layers = model.n_layers();
    alike.n_kv_heads = model.n_kv_heads();
    KvScales scales = scales_for(alike, 7);
    scales.provenance.model_fingerprint = model_fingerprint(source, model);
    inject_scales(source, scales, folder / "out", {.target = "tgi"});
    const Checkpoint out = Checkpoint::open(folder / "out");
    CHECK(scales_at(out).scales.layers == scales.layers);
    CHECK(model_fingerprint(out, describe_model(out.config())) ==
          scales.provenance.model_fingerprint);
  }
}

}  // namespace
}  // namespace fp8kv
