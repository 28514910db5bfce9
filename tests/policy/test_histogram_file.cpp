#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/scales/scale_grid.h"
#include "formats/safetensors.h"
#include "policy/histogram_file.h"
#include "support/expect_error.h"
#include "support/magnitudes.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// Two layers of two KV heads.
std::vector<LayerMagnitudes> two_layers() {
  const auto heads = [](float amax) {
    return std::vector{test::counts_of({amax, 0}), test::counts_of({amax / 3})};
  };
  return {{heads(1), heads(2), heads(3)}, {heads(4), heads(5), heads(6)}};
}

std::string refusal(const std::string& bytes) {
  const test::TempDir folder;
  folder.write("h", bytes);
  const std::string message = test::error_of([&] { read_histogram_file(folder / "h"); });
  const std::string name = quote((folder / "h").string()) + ": ";
  CHECK(message.starts_with(name));
  return message.substr(std::min(name.size(), message.size()));
}

// Replaces every `from` in `bytes` by a text of the same length, so that offsets stay valid.
std::string with(std::string bytes, const std::string& from, const std::string& to) {
  REQUIRE(from.size() == to.size());
  size_t at = bytes.find(from);
  REQUIRE(at != bytes.npos);
  for (; at != bytes.npos; at = bytes.find(from, at + 1)) bytes.replace(at, from.size(), to);
  return bytes;
}

TEST_CASE("histogram_file: what is written reads back the same") {
  const test::TempDir folder;
  const std::string bytes = histogram_file_bytes(two_layers());
  folder.write("h.safetensors", bytes);
  const auto found = read_histogram_file(folder / "h.safetensors");
  REQUIRE(found.size() == 2);
  for (size_t layer = 0; layer < 2; ++layer) {
    CHECK(layer_amax(found[layer]) == layer_amax(two_layers()[layer]));
  }
  CHECK(histogram_file_bytes(found) == bytes);
}

// Two layers with losses of 3, 6, 9, ...
std::vector<LayerMagnitudes> with_losses() {
  std::vector<LayerMagnitudes> layers = two_layers();
  uint64_t next = 0;
  for (LayerMagnitudes& layer : layers) {
    for (auto* heads : {&layer.k, &layer.v}) {
      for (MagnitudeCounts& head : *heads) {
        for (int i = 0; i < kScaleMantissas; ++i) head.losses.push_back(next += 3);
      }
    }
  }
  return layers;
}

TEST_CASE("histogram_file: losses read back the same, and beside layers without a cache") {
  const test::TempDir folder;
  std::vector<LayerMagnitudes> layers = with_losses();
  layers[1].k[1].losses[5] = uint64_t{1} << 58;  // the largest
  layers.insert(layers.begin(), LayerMagnitudes());
  folder.write("h", histogram_file_bytes(layers));
  const auto found = read_histogram_file(folder / "h");
  REQUIRE(found.size() == 3);
  CHECK_FALSE(found[0].has_cache());
  for (size_t layer = 1; layer < 3; ++layer) {
    for (size_t head = 0; head < 2; ++head) {
      CHECK(found[layer].k[head].losses == layers[layer].k[head].losses);
      CHECK(found[layer].v[head].losses == layers[layer].v[head].losses);
    }
  }
}

TEST_CASE("histogram_file: losses that are missing, of another shape or too large are refused") {
  const std::string good = histogram_file_bytes(with_losses());
  CHECK(refusal(with(good, "layers.1.v.losses", "layers.9.v.losses")) ==
        "has no tensor 'layers.1.v.losses'");
  CHECK(refusal(with(good, "[2,16]", "[16,2]")) ==
        "tensor 'layers.0.k.losses': is U64 [16, 2], expected U64 [2, 16]");
  std::vector<LayerMagnitudes> layers = with_losses();
  layers[1].v[1].losses[7] = (uint64_t{1} << 58) + 1;
  CHECK(refusal(histogram_file_bytes(layers)) ==
        "tensor 'layers.1.v.losses': has a loss above 2^58, which no calibration sums");
}

TEST_CASE("histogram_file: other safetensors are refused") {
  CHECK(refusal(safetensors_bytes({}, {{"format", "pt"}})) == "is no file of histograms");
  CHECK(refusal(with(histogram_file_bytes(two_layers()), "histograms/1", "histograms/2")) ==
        "is no file of histograms");
}

TEST_CASE("histogram_file: a tensor that is missing or of another shape is named") {
  const std::string good = histogram_file_bytes(two_layers());
  CHECK(refusal(with(good, "layers.1.v.bins", "layers.9.v.bins")) ==
        "has no tensor 'layers.1.v.bins'");
  CHECK(refusal(with(good, "[2,4096]", "[4096,2]")) ==
        "tensor 'layers.0.k.bins': is U64 [4096, 2], expected U64 [2, 4096]");
  CHECK(refusal(with(good, "\"F32\"", "\"I32\"")) ==
        "tensor 'layers.0.k.amax': is I32 [2], expected F32 [2]");
}

TEST_CASE("histogram_file: Q, K and V of a layer have the same heads") {
  std::vector<LayerMagnitudes> layers = two_layers();
  layers[1].v.pop_back();
  CHECK(refusal(histogram_file_bytes(layers)) ==
        "layer 1: Q, K and V have different numbers of heads");
}

TEST_CASE("histogram_file: numbers that no calibration counts are refused") {
  std::vector<LayerMagnitudes> layers = two_layers();
  layers[1].k[1].amax = -1;
  CHECK(refusal(histogram_file_bytes(layers)) ==
        "tensor 'layers.1.k.amax': a maximum is negative or infinite");
  layers = two_layers();
  // No single bin has too many values, but their sum does.
  layers[0].q[0].bins.assign(kMagnitudeBins, uint64_t{1} << 37);
  CHECK(refusal(histogram_file_bytes(layers)) ==
        "tensor 'layers.0.q.bins': has more than 2^48 values of one head, which no calibration "
        "counts");
  layers[0].q[0].bins.assign(kMagnitudeBins, uint64_t{1} << 63);
  CHECK(refusal(histogram_file_bytes(layers)).starts_with("tensor 'layers.0.q.bins': has more"));
}

TEST_CASE("histogram_file: a tensor too many is refused") {
  const float one = 1;
  const ConstTensorView value{reinterpret_cast<const std::byte*>(&one), DType::f32, Shape{}};
  CHECK(refusal(
            safetensors_bytes({{"layers.0.k.mean", value}}, {{"schema", "fp8kv.histograms/1"}})) ==
        "has 1 tensor, expected 6 for each layer");
}

}  // namespace
}  // namespace fp8kv
