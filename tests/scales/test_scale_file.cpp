#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "core/numbers/half.h"
#include "scales/scale_file.h"
#include "support/expect_error.h"
#include "support/scale_texts.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using test::error_in;
using test::example;
using test::parse;
using test::plain;
using test::with;

constexpr const char* kExampleText = R"({
  "model_type": "llama",
  "kv_cache": {
    "dtype": "float8_e4m3fn",
    "scaling_factor": {
      "0": {
        "0": 0.75,
        "1": 2
      }
    }
  },
  "fp8kv": {
    "schema": "fp8kv.scales/1",
    "tool_version": "0.1.0",
    "source": "fp8kv calibrate",
    "format": "float8_e4m3fn",
    "granularity": "head",
    "headroom": 1.25,
    "observation": "post_rope",
    "compute_dtype": "float16",
    "model": {
      "fingerprint": "kv-proj-v1:00ff",
      "n_layers": 2,
      "n_kv_heads": 2
    },
    "counted": {
      "documents": 7,
      "windows": 9,
      "tokens": 1234,
      "data": [
        {
          "name": "a \"b\".txt",
          "bytes": 5000000000,
          "sha256": "ab12"
        }
      ]
    },
    "k_scale": [
      [0.5, 0.10000000149011612],
      [0.03125, 2]
    ],
    "v_scale": [
      [0.25, 0.75],
      [1.5, 1]
    ],
    "amax": {
      "k": [
        [224, 44.79999923706055],
        [14, 896]
      ],
      "v": [
        [112, 336],
        [672, 448]
      ],
      "q": [
        [3, 4],
        [5, 0]
      ]
    }
  }
}
)";

TEST_CASE("scale_file: the whole text of a file with everything in it") {
  CHECK(scale_file_text(example()) == kExampleText);
}

TEST_CASE("scale_file: what is written reads back equal") {
  CHECK(parse(kExampleText) == example());
}

TEST_CASE("scale_file: a policy stands behind the headroom and reads back") {
  KvScales scales = example();
  scales.provenance.policy = "p99.9";
  const std::string text = scale_file_text(scales);
  CHECK(text.find("    \"headroom\": 1.25,\n    \"policy\": \"p99.9\",\n    \"observation\"") !=
        text.npos);
  CHECK(parse(text) == scales);
}

TEST_CASE("scale_file: a cache of latents is told, and another kind of cache is refused") {
  KvScales scales = example();
  scales.latent = true;
  for (LayerScales& layer : scales.layers) layer.v = layer.k;
  const std::string text = scale_file_text(scales);
  CHECK(text.find("\"cache\": \"latent\"") != text.npos);
  CHECK(parse(text) == scales);
  CHECK(scale_file_text(example()).find("\"cache\"") == std::string::npos);
  CHECK(error_in(with(text, "\"latent\"", "\"folded\"")) ==
        "'s.json': fp8kv.cache: is 'folded', expected 'latent'");
}

TEST_CASE("scale_file: what a checkpoint told of its scales is kept") {
  KvScales scales = example();
  scales.provenance.source = "modelopt-0.27";
  scales.provenance.producer = "modelopt";
  scales.provenance.producer_version = "0.29.0";
  scales.provenance.stored_dtype = "BF16";
  scales.provenance.observer = "static_minmax";
  const std::string text = scale_file_text(scales);
  CHECK(parse(text) == scales);
  CHECK(text.find("    \"source\": \"modelopt-0.27\",\n"
                  "    \"producer\": {\n"
                  "      \"name\": \"modelopt\",\n"
                  "      \"version\": \"0.29.0\"\n"
                  "    },\n"
                  "    \"stored_dtype\": \"BF16\",\n"
                  "    \"observer\": \"static_minmax\",\n") != text.npos);
  scales.provenance.producer_version = "";
  CHECK(parse(scale_file_text(scales)) == scales);
}

TEST_CASE("scale_file: what is not known is left out") {
  KvScales scales;
  scales.layers = {{{0.5f}, {0.25f}}};
  CHECK(scale_file_text(scales) == R"({
  "model_type": null,
  "kv_cache": {
    "dtype": "float8_e4m3fn",
    "scaling_factor": {
      "0": {
        "0": 0.5
      }
    }
  },
  "fp8kv": {
    "schema": "fp8kv.scales/1",
    "format": "float8_e4m3fn",
    "granularity": "tensor",
    "headroom": 1,
    "model": {
      "n_layers": 1
    },
    "k_scale": [
      [0.5]
    ],
    "v_scale": [
      [0.25]
    ]
  }
}
)");
  CHECK(parse(scale_file_text(scales)) == scales);
}

