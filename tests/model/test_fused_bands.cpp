// Q, K and V fused in shards whose FP8 blocks begin anew in each shard: MiMo V2.5.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/identity/model_identity.h"
#include "checkpoint/model/read_model_config.h"
#include "core/numbers/fp8.h"
#include "formats/safetensors.h"
#include "support/models/family_model.h"
#include "support/models/run_model.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

constexpr int64_t kBandBlock = 24, kShards = 2;

int64_t blocks_in(int64_t count) {
  return (count + kBandBlock - 1) / kBandBlock;
}

struct Coded {
  std::vector<uint8_t> codes;
  std::vector<float> scales;   // [shards * blocks of a shard's rows, blocks of columns]
  std::vector<float> decoded;  // code * scale
};

// Block (i, j) of shard s has the scale 2^-9 * (1 + s + 3 i + j), so that no two are alike nearby.
Coded coded_in_shards(const float* values, int64_t rows, int64_t columns) {
  const int64_t shard = rows / kShards, across = blocks_in(columns);
  Coded out;
  out.scales.resize(static_cast<size_t>(kShards * blocks_in(shard) * across));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t s = r / shard, i = r % shard / kBandBlock, j = c / kBandBlock;
      const float scale = static_cast<float>(1 + s + 3 * i + j) / 512.0f;
      out.scales[static_cast<size_t>((s * blocks_in(shard) + i) * across + j)] = scale;
      const uint8_t code = fp8_encode<Fp8Format::e4m3fn>(values[r * columns + c] / scale);
      out.codes.push_back(code);
      out.decoded.push_back(fp8_decode<Fp8Format::e4m3fn>(code) * scale);
    }
  }
  return out;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

struct Item {
  std::string name;
  DType dtype;
  Shape shape;
  std::string bytes;
};

Checkpoint write_model(const test::TempDir& folder, const std::vector<Item>& items,
                       const std::string& config) {
  std::vector<TensorToWrite> tensors;
  for (const Item& item : items) {
    const auto* data = reinterpret_cast<const std::byte*>(item.bytes.data());
    tensors.push_back({item.name, ConstTensorView(data, item.dtype, item.shape)});
  }
  folder.write("m/model.safetensors", safetensors_bytes(tensors, {}));
  folder.write("m/config.json", config);
  return Checkpoint::open(folder / "m");
}

}  // namespace

TEST_CASE("fused bands: blocks of each shard are the numbers that they decode to") {
  const test::FamilyModel model("mimo-v2.5");
  std::vector<Item> fp8, plain;
  for (const auto& [name, location] : model.checkpoint.tensors()) {
    const Item item{name, location.entry.dtype, location.entry.shape, model.checkpoint.read(name)};
    if (!name.ends_with("qkv_proj.weight")) {
      fp8.push_back(item);
      plain.push_back(item);
      continue;
    }
    const auto* values = reinterpret_cast<const float*>(item.bytes.data());
    const Coded coded = coded_in_shards(values, item.shape[0], item.shape[1]);
    const int64_t across = blocks_in(item.shape[1]);
    const auto down = static_cast<int64_t>(coded.scales.size()) / across;
    // The whole matrix would have other blocks, and as many.
    REQUIRE(item.shape[0] / kShards % kBandBlock != 0);
    fp8.push_back({name, DType::f8_e4m3, item.shape, bytes_of(coded.codes)});
    fp8.push_back({name + "_scale_inv", DType::f32, {down, across}, bytes_of(coded.scales)});
    plain.push_back({name, DType::f32, item.shape, bytes_of(coded.decoded)});
  }
  std::string config = test::read_file(model.folder / "model/config.json");
  const test::TempDir numbers_folder, codes_folder;
  const Checkpoint of_numbers = write_model(numbers_folder, plain, config);
  config.insert(config.rfind('}'), R"(, "quantization_config": {"quant_method": "fp8",
      "weight_block_size": [24, 24], "modules_to_not_convert": ["o_proj", "mlp", "lm_head"]})");
  const Checkpoint of_codes = write_model(codes_folder, fp8, config);

  const ModelConfig quantised = read_model_config(of_codes),
                    numbers = read_model_config(of_numbers);
  CHECK(quantised.stored_as == "fp8, a scale for each 24 x 24 of each of 2 parts");
  CHECK(model_identity(of_codes, quantised) == model_identity(of_numbers, numbers));
  const auto backend = make_cpu_backend(1);
  CHECK(test::run_model(of_codes, quantised, *backend, model.ids) ==
        test::run_model(of_numbers, numbers, *backend, model.ids));
}

}  // namespace fp8kv
