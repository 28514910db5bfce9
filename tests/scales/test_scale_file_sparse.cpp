// Scale files of version 2, for models with layers without a cache.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "scales/scale_file.h"
#include "support/expect_error.h"
#include "support/scale_texts.h"

namespace fp8kv {
namespace {

using test::error_in;
using test::example;
using test::parse;
using test::plain;
using test::with;

// A model of four layers where the second and the last write no cache.
KvScales sparse_example() {
  KvScales scales = example();
  Provenance& from = scales.provenance;
  scales.layers = {{{0.5f}, {0.25f}}, {}, {{2}, {1}}, {}};
  from.amax = {{{224, 7}, {112, 3}, {3, 4}}, {}, {{896, 2}, {448, 1}, {5, 0}}, {}};
  from.octaves = {{{0, 7, {3}}, {1, 6, {2}}}, {}, {{0, 9, {4}}, {0, 8, {1}}}, {}};
  from.data.clear();
  return scales;
}

constexpr const char* kSparseText = R"({
  "model_type": "llama",
  "kv_cache": {
    "dtype": "float8_e4m3fn",
    "scaling_factor": {
      "0": {
        "0": 0.5,
        "2": 2
      }
    }
  },
  "fp8kv": {
    "schema": "fp8kv.scales/2",
    "tool_version": "0.1.0",
    "source": "fp8kv calibrate",
    "format": "float8_e4m3fn",
    "granularity": "tensor",
    "headroom": 1.25,
    "observation": "post_rope",
    "compute_dtype": "float16",
    "model": {
      "fingerprint": "kv-proj-v1:00ff",
      "n_layers": 4,
      "n_kv_heads": 2
    },
    "counted": {
      "documents": 7,
      "windows": 9,
      "tokens": 1234,
      "data": []
    },
    "k_scale": [
      [0.5],
      [],
      [2],
      []
    ],
    "v_scale": [
      [0.25],
      [],
      [1],
      []
    ],
    "amax": {
      "k": [
        [224, 7],
        [],
        [896, 2],
        []
      ],
      "v": [
        [112, 3],
        [],
        [448, 1],
        []
      ],
      "q": [
        [3, 4],
        [],
        [5, 0],
        []
      ]
    },
    "octaves": {
      "k": [
        [0, 7, 3],
        [],
        [0, 9, 4],
        []
      ],
      "v": [
        [1, 6, 2],
        [],
        [0, 8, 1],
        []
      ]
    }
  }
}
)";

TEST_CASE("scale_file: layers without a cache make it version 2, where their rows are empty") {
  CHECK(scale_file_text(sparse_example()) == kSparseText);
  CHECK(parse(kSparseText) == sparse_example());
  CHECK(vllm_json_text(sparse_example(), 1) == R"({
  "model_type": "llama",
  "kv_cache": {
    "dtype": "float8_e4m3fn",
    "scaling_factor": {
      "0": {
        "0": 0.5,
        "2": 2
      }
    }
  }
}
)");
}

TEST_CASE("scale_file: a plain file names the layers that have a cache, up to the last of them") {
  const KvScales scales = parse(plain(R"({"0": {"3": 0.5, "1": 0.25}})"));
  CHECK(scales.layers == std::vector<LayerScales>{{}, {{0.25f}, {0.25f}}, {}, {{0.5f}, {0.5f}}});
  CHECK(parse(scale_file_text(scales)) == scales);
  CHECK(error_in(plain(R"({"0": {"0": 0.5, "1": 1}, "1": {"0": 0.5, "2": 1}})")) ==
        "'s.json': kv_cache.scaling_factor: rank 0 has layer 1 where rank 1 has layer 2, expected "
        "the same in every rank");
  CHECK(error_in(plain(R"({"0": {"4096": 0.5}})")) ==
        "'s.json': kv_cache.scaling_factor.0: the key '4096' is not the number of a layer");
}

TEST_CASE("scale_file: a version 2 that contradicts itself is refused") {
  const struct {
    const char* what;
    const char* by;
    const char* message;
  } cases[] = {
      {"fp8kv.scales/2", "fp8kv.scales/1",
       "kv_cache.scaling_factor.0: layer 1 is missing from 2 layers"},
      {R"("n_layers": 4)", R"("n_layers": 2)",
       "fp8kv.model.n_layers: is 2, kv_cache.scaling_factor has layer 2"},
      {R"("n_layers": 4)", R"("n_layers": 65537)",
       "fp8kv.model.n_layers: is 65537, kv_cache.scaling_factor has layer 2"},
      {R"("n_layers": 4,)", "", "fp8kv.model: the key 'n_layers' is missing"},
      {"      [0.5],\n      []", "      [0.5],\n      [3]",
       "fp8kv.k_scale[1]: is [3], expected [], as the layer has no KV cache"},
      {"      [2],\n", "      [],\n", "fp8kv.k_scale[2]: is [], expected an array of 1 number"},
      {"        [224, 7],\n        []", "        [224, 7],\n        [1, 1]",
       "fp8kv.amax.k[1]: is [1, 1], expected [], as the layer has no KV cache"},
      {"        [1, 6, 2],\n        []", "        [1, 6, 2],\n        [0, 0]",
       "fp8kv.octaves.v[1]: is [0, 0], expected [], as the layer has no KV cache"},
  };
  for (const auto& bad : cases) {
    CHECK(error_in(with(kSparseText, bad.what, bad.by)) == cat("'s.json': ", bad.message));
  }
}

}  // namespace
}  // namespace fp8kv
