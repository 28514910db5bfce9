#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
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

constexpr const char* kShard = "model-kv-scales.safetensors";

// Writes a model in two shards, with these scales among the weights.
void write_with_scales(const test::InjectPlace& place, const Strings& scales) {
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(place.config);
  for (const std::string& name : scales) tensors.push_back({name, Shape{}, {3}});
  fs::remove(place.folder / "model/model.safetensors");
  test::write_tiny_weights(place.folder / "model", tensors, DType::f32, 2);
}

}  // namespace

TEST_CASE("replace: a single file that is written anew becomes a first shard too") {
  const test::InjectPlace place(one_layer());
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(place.config);
  for (const char* name : {"k_scale", "v_scale"}) {
    tensors.push_back({cat("model.layers.0.self_attn.", name), Shape{1}, {3}});
  }
  test::write_tiny_weights(place.folder / "model", tensors, DType::f32);
  place.inject("model", one_scale(), "out", "vllm", true);
  CHECK(contents(place.folder / "out").count("model.safetensors") == 0);
  CHECK(place.scales_in("out").layers == one_scale().layers);
}

TEST_CASE("replace: scales among weights are taken out, and only that shard is written anew") {
  const test::InjectPlace place(one_layer());
  const std::string at = "model.layers.0.self_attn.";
  // k_proj.k_scale has values that no runtime can use elsewhere.
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
  CHECK(out.find(at + "q_scale") == nullptr);
  std::map<std::string, std::string> how;
  for (const InjectedFile& file : report.files) how[file.name] = made_name(file.made);
  CHECK(how.at("model-00001-of-00002.safetensors") != "rewritten");
  CHECK(how.at("model-00002-of-00002.safetensors") == "rewritten");
  CHECK(
      report.notes ==
      Strings{"4 scale tensors of the model were replaced",
              "scales of Q are among them, and no new ones were written: --q-scales writes some"});
  for (const InjectedFile& file : report.files) {
    CHECK(file.bytes == fs::file_size(place.folder / "out" / file.name));
  }
}

TEST_CASE("replace: the index counts what is there") {
  const test::InjectPlace place(one_layer());
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

// extract and run would refuse the result.
TEST_CASE("replace: what looks like a scale and is in no known form is in the way") {
  const test::InjectPlace place(one_layer());
  write_with_scales(place,
                    {"model.layers.0.self_attn.kv_scale", "model.layers.0.attention.k_scales"});
  CHECK(
      place.error(one_scale(), "vllm", true) ==
      "'model': has 'model.layers.0.attention.k_scales', which looks like a KV scale, but is in a "
      "form that replace does not know and would leave there");
}

TEST_CASE("replace: without it, scales that are there are in the way") {
  const test::InjectPlace place(one_layer());
  write_with_scales(place, {"model.layers.0.self_attn.kv_scale"});
  CHECK(place.error(one_scale(), "vllm") == "'model': already carries scales (kv_scale)");
}

TEST_CASE("replace: a shard of the new one's name that holds weights is kept out of harm") {
  const test::InjectPlace place(one_layer());
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
  const test::InjectPlace place(one_layer());
  place.inject("model", one_scale(), "first", "vllm");
  place.inject("first", one_scale(), "second", "tgi", true);
  CHECK(block_of(place, "second").empty());
  const test::InjectPlace quantised(one_layer());
  quantised.add_to_config("quantization_config", kGroups);
  quantised.inject("model", one_scale(), "first", "vllm");
  quantised.inject("first", one_scale(1, 2), "second", "tgi", true);
  CHECK(quantised.config_of("second").at("quantization_config").at("config_groups").has("group_0"));
  CHECK(quantised.scales_in("second").layers == one_scale(1, 2).layers);
}

}  // namespace fp8kv