// A random positive normal float.
float random_scale(Rng& rng) {
  const uint64_t bits = rng.next();
  return float_from_bits(static_cast<uint32_t>((1 + bits % 245) << 23 | (bits >> 40 & 0x7FFFFF)));
}

TEST_CASE("scale_file: random scales of any magnitude and shape come back bit for bit") {
  Rng rng(4);
  for (int round = 0; round < 200; ++round) {
    KvScales scales = example();
    scales.provenance.amax.clear();
    scales.layers.resize(1 + rng.next() % 40);
    scales.n_kv_heads = static_cast<int64_t>(1 + rng.next() % 9);
    const size_t heads = rng.next() % 2 ? static_cast<size_t>(scales.n_kv_heads) : 1;
    for (LayerScales& layer : scales.layers) {
      layer = {};
      for (size_t head = 0; head < heads; ++head) layer.k.push_back(random_scale(rng));
      for (size_t head = 0; head < heads; ++head) layer.v.push_back(random_scale(rng));
    }
    CHECK(parse(scale_file_text(scales)) == scales);
  }
}

TEST_CASE("scale_file: a published vLLM file reads to its exact values") {
  const auto path = test::shared_data("kv-scales/vllm-llama2-7b.kv_cache_scales.json");
  if (!path) return;
  const KvScales scales = read_scale_file(*path);
  CHECK(scales.model_type == "llama");
  CHECK(scales.n_kv_heads == 0);
  CHECK(scales.provenance.source == "vllm-json");
  REQUIRE(scales.layers.size() == 32);
  CHECK(scales.layers[0] == LayerScales{{0.0152239128947258f}, {0.0152239128947258f}});
  CHECK(scales.layers[13].k[0] == 0.040771484375f);
  CHECK(scales.layers[31].v[0] == 0.0482352152466774f);
}

TEST_CASE("scale_file: several ranks that agree are one, in any order of keys") {
  const KvScales scales =
      parse(plain(R"({"1": {"1": 0.25, "0": 0.5}, "0": {"0": 0.5, "1": 0.25}})"));
  CHECK(scales.layers == std::vector<LayerScales>{{{0.5f}, {0.5f}}, {{0.25f}, {0.25f}}});
}

TEST_CASE("scale_file: the model type may be null") {
  const std::string text = with(plain(R"({"0": {"0": 0.5}})"), R"("llama")", "null");
  CHECK(parse(text).model_type == "");
}

TEST_CASE("scale_file: unknown keys are ignored") {
  const std::string text = with(kExampleText, "\"granularity\"", "\"later\": [1], \"granularity\"");
  CHECK(parse(text) == example());
}

TEST_CASE("scale_file: ranks that disagree are both shown") {
  CHECK(error_in(plain(R"({"0": {"0": 0.5, "1": 0.25}, "1": {"0": 0.5, "1": 0.375}})")) ==
        "'s.json': kv_cache.scaling_factor: layer 1 is 0.25 in rank 0 and 0.375 in rank 1, "
        "expected the same in every rank");
  CHECK(error_in(plain(R"({"0": {"0": 0.5, "1": 0.25}, "1": {"0": 0.5}})")) ==
        "'s.json': kv_cache.scaling_factor: rank 0 has 2 layers, rank 1 has 1");
}

TEST_CASE("scale_file: a hole in the ranks or layers is named") {
  CHECK(error_in(plain(R"({"0": {"0": 0.5}, "2": {"0": 0.5}})")) ==
        "'s.json': kv_cache.scaling_factor: rank 1 is missing from 2 ranks");
  CHECK(error_in(with(kExampleText, R"("1": 2)", R"("2": 2)")) ==
        "'s.json': kv_cache.scaling_factor.0: layer 1 is missing from 2 layers");
  CHECK(error_in(plain(R"({"0": {"0": 0.5, "01": 0.5}})")) ==
        "'s.json': kv_cache.scaling_factor.0: the key '01' is not the number of a layer");
  CHECK(error_in(plain(R"({"0": {"-1": 0.5}})")) ==
        "'s.json': kv_cache.scaling_factor.0: the key '-1' is not the number of a layer");
  CHECK(error_in(plain(R"({"0": {}})")) ==
        "'s.json': kv_cache.scaling_factor.0: is {}, expected an object with one member per layer");
  CHECK(error_in(plain("[1]")) ==
        "'s.json': kv_cache.scaling_factor: is [1], expected an object with one member per rank");
}

