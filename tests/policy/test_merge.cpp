// Merging calibrations: the sums, shards, and what is refused.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/log.h"
#include "base/text.h"
#include "core/scales/scales.h"
#include "policy/merge.h"
#include "scales/scale_file.h"
#include "support/expect_error.h"
#include "support/program/capture_stderr.h"

namespace fp8kv {
namespace {

// A calibration of one layer with two KV heads, and one scale per tensor. `seed` decides the
// values.
Calibration part(const std::string& name, int seed) {
  Calibration made{"'" + name + ".json'", {}};
  KvScales& scales = made.scales;
  scales.model_type = "llama";
  scales.n_kv_heads = 2;
  Provenance& from = scales.provenance;
  from.source = "fp8kv calibrate";
  from.tool_version = FP8KV_VERSION;
  from.observation = Observation::after_rope;
  from.model_fingerprint = "kv-proj-v1:0a";
  from.compute_dtype = "float16";
  const auto k = static_cast<float>(seed);
  from.amax = {{{k, 2}, {1, 10 - k}, {3, k}}};
  scales.layers = {{{std::max(k, 2.0f) / 448}, {std::max(1.0f, 10 - k) / 448}}};
  from.parts.back() = {static_cast<uint64_t>(40 * seed), {{{k / 2, 1}, {1, k / 4}, {1, 1}}}};
  from.octaves = {{{1, 0, {uint64_t(seed), 5}}, {0, -1, {4, 4}}}};
  from.documents = 1;
  from.windows = 2;
  from.tokens = static_cast<uint64_t>(100 * seed);
  from.data = {{name + ".txt", 9, "sha-" + name}};
  return made;
}

// Shard `index` of 3 of the same data.
Calibration shard(uint64_t index) {
  Calibration made = part(cat("s", index), 3 + static_cast<int>(index));
  made.scales.provenance.data = {{"all.txt", 9, "sha-all"}};
  made.scales.provenance.shards = {3, {index}, 3, 6, 1200};
  return made;
}

KvScales merged(const std::vector<Calibration>& parts) {
  Log log(Verbosity::quiet);
  return merge_calibrations(parts, log);
}

TEST_CASE("merge: maxima are the larger, counts add up, scales follow") {
  const KvScales sum = merged({part("b", 3), part("a", 6)});
  const Provenance& from = sum.provenance;
  CHECK(from.amax == std::vector<LayerAmax>{{{6, 2}, {1, 7}, {3, 6}}});
  CHECK(sum.layers == std::vector<LayerScales>{{{6.0f / 448}, {7.0f / 448}}});
  CHECK(from.octaves == std::vector<LayerOctaves>{{{2, 0, {9, 10}}, {0, -1, {8, 8}}}});
  CHECK(from.parts.back() == AmaxAfter{360, {{{3, 1}, {1, 1.5f}, {1, 1}}}});
  CHECK(from.documents == 2);
  CHECK(from.windows == 4);
  CHECK(from.tokens == 900);
  CHECK(from.data == std::vector<DataFile>{{"a.txt", 9, "sha-a"}, {"b.txt", 9, "sha-b"}});
}

TEST_CASE("merge: K and V of a latent keep one scale, and are not merged with others") {
  const auto latent = [](Calibration made) {
    LayerScales& layer = made.scales.layers[0];
    layer.k = layer.v = {fused_scale(layer)};
    made.scales.latent = true;
    return made;
  };
  const KvScales sum = merged({latent(part("b", 3)), latent(part("a", 6))});
  CHECK(sum.layers == std::vector<LayerScales>{{{7.0f / 448}, {7.0f / 448}}});
  CHECK(sum.latent);
  CHECK(test::error_of([&] {
          merged({latent(part("b", 3)), part("a", 6)});
        }) == "'a.json': the cache is K and V, but 'b.json' has 'latent'");
}

TEST_CASE("merge: the longest window of every part is kept, once") {
  Calibration within = part("a", 6), beyond = part("b", 3), again = part("c", 4);
  within.scales.provenance.positions = {"longrope", 512, 4096, {256}};
  beyond.scales.provenance.positions = {"longrope", 512, 4096, {1024}};
  again.scales.provenance.positions = {"longrope", 512, 4096, {256}};
  CHECK(merged({beyond, within, again}).provenance.positions ==
        PositionsNote{"longrope", 512, 4096, {256, 1024}});
}

TEST_CASE("merge: eighths and quarters add up as halves do") {
  Calibration a = part("a", 6), b = part("b", 3);
  a.scales.provenance.parts[0] = {10, {{{1, 2}, {1, 0}, {1, 1}}}};
  b.scales.provenance.parts[0] = {7, {{{2, 1}, {0, 1}, {1, 3}}}};
  b.scales.provenance.parts[1] = {70, {{{2, 1}, {0, 1}, {1, 3}}}};
  const AmaxParts sum = merged({a, b}).provenance.parts;
  CHECK(sum[0] == AmaxAfter{17, {{{2, 2}, {1, 1}, {1, 3}}}});
  CHECK(sum[1] == b.scales.provenance.parts[1]);
}

TEST_CASE("merge: a part none of whose windows is in the half adds nothing to it") {
  Calibration none = part("a", 6);
  none.scales.provenance.parts.back() = {};
  const AmaxAfter half = part("b", 3).scales.provenance.parts.back();
  CHECK(merged({none, part("b", 3)}).provenance.parts.back() == half);
  CHECK(merged({part("b", 3), none}).provenance.parts.back() == half);
}

TEST_CASE("merge: any order and any grouping give the same bytes") {
  const Calibration a = part("a", 3), b = part("b", 4), c = part("c", 5);
  const std::string all = scale_file_text(merged({a, b, c}));
  CHECK(scale_file_text(merged({c, a, b})) == all);
  CHECK(scale_file_text(merged({{"'ab'", merged({a, b})}, c})) == all);
  CHECK(scale_file_text(merged({{"'bc'", merged({c, b})}, a})) == all);
}

TEST_CASE("merge: one calibration stays as it is") {
  const Calibration a = part("a", 3);
  CHECK(merged({a}) == a.scales);
}

TEST_CASE("merge: all shards together are whole, in any grouping") {
  const KvScales whole = merged({shard(2), shard(0), shard(1)});
  CHECK(whole.provenance.shards == ShardNote{});
  CHECK(whole.provenance.data == std::vector<DataFile>{{"all.txt", 9, "sha-all"}});
  CHECK(whole.provenance.tokens == 1200);
  CHECK(merged({{"'two'", merged({shard(2), shard(0)})}, shard(1)}) == whole);
}

TEST_CASE("merge: missing shards are said, and stay noted") {
  KvScales two;
  const std::string said = test::stderr_of([&] {
    Log log(Verbosity::normal);
    two = merge_calibrations({shard(2), shard(0)}, log);
  });
  CHECK(said == "warning: still missing: shard 1/3\n");
  CHECK(two.provenance.shards == ShardNote{3, {0, 2}, 3, 6, 1200});
}

TEST_CASE("merge: another model or another way of making is refused with both values") {
  const auto refusal = [](const std::function<void(KvScales&)>& change) {
    Calibration b = part("b", 4);
    change(b.scales);
    return test::error_of([&] { merged({part("a", 3), b}); });
  };
  CHECK(refusal([](KvScales& s) { s.provenance.model_fingerprint = "kv-proj-v1:0b"; }) ==
        "'b.json': the model's fingerprint is 'kv-proj-v1:0b', but 'a.json' has 'kv-proj-v1:0a'");
  CHECK(refusal([](KvScales& s) { s.model_type = "qwen2"; }) ==
        "'b.json': the model type is 'qwen2', but 'a.json' has 'llama'");
  CHECK(refusal([](KvScales& s) { s.n_kv_heads = 4; }) ==
        "'b.json': the number of KV heads is 4, but 'a.json' has 2");
  CHECK(refusal([](KvScales& s) { s.provenance.observation = Observation::before_rope; }) ==
        "'b.json': the observation is 'pre_rope', but 'a.json' has 'post_rope'");
  CHECK(refusal([](KvScales& s) { s.provenance.compute_dtype = "bfloat16"; }) ==
        "'b.json': the compute dtype is 'bfloat16', but 'a.json' has 'float16'");
  CHECK(refusal([](KvScales& s) {
          s.provenance.headroom = 2;
          for (float& scale : s.layers[0].k) scale *= 2;
          for (float& scale : s.layers[0].v) scale *= 2;
        }) == "'b.json': the headroom is 2, but 'a.json' has 1");
  CHECK(refusal([](KvScales& s) {
          s.layers = {{{4.0f / 448, 2.0f / 448}, {1.0f / 448, 6.0f / 448}}};
        }) == "'b.json': the granularity is 'head', but 'a.json' has 'tensor'");
  CHECK(refusal([](KvScales& s) {
          s.layers.push_back(s.layers[0]);
          s.provenance.amax.push_back(s.provenance.amax[0]);
          s.provenance.octaves.push_back(s.provenance.octaves[0]);
        }) == "'b.json': the number of layers is 2, but 'a.json' has 1");
}

TEST_CASE("merge: what is no calibration, or was edited, is refused") {
  const auto refusal = [](const std::function<void(KvScales&)>& change) {
    Calibration b = part("b", 4);
    change(b.scales);
    return test::error_of([&] { merged({part("a", 3), b}); });
  };
  CHECK(refusal([](KvScales& s) { s.provenance.source = "vllm-json"; }) ==
        "'b.json': is no calibration: its scales come from 'vllm-json'");
  CHECK(refusal([](KvScales& s) { s.provenance.octaves.clear(); }) ==
        "'b.json': does not say what magnitudes were seen");
  CHECK(refusal([](KvScales& s) { s.provenance.windows = 0; }) ==
        "'b.json': does not say how much was counted");
  CHECK(refusal([](KvScales& s) { s.layers[0].v[0] = 1; }) ==
        "'b.json': layer 0, V: the scale is 1, but its amax of 6 gives 0.013392857");
}

TEST_CASE("merge: nothing is counted twice") {
  Calibration again = part("a", 3);
  again.name = "'again.json'";
  CHECK(test::error_of([&] {
          merged({part("a", 3), part("b", 4), again});
        }) == "'again.json': counted the data 'a.txt' (sha256 sha-a), which 'a.json' counted too");
  CHECK(test::error_of([&] {
          merged({shard(1), shard(1)});
        }) == "'s1.json': has shard 1/3, which 's1.json' has too");
}

TEST_CASE("merge: shards of different calibrations are refused") {
  Calibration other_length = shard(1), other_data = shard(1), less = shard(2);
  other_length.scales.provenance.shards.windows = 5;
  other_data.scales.provenance.data = {{"other.txt", 9, "sha-other"}};
  less.scales.provenance.tokens -= 1;
  CHECK(test::error_of([&] {
          merged({shard(0), other_length});
        }) ==
        "'s1.json': is of 3 shards of 5 windows, 1,200 tokens and 3 documents, but 's0.json' is of "
        "3 shards of 6 windows, 1,200 tokens and 3 documents");
  CHECK(test::error_of([&] {
          merged({shard(0), other_data});
        }) == "'s1.json': is a shard of other data than 's0.json'");
  CHECK(test::error_of([&] {
          merged({part("a", 3), shard(1)});
        }) == "'s1.json': is a shard, but 'a.json' is not");
  CHECK(test::error_of([&] {
          merged({shard(0), shard(1), less});
        }) ==
        "the shards add up to 3 shards of 6 windows, 1,199 tokens and 3 documents, expected 3 "
        "shards of 6 windows, 1,200 tokens and 3 documents");
}

// Adds a layer without a cache in front.
Calibration with_a_gap(Calibration made) {
  KvScales& scales = made.scales;
  scales.layers.insert(scales.layers.begin(), LayerScales{});
  scales.provenance.amax.insert(scales.provenance.amax.begin(), LayerAmax{});
  scales.provenance.octaves.insert(scales.provenance.octaves.begin(), LayerOctaves{});
  return made;
}

TEST_CASE("merge: a layer without a cache stays without one, and is not said to be zero") {
  KvScales sum;
  const std::string said = test::stderr_of([&] {
    Log log(Verbosity::normal);
    sum = merge_calibrations({with_a_gap(part("b", 3)), with_a_gap(part("a", 6))}, log);
  });
  CHECK(said == "");
  const KvScales dense = merged({part("b", 3), part("a", 6)});
  CHECK(sum.layers == std::vector<LayerScales>{{}, dense.layers[0]});
  CHECK(sum.provenance.amax == std::vector<LayerAmax>{{}, dense.provenance.amax[0]});
  CHECK(sum.provenance.octaves == std::vector<LayerOctaves>{{}, dense.provenance.octaves[0]});
}

TEST_CASE("merge: models with a cache in other layers are refused") {
  Calibration swapped = with_a_gap(part("b", 4));
  std::swap(swapped.scales.layers[0], swapped.scales.layers[1]);
  std::swap(swapped.scales.provenance.amax[0], swapped.scales.provenance.amax[1]);
  CHECK(test::error_of([&] {
          merged({with_a_gap(part("a", 3)), swapped});
        }) == "'b.json': layer 0 has a KV cache, but in 'a.json' it has none");
  CHECK(test::error_of([&] {
          merged({swapped, with_a_gap(part("a", 3))});
        }) == "'a.json': layer 0 has no KV cache, but in 'b.json' it has one");
}

TEST_CASE("merge: heads are counted in a layer that has some") {
  Calibration fewer = with_a_gap(part("b", 4));
  fewer.scales.provenance.amax[1] = {{4}, {6}, {3}};
  CHECK(test::error_of([&] {
          merged({with_a_gap(part("a", 3)), fewer});
        }) == "'b.json': the number of heads in amax is 1, but 'a.json' has 2");
}

}  // namespace
}  // namespace fp8kv
