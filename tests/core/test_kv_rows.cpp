#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "core/cache/kv_rows.h"
#include "core/numbers/hadamard.h"
#include "json/json.h"
#include "support/places.h"

namespace fp8kv {
namespace {

constexpr std::array kMade = {KvFormat::nvfp4,
                              KvFormat::nvfp4_4over6,
                              KvFormat::int8_per_token_head,
                              KvFormat::fp8_per_token_head,
                              KvFormat::int4_per_token_head,
                              KvFormat::int4_values};

std::vector<uint8_t> bytes_of_hex(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<float> floats_of_hex(const std::string& hex) {
  const std::vector<uint8_t> bytes = bytes_of_hex(hex);
  std::vector<float> floats(bytes.size() / 4);
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

KvFormat format_of(const std::string& name) {
  for (const KvFormat format : kMade) {
    if (format_name(format) == name) return format;
  }
  FAIL("no format is called ", name);
  return KvFormat::f32;
}

std::vector<uint8_t> stored(const KvRow& row, std::vector<float> x, float scale) {
  if (kv_spec(row.format).rotated) hadamard(x.data(), row.dim, false);
  std::vector<uint8_t> bytes(static_cast<size_t>(row.bytes()), 0xEE);
  const auto value = [&](int32_t i) { return x[static_cast<size_t>(i)]; };
  for (int32_t part = 0; part < row.parts(); ++part) {
    encode_part(row, part, value, scale, bytes.data());
  }
  return bytes;
}

}  // namespace

TEST_CASE("kv rows: bytes and values are those of the rules in torch") {
  const Json cases = Json::read(test::source_dir() / "tests/golden/kv-rows.json");
  REQUIRE(cases.size() == 19 * kMade.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    const Json each = cases[i];
    const KvRow row{format_of(each.at("format").as_string()),
                    static_cast<int32_t>(each.at("dim").as_double()), 0};
    CAPTURE(format_name(row.format));
    CAPTURE(i);
    const auto scale = static_cast<float>(each.at("stored").as_double());
    const std::vector<uint8_t> bytes = stored(row, floats_of_hex(each.at("x").as_string()), scale);
    CHECK(bytes == bytes_of_hex(each.at("bytes").as_string()));
    const std::vector<float> values = floats_of_hex(each.at("values").as_string());
    for (int32_t d = 0; d < row.dim; ++d) {
      REQUIRE(row_value(row, bytes.data(), d) == values[static_cast<size_t>(d)]);
    }
  }
}

TEST_CASE("kv rows: E2M1 takes the nearest of its values, ties to the even code, for every f16") {
  constexpr std::array kValues = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = f16_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(x)) continue;
    size_t best = 0;
    for (size_t code = 1; code < 8; ++code) {
      const double off = std::abs(kValues[code] - std::abs(double{x}));
      const double least = std::abs(kValues[best] - std::abs(double{x}));
      if (off < least || (off == least && code % 2 == 0)) best = code;
    }
    if (std::isinf(x)) best = 7;
    const uint8_t code = e2m1_encode(x);
    REQUIRE((code & 7u) == best);
    REQUIRE((code >> 3) == (std::signbit(x) ? 1 : 0));
    REQUIRE(e2m1_decode(code) == (std::signbit(x) ? -kValues[best] : kValues[best]));
  }
}

TEST_CASE("kv rows: the signs of the Hadamard transform are bit 23 of MT19937") {
  std::mt19937 numbers(0x9E3779B9u);
  for (int32_t i = 0; i < kMostHadamardBlock; ++i) {
    REQUIRE(hadamard_sign(i) == ((numbers() >> 23 & 1u) == 0 ? 1.0f : -1.0f));
  }
}

TEST_CASE("kv rows: the Hadamard transform there and back multiplies by its block") {
  for (const int32_t dim : {2, 64, 80, 96, 512}) {
    std::vector<float> x;
    for (int32_t i = 0; i < dim; ++i) x.push_back(static_cast<float>(i * 37 % 101 - 50));
    std::vector<float> turned = x;
    hadamard(turned.data(), dim, false);
    CHECK(turned != x);
    hadamard(turned.data(), dim, true);
    for (int32_t i = 0; i < dim; ++i) {
      const auto at = static_cast<size_t>(i);
      REQUIRE(turned[at] == x[at] * static_cast<float>(hadamard_block(dim)));
    }
  }
}

TEST_CASE("kv rows: a row has codes, then its scales") {
  CHECK(KvRow{KvFormat::f32, 64, 0}.bytes() == 256);
  CHECK(KvRow{KvFormat::bf16, 64, 0}.bytes() == 128);
  CHECK(KvRow{KvFormat::e5m2fnuz, 64, 0}.bytes() == 64);
  CHECK(KvRow{KvFormat::ds_mla, 576, 512}.bytes() == 656);
  CHECK(KvRow{KvFormat::nvfp4, 128, 0}.bytes() == 64 + 8);
  CHECK(KvRow{KvFormat::nvfp4_4over6, 128, 0}.bytes() == 64 + 8);
  CHECK(KvRow{KvFormat::int8_per_token_head, 128, 0}.bytes() == 128 + 4);
  CHECK(KvRow{KvFormat::fp8_per_token_head, 128, 0}.bytes() == 128 + 4);
  CHECK(KvRow{KvFormat::int4_per_token_head, 128, 0}.bytes() == 64 + 4);
  CHECK(KvRow{KvFormat::int4_values, 128, 0}.bytes() == 64 + 4);
}

TEST_CASE("kv rows: 4over6 never errs by more than max / 6 does") {
  Rng rng(4);
  int better = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<float> x;
    for (int i = 0; i < 16; ++i) x.push_back(static_cast<float>(rng.uniform() - 0.5));
    const auto error = [&](KvFormat format) {
      const KvRow row{format, 16, 0};
      const std::vector<uint8_t> bytes = stored(row, x, 0.01f);
      double sum = 0;
      for (int32_t i = 0; i < 16; ++i) {
        const double back = double{row_value(row, bytes.data(), i)} * double{0.01f};
        sum += std::pow(back - double{x[static_cast<size_t>(i)]}, 2);
      }
      return sum;
    };
    const double of_six = error(KvFormat::nvfp4), of_both = error(KvFormat::nvfp4_4over6);
    CHECK(of_both <= of_six * (1 + 1e-5));
    better += of_both < of_six ? 1 : 0;
  }
  CHECK(better > 50);
}

TEST_CASE("kv rows: NaN changes no other element, where elements are not mixed") {
  for (const KvFormat format : kMade) {
    // Skips formats where all elements of a block affect the choice of a scale, or are rotated.
    if (kv_spec(format).rotated || format == KvFormat::nvfp4_4over6) continue;
    CAPTURE(format_name(format));
    const KvRow row{format, 64, 0};
    std::vector<float> x;
    for (int i = 0; i < 64; ++i) x.push_back(static_cast<float>(i * 37 % 101 - 50) / 8);
    x[7] = 0.0f;
    const std::vector<uint8_t> before = stored(row, x, 0.01f);
    x[7] = NAN;
    const std::vector<uint8_t> bytes = stored(row, x, 0.01f);
    for (int32_t d = 0; d < 64; ++d) {
      if (d == 7) continue;
      CHECK(row_value(row, bytes.data(), d) == row_value(row, before.data(), d));
    }
  }
}

}  // namespace fp8kv
