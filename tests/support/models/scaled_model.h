// A model folder whose tensors are scales, for tests of code that reads scales.
#pragma once

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/numbers/half.h"
#include "json/json.h"
#include "scales/read/find_scales.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

inline std::string bytes_of(const std::vector<double>& values, DType dtype) {
  std::string bytes;
  const auto put = [&](auto value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const double value : values) {
    const auto single = static_cast<float>(value);
    if (dtype == DType::f32) put(single);
    if (dtype == DType::f64) put(value);
    if (dtype == DType::f16) put(f16_from_float(single));
    if (dtype == DType::bf16) put(bf16_from_float(single));
    if (dtype == DType::i32) put(static_cast<int32_t>(value));
    if (dtype == DType::i8) put(static_cast<int8_t>(value));
  }
  return bytes;
}

// A model folder with two layers and two KV heads. It has only the added tensors.
class ScaledModel {
 public:
  ScaledModel& add(const std::string& name, const std::vector<double>& values,
                   DType dtype = DType::f32, const Shape& shape = {}) {
    tensors_.push_back({name, bytes_of(values, dtype), dtype, shape});
    return *this;
  }
  // Adds an F32 scale of shape [] to one layer.
  ScaledModel& layer(int number, const std::string& kind, double value) {
    return add(cat("model.layers.", number, ".self_attn.", kind), {value});
  }
  ScaledModel& config(const std::string& key, const std::string& value) {
    config_ = json_with_member(config_, key, value);
    return *this;
  }

  Checkpoint open() const {
    std::vector<TensorToWrite> items;
    for (const Tensor& tensor : tensors_) {
      const auto* bytes = reinterpret_cast<const std::byte*>(tensor.bytes.data());
      items.push_back({tensor.name, ConstTensorView(bytes, tensor.dtype, tensor.shape)});
    }
    folder_.write("config.json", config_);
    folder_.write("model.safetensors", safetensors_bytes(items, {{"format", "pt"}}));
    return Checkpoint::open(folder_.path());
  }
  FoundScales read() const { return scales_at(open()); }
  // The error, without the folder's name.
  std::string error() const {
    const Checkpoint checkpoint = open();
    std::string message = error_of([&] { scales_at(checkpoint); });
    const std::string folder = folder_.path().string();
    REQUIRE(message.find(folder) != std::string::npos);
    for (size_t at = 0; (at = message.find(folder)) != message.npos;) {
      message.replace(at, folder.size(), "MODEL");
    }
    return message;
  }

 private:
  struct Tensor {
    std::string name;
    std::string bytes;
    DType dtype;
    Shape shape;
  };
  TempDir folder_;
  std::string config_ = tiny_config_json(tiny_config());
  std::vector<Tensor> tensors_;
};

}  // namespace fp8kv::test