TEST_CASE("scale_file: values no runtime can use are refused") {
  CHECK(error_in(plain(R"({"0": {"0": 0.5, "1": 0}})")) ==
        "'s.json': layer 1: the K scale is 0, expected a positive, finite, normal number");
  CHECK(error_in(plain(R"({"0": {"0": -0.5}})")) ==
        "'s.json': layer 0: the K scale is -0.5, expected a positive, finite, normal number");
  CHECK(error_in(plain(R"({"0": {"0": 1e39}})")) ==
        "'s.json': layer 0: the K scale is inf, expected a positive, finite, normal number");
  CHECK(error_in(plain(R"({"0": {"0": "0.5"}})")) ==
        "'s.json': kv_cache.scaling_factor.0.0: is a string (\"0.5\"), expected a number");
  CHECK(error_in(plain(R"({"0": {"0": NaN}})")).starts_with("'s.json': not valid JSON at line 1"));
}

TEST_CASE("scale_file: another dtype, and what is no scale file, are refused") {
  CHECK(error_in(with(plain(R"({"0": {"0": 0.5}})"), "e4m3fn", "e4m3fnuz")) ==
        "'s.json': kv_cache.dtype: is 'float8_e4m3fnuz', expected 'float8_e4m3fn'");
  CHECK(error_in(R"({"model_type": "llama"})") ==
        "'s.json': is not a scale file: it has no kv_cache.scaling_factor");
  CHECK(error_in("[]") == "'s.json': is not a scale file: it has no kv_cache.scaling_factor");
  CHECK(error_in(R"({"kv_cache": {"scaling_factor": {}}})") ==
        "'s.json': kv_cache: the key 'dtype' is missing");
  CHECK(error_in(R"({"fp8kv": {}})") == "'s.json': the key 'kv_cache' is missing");
}

TEST_CASE("scale_file: a schema from another version is refused with the way out") {
  try {
    parse(with(kExampleText, "fp8kv.scales/1", "fp8kv.scales/3"));
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.what() == std::string("'s.json': fp8kv.schema: is 'fp8kv.scales/3', expected "
                                      "'fp8kv.scales/1' or 'fp8kv.scales/2'"));
    CHECK(error.help() ==
          "another version of fp8kv wrote it: use that version, or calibrate again");
  }
}

TEST_CASE("scale_file: layers may differ in their KV heads") {
  KvScales scales;
  scales.n_kv_heads = 2;
  scales.layer_kv_heads = {2, 1, 0};
  scales.layers = {{{0.5f}, {0.25f}}, {{0.125f}, {1.0f}}, {}};
  scales.provenance.amax = {{{224, 1}, {112, 3}, {5, 6}}, {{56}, {448}, {7}}, {}};
  const std::string text = scale_file_text(scales);
  const KvScales read = parse(text);
  CHECK(read.layer_kv_heads == scales.layer_kv_heads);
  REQUIRE(read.provenance.amax.size() == 3);
  CHECK(read.provenance.amax[0].v == std::vector<float>{112, 3});
  CHECK(read.provenance.amax[1].q == std::vector<float>{7});
  CHECK(scale_file_text(read) == text);

  const std::string one = with(text, "[2, 1, 0]", "[2, 2, 0]");
  CHECK(error_in(one) == "'s.json': fp8kv.amax.k[1]: is [56], expected an array of 2 numbers");
  CHECK(error_in(with(text, "[2, 1, 0]", "[2, 3, 0]")) ==
        "'s.json': fp8kv.model.layer_kv_heads[1]: is 3, expected 0 to 2, which is n_kv_heads");
  CHECK(error_in(with(text, "[2, 1, 0]", "[2, 1]")) ==
        "'s.json': fp8kv.model.layer_kv_heads: is [2, 1], expected an array of 3 layers");
}

