#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "scales/scale_file.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

// Two layers of one KV head, counted on shards 0 and 2 of 5.
KvScales example() {
  KvScales scales;
  scales.model_type = "llama";
  scales.n_kv_heads = 1;
  scales.layers = {{{0.5f}, {0.25f}}, {{2.0f}, {1.0f}}};
  Provenance& from = scales.provenance;
  from.amax = {{{224}, {112}, {3}}, {{896}, {0}, {5}}};
  from.parts = {AmaxAfter{4, {{{100}, {50}, {1}}, {{448}, {0}, {2}}}},
                AmaxAfter{8, {{{100}, {70}, {3}}, {{448}, {0}, {2}}}},
                AmaxAfter{16, {{{200}, {112}, {3}}, {{448}, {0}, {2}}}}};
  from.octaves = {{{3, -2, {1, 0, 7, 0, 0, 0, 0, 0, 0, 2}}, {0, 6, {9}}},
                  {{1, 9, {uint64_t{1} << 40}}, {10, 0, {}}}};
  from.documents = 2;
  from.windows = 3;
  from.tokens = 40;
  from.shards = {5, {0, 2}, 4, 8, 100};
  return scales;
}

constexpr const char* kCounted = R"(    "counted": {
      "documents": 2,
      "windows": 3,
      "tokens": 40,
      "data": [],
      "shards": {
        "of": 5,
        "taken": [0, 2],
        "documents": 4,
        "windows": 8,
        "tokens": 100
      }
    },
)";

constexpr const char* kOctaves = R"(    "octaves": {
      "k": [
        [3, -2, 1, 0, 7, 0, 0, 0, 0, 0, 0, 2],
        [1, 9, 1099511627776]
      ],
      "v": [
        [0, 6, 9],
        [10, 0]
      ]
    }
  }
}
)";

KvScales parse(std::string_view text) {
  return parse_scale_file(Json::parse(text, "'s.json'"), "'s.json'");
}

// The error of reading the example's file after the first `what` is replaced.
std::string error_with(std::string_view what, std::string_view by) {
  std::string text = scale_file_text(example());
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  text.replace(at, what.size(), by);
  return test::error_of([&] { parse(text); });
}

TEST_CASE("scale_evidence: octaves and shards are written in full") {
  const std::string text = scale_file_text(example());
  CHECK(text.find(kCounted) != std::string::npos);
  CHECK(text.ends_with(kOctaves));
}

TEST_CASE("scale_evidence: octaves and shards read back equal") {
  CHECK(parse(scale_file_text(example())) == example());
}

TEST_CASE("scale_evidence: parts of the windows are written beside amax, and reach no further") {
  CHECK(scale_file_text(example()).find(R"(    "half": {
      "tokens": 16,
      "k": [
        [200],
        [448]
      ],)") != std::string::npos);
  CHECK(error_with("[200]", "[897]") == "'s.json': fp8kv.half: layer 0: is above the layer's amax");
  CHECK(error_with("[70]", "[113]") == "'s.json': fp8kv.quarter: layer 0: is above that of 'half'");
  CHECK(error_with("[50]", "[71]") ==
        "'s.json': fp8kv.eighth: layer 0: is above that of 'quarter'");
  CHECK(error_with("\"tokens\": 16", "\"tokens\": -1") ==
        "'s.json': fp8kv.half.tokens: is -1, expected 0 or more");
}

TEST_CASE("scale_evidence: files of older versions have half of the windows alone") {
  KvScales old = example();
  old.provenance.parts[0] = old.provenance.parts[1] = {};
  const std::string text = scale_file_text(old);
  CHECK(text.find("eighth") == std::string::npos);
  CHECK(parse(text) == old);
}

TEST_CASE("scale_evidence: octaves that contradict the amax are refused") {
  CHECK(error_with("[1, 9, 1099511627776]", "[1, 8, 1099511627776]") ==
        "'s.json': fp8kv.octaves.k[1]: counts values below 2^9, but the layer's amax is 896");
  CHECK(error_with("[0, 6, 9]", "[9, 0]") ==
        "'s.json': fp8kv.octaves.v[0]: counts nothing, but the layer's amax is 112");
  CHECK(error_with("[10, 0]", "[10, 0, 1]") ==
        "'s.json': fp8kv.octaves.v[1]: counts values below 2^1, but the layer's amax is 0");
}

TEST_CASE("scale_evidence: malformed octaves are named") {
  CHECK(error_with("[10, 0]", "[10]") ==
        "'s.json': fp8kv.octaves.v[1]: is [10], expected [zeros, exponent, counts...]");
  CHECK(error_with("[10, 0]", "[-10, 0]") ==
        "'s.json': fp8kv.octaves.v[1][0]: is -10, expected 0 or more");
  CHECK(error_with("[0, 6, 9]", "[0, -40, 9]") ==
        "'s.json': fp8kv.octaves.v[0]: has 1 octave from 2^-40, expected octaves within 2^-39 to "
        "2^24");
  CHECK(error_with("[0, 6, 9]", "[0, 23, 1, 9]") ==
        "'s.json': fp8kv.octaves.v[0]: has 2 octaves from 2^23, expected octaves within 2^-39 to "
        "2^24");
  CHECK(error_with("[0, 6, 9]", "[0, 5, 9, 0]") ==
        "'s.json': fp8kv.octaves.v[0]: begins or ends with an empty octave");
  CHECK(error_with("1099511627776", "281474976710657") ==
        "'s.json': fp8kv.octaves.k[1][2]: is 281474976710657, more values than can have been "
        "counted");
  CHECK(error_with(",\n        [10, 0]", "") ==
        "'s.json': fp8kv.octaves.v: is [[0, 6, 9]], expected an array of 2 layers");
}

TEST_CASE("scale_evidence: shards that are none, all, twice or out of range are refused") {
  CHECK(error_with("[0, 2]", "[]") ==
        "'s.json': fp8kv.counted.shards.taken: is [], expected some but not all of 5 shards");
  CHECK(error_with("[0, 2]", "[0, 1, 2, 3, 4]") ==
        "'s.json': fp8kv.counted.shards.taken: is [0, 1, 2, 3, 4], expected some but not all of 5 "
        "shards");
  CHECK(error_with("[0, 2]", "[2, 2]") ==
        "'s.json': fp8kv.counted.shards.taken: is [2, 2], expected rising numbers below 5");
  CHECK(error_with("[0, 2]", "[0, 5]") ==
        "'s.json': fp8kv.counted.shards.taken: is [0, 5], expected rising numbers below 5");
}

}  // namespace
}  // namespace fp8kv
