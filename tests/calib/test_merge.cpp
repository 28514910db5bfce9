#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "calib/merge.h"
#include "scales/scale_file.h"
#include "support/capture_stderr.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

constexpr float kReciprocal = 1.0f / 448;

// One layer of two KV heads, tensor granularity; `seed` decides what was seen.
Calibration part(const std::string& name, int seed) {
  Calibration made{"'" + name + ".json'", {}};
  KvScales& scales = made.scales;
  scales.model_type = "llama";
  scales.n_kv_heads = 2;
  Provenance& from = scales.provenance;
  from.source = "fp8kv calibrate";
  from.tool_version = FP8KV_VERSION;
  from.observation = "post_rope";
  from.model_fingerprint = "kv-proj-v1:0a";
  from.compute_dtype = "float16";
  const auto k = static_cast<float>(seed);
  from.amax = {{{k, 2}, {1, 10 - k}, {3, k}}};
  scales.layers = {{{std::max(k, 2.0f) * kReciprocal}, {std::max(1.0f, 10 - k) * kReciprocal}}};
  from.octaves = {{{1, 0, {uint64_t(seed), 5}}, {0, -1, {4, 4}}}};
  from.documents = 1;
  from.windows = 2;
  from.tokens = static_cast<uint64_t>(100 * seed);
  from.data = {{name + ".txt", 9, "sha-" + name}};
  return made;
}

// Shard `index` of 3 of one set of data.
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
  CHECK(sum.layers == std::vector<LayerScales>{{{6 * kReciprocal}, {7 * kReciprocal}}});
  CHECK(from.octaves == std::vector<LayerOctaves>{{{2, 0, {9, 10}}, {0, -1, {8, 8}}}});
  CHECK(from.documents == 2);
  CHECK(from.windows == 4);
  CHECK(from.tokens == 900);
  CHECK(from.data == std::vector<DataFile>{{"a.txt", 9, "sha-a"}, {"b.txt", 9, "sha-b"}});
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
  CHECK(refusal([](KvScales& s) { s.provenance.observation = "pre_rope"; }) ==
        "'b.json': the observation is 'pre_rope', but 'a.json' has 'post_rope'");
  CHECK(refusal([](KvScales& s) { s.provenance.compute_dtype = "bfloat16"; }) ==
        "'b.json': the compute dtype is 'bfloat16', but 'a.json' has 'float16'");
  CHECK(refusal([](KvScales& s) {
          s.provenance.headroom = 2;
          for (float& scale : s.layers[0].k) scale *= 2;
          for (float& scale : s.layers[0].v) scale *= 2;
        }) == "'b.json': the headroom is 2, but 'a.json' has 1");
  CHECK(refusal([](KvScales& s) {
          s.layers = {{{4 * kReciprocal, 2 * kReciprocal}, {1 * kReciprocal, 6 * kReciprocal}}};
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
        "'b.json': the scales of layer 0 do not follow from its amax");
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

}  // namespace
}  // namespace fp8kv