TEST_CASE("scale_file: a file that contradicts itself is refused") {
  const struct {
    const char* what;
    const char* by;
    const char* message;
  } cases[] = {
      {R"("0": 0.75)", R"("0": 0.7500001)",
       "fp8kv: layer 0: the largest of k_scale and v_scale is 0.75, kv_cache.scaling_factor has "
       "0.7500001"},
      {R"("n_layers": 2)", R"("n_layers": 3)",
       "fp8kv.model.n_layers: is 3, kv_cache.scaling_factor has 2"},
      {R"("n_kv_heads": 2)", R"("n_kv_heads": 4)",
       "fp8kv.k_scale[0]: is [0.5, 0.10000000149011612], expected an array of 4 numbers"},
      {R"("granularity": "head")", R"("granularity": "tensor")",
       "fp8kv.k_scale[0]: is [0.5, 0.10000000149011612], expected an array of 1 number"},
      {R"("format": "float8_e4m3fn")", R"("format": "float8_e5m2")",
       "fp8kv.format: is 'float8_e5m2', expected 'float8_e4m3fn'"},
      {R"([0.03125, 2])", R"([0.03125])",
       "fp8kv.k_scale[1]: is [0.03125], expected an array of 2 numbers"},
      {R"([14, 896])", R"([14])", "fp8kv.amax.k[1]: is [14], expected an array of 2 numbers"},
  };
  for (const auto& bad : cases) {
    CHECK(error_in(with(kExampleText, bad.what, bad.by)) == cat("'s.json': ", bad.message));
  }
}

TEST_CASE("scale_file: a wrong or missing part of the fp8kv object is named") {
  const struct {
    const char* what;
    const char* by;
    const char* message;
  } cases[] = {
      {R"("k_scale")", R"("k_scales")",
       "fp8kv: the key 'k_scale' is missing (did you mean 'k_scales'?)"},
      {R"("head")", R"("channel")", "fp8kv.granularity: is 'channel', expected 'tensor' or 'head'"},
      {R"("headroom": 1.25)", R"("headroom": 0)", "fp8kv.headroom: is 0, expected more than 0"},
      {R"("post_rope")", R"("rope")",
       "fp8kv.observation: is 'rope', expected 'post_rope' or 'pre_rope'"},
      {R"("windows": 9)", R"("windows": -9)", "fp8kv.counted.windows: is -9, expected 0 or more"},
      {R"("n_kv_heads": 2)", R"("n_kv_heads": 0)",
       "fp8kv.model.n_kv_heads: is 0, expected 1 or more"},
      {R"([5, 0])", R"([-5, 0])", "fp8kv.amax: layer 1: a maximum is negative or infinite"},
      {R"([0.5, 0.10000000149011612])", R"([0.5, true])",
       "fp8kv.k_scale[0][1]: is true or false (true), expected a number"},
      {R"([0.5, 0.10000000149011612])", R"([0.5, 0])",
       "layer 0: the K scale of head 1 is 0, expected a positive, finite, normal number"},
  };
  for (const auto& bad : cases) {
    CHECK(error_in(with(kExampleText, bad.what, bad.by)) == cat("'s.json': ", bad.message));
  }
}

TEST_CASE("scale_file: a file on disk is named in its errors") {
  const test::TempDir folder;
  const auto path = folder.write("bad.json", plain(R"({"0": {"0": 0}})"));
  CHECK(test::error_of([&] { read_scale_file(path); }) ==
        cat(quote(path.string()),
            ": layer 0: the K scale is 0, expected a positive, finite, normal number"));
}

TEST_CASE("scale_file: it is told apart from a config") {
  CHECK(is_scale_file(Json::parse(kExampleText, "x")));
  CHECK(is_scale_file(Json::parse(plain("{}"), "x")));
  CHECK_FALSE(is_scale_file(Json::parse(R"({"model_type": "llama"})", "x")));
  CHECK_FALSE(is_scale_file(Json::parse("[1]", "x")));
}

TEST_CASE("scale_file: a version 2 that has a cache in every layer is written as version 1") {
  const std::string text = with(kExampleText, "fp8kv.scales/1", "fp8kv.scales/2");
  CHECK(parse(text) == example());
  CHECK(scale_file_text(parse(text)) == kExampleText);
}

}  // namespace
}  // namespace fp8kv
