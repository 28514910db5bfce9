// Models where only some layers write a KV cache, from the checkpoint to a scale file and back.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/checkpoint.h"
#include "json/json.h"
#include "scales/read/find_scales.h"
#include "scales/scale_file.h"
#include "scales/scale_names.h"
#include "scales/write/inject.h"
#include "support/expect_error.h"
#include "support/models/hybrid_checkpoint.h"

namespace fp8kv {
namespace {

using Names = std::vector<std::string>;

struct Place {
  explicit Place(const test::Hybrid& model) { test::write_hybrid(folder, "model", model); }

  void inject(const KvScales& scales, const std::string& target, const std::string& out) const {
    inject_scales(Checkpoint::open(folder / "model"), scales, folder / out,
                  {.target = target, .overwrite = true});
  }
  Names names_in(const std::string& name) const {
    return kv_scale_names(Checkpoint::open(folder / name));
  }
  std::string error(const KvScales& scales, const std::string& target = "vllm") const {
    return test::error_of([&] { inject(scales, target, "out"); });
  }

  test::TempDir folder;
};

TEST_CASE("hybrid: what is put in comes out, and goes in again as the same bytes") {
  for (const test::Hybrid& model : test::hybrids()) {
    const Place place(model);
    const KvScales scales = test::hybrid_scales(model);
    for (const std::string target : {"tgi", "vllm", "sglang"}) {
      CAPTURE(model.config);
      CAPTURE(target);
      place.inject(scales, target, "first");
      const KvScales found = scales_at(place.folder / "first").scales;
      CHECK(found.layers == scales.layers);
      place.folder.write("s.json", scale_file_text(found));
      const KvScales again = scales_at(place.folder / "s.json").scales;
      CHECK(again == found);
      place.inject(again, target, "second");
      CHECK(scales_at(place.folder / "second").scales == found);
      const std::string shard = "model-kv-scales.safetensors";
      CHECK(test::read_file(place.folder / ("second/" + shard)) ==
            test::read_file(place.folder / ("first/" + shard)));
    }
  }
}

TEST_CASE("hybrid: scales stand beside the K projection of their layer, under its own name") {
  const auto names = [](const test::Hybrid& model, const std::string& target) {
    const Place place(model);
    place.inject(test::hybrid_scales(model), target, "out");
    return place.names_in("out");
  };
  CHECK(names(test::nemotron_h(), "vllm") ==
        Names{"backbone.layers.1.mixer.k_scale", "backbone.layers.1.mixer.v_scale",
              "backbone.layers.3.mixer.k_scale", "backbone.layers.3.mixer.v_scale"});
  CHECK(names(test::qwen3_next(), "tgi-2028") ==
        Names{"model.layers.1.self_attn.kv_scale", "model.layers.3.self_attn.kv_scale"});
  CHECK(names(test::qwen3_5(), "sglang") ==
        Names{"model.language_model.layers.2.self_attn.k_scale",
              "model.language_model.layers.2.self_attn.v_scale"});
}

TEST_CASE("hybrid: a scale file for the model tells all its layers, also the last ones") {
  const test::Hybrid model = test::nemotron_h();
  const Place place(model);
  KvScales scales = test::hybrid_scales(model);
  scales.layers.resize(4);  // like a file of vLLM's schema, which stops there
  const auto amax = [&](size_t layer) {
    const LayerScales& of = scales.layers[layer];
    return LayerAmax{{448 * of.k[0], 1}, {448 * of.v[0], 1}, {3, 1}};
  };
  scales.provenance.amax = {{}, amax(1), {}, amax(3)};
  place.inject(scales, "json", "s.json");
  const KvScales written = read_scale_file(place.folder / "s.json");
  CHECK(written.layers == test::hybrid_scales(model).layers);
  CHECK(written.provenance.amax == std::vector<LayerAmax>{{}, amax(1), {}, amax(3), {}});
  CHECK(written.n_kv_heads == 2);
}

TEST_CASE("hybrid: a K projection that contradicts the config leaves open who has a cache") {
  test::Hybrid model = test::nemotron_h();
  const KvScales scales = test::hybrid_scales(model);
  model.config = json_with_member(model.config, "head_dim", "4");
  const Place place(model);
  CHECK(place.error(scales) ==
        "the scales: has no scales for layers 0, 2 and 4, and which layers of the model write a KV "
        "cache is not known: 'backbone.layers.1.mixer.k_proj.weight': has 4 rows, but config.json "
        "makes it 2 KV heads of 4");
}

TEST_CASE("hybrid: scales for other layers than those with a cache are refused") {
  const test::Hybrid model = test::nemotron_h();
  const Place place(model);
  KvScales scales = test::hybrid_scales(model);
  scales.layers[3] = {};
  CHECK(place.error(scales) ==
        "the scales: has no scales for layer 3, where the model writes a KV cache");
  scales = test::hybrid_scales(model);
  scales.layers[0] = scales.layers[2] = {{1}, {1}};
  CHECK(place.error(scales) ==
        "the scales: has scales for layers 0 and 2, where the model writes no KV cache");
  scales = test::hybrid_scales(model);
  scales.layers.resize(6);
  CHECK(place.error(scales, "json") == "the scales: is for 6 layers, the model has 5");
}

}  // namespace
}  // namespace fp8kv
