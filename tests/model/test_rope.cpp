#include <cmath>

#include <doctest/doctest.h>

#include "model/parts/rope.h"

using namespace fp8kv;

TEST_CASE("rope_table: position 0 rotates nothing") {
  const std::vector<float> table = rope_table({}, 8, 1);
  CHECK(table == std::vector<float>{1, 1, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("rope_table: pair i turns by theta^(-2i/d) a position") {
  const std::vector<float> table = rope_table({.theta = 10000}, 4, 4);
  const float* row = table.data() + 3 * 4;
  CHECK(row[0] == doctest::Approx(std::cos(3.0)).epsilon(1e-7));
  CHECK(row[1] == doctest::Approx(std::cos(0.03)).epsilon(1e-7));
  CHECK(row[2] == doctest::Approx(std::sin(3.0)).epsilon(1e-7));
  CHECK(row[3] == doctest::Approx(std::sin(0.03)).epsilon(1e-7));
}

TEST_CASE("rope_table: linear scaling by 4 is a quarter of the position") {
  const RopeConfig scaled{.theta = 10000, .scaling = RopeScaling::linear, .factor = 4};
  const std::vector<float> table = rope_table(scaled, 16, 9);
  const std::vector<float> plain = rope_table({.theta = 10000}, 16, 3);
  for (size_t i = 0; i < 16; ++i) CHECK(table[8 * 16 + i] == plain[2 * 16 + i]);
}

// inv_freq of Llama 3.1 (theta 500,000, head_dim 128, factor 8, 1, 4, 8,192), computed by
// transformers 5.23 in float32: kept, blended and divided ones.
TEST_CASE("rope_table: llama3 keeps fast pairs, slows slow ones and blends between") {
  const RopeConfig rope{.theta = 500000,
                        .scaling = RopeScaling::llama3,
                        .factor = 8,
                        .low_freq_factor = 1,
                        .high_freq_factor = 4,
                        .original_context = 8192};
  const std::vector<float> table = rope_table(rope, 128, 2);
  const float* sines = table.data() + 128 + 64;
  CHECK(sines[0] == doctest::Approx(std::sin(1.0)).epsilon(1e-6));
  const double plain_20 = std::pow(500000.0, -40.0 / 128);
  CHECK(std::asin(sines[20]) == doctest::Approx(plain_20).epsilon(1e-6));
  const double plain_50 = std::pow(500000.0, -100.0 / 128);
  CHECK(std::asin(sines[50]) == doctest::Approx(plain_50 / 8).epsilon(1e-6));
  CHECK(std::asin(sines[30]) == doctest::Approx(0.0013718936825171113).epsilon(1e-6));
}

// Qwen2.5's advice for long texts (theta 1e6, head_dim 128, factor 4, 32,768), computed by
// transformers 5.23 in float32: kept, blended and divided ones.
TEST_CASE("rope_table: yarn blends along the pairs and multiplies by its attention factor") {
  RopeConfig rope{.theta = 1e6,
                  .scaling = RopeScaling::yarn,
                  .factor = 4,
                  .original_context = 32768,
                  .attention_factor = 1.138629436111989};
  const auto frequency = [&](size_t pair) {
    const std::vector<float> table = rope_table(rope, 128, 2);
    CHECK(table[pair] == static_cast<float>(rope.attention_factor));  // at position 0
    return std::asin(table[128 + 64 + pair] / rope.attention_factor);
  };
  CHECK(frequency(0) == doctest::Approx(1.0).epsilon(1e-6));
  CHECK(frequency(20) == doctest::Approx(0.01333521492779255).epsilon(1e-6));
  CHECK(frequency(24) == doctest::Approx(0.005375321488827467).epsilon(1e-6));
  CHECK(frequency(36) == doctest::Approx(0.0001798411540221423).epsilon(1e-6));
  CHECK(frequency(50) == doctest::Approx(5.133812464919174e-06).epsilon(1e-6));
  rope.truncate = false;
  CHECK(frequency(24) == doctest::Approx(0.005517270416021347).epsilon(1e-6));
  CHECK(frequency(39) == doctest::Approx(6.187807593960315e-05).epsilon(1e-6));
}
