// One module whose quantised weight is looked for: its tensors by their names, and what is said of
// those that do not fit.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/tensor.h"
#include "formats/safetensors.h"
#include "quant/quant_settings.h"
#include "quant/stored_weight.h"

namespace fp8kv {

// Rows and columns that share a scale where the config says nothing.
inline constexpr int64_t kUsualBlock = 128;

inline int64_t parts_of(int64_t all, int64_t part) {
  return (all + part - 1) / part;
}

class WeightSearch {
 public:
  WeightSearch(const std::string& module, const Shape& shape, const QuantSettings& settings,
               const FindTensor& find, const std::string& source)
      : module_(module), shape_(shape), settings_(settings), find_(find), source_(source) {}

  // As the weight is decoded: [rows, columns], or [experts, rows, columns].
  const Shape& shape() const { return shape_; }
  int64_t columns() const { return shape_[shape_.rank() - 1]; }
  int64_t rows() const { return shape_.elements() / columns(); }  // of all experts
  const QuantSettings& settings() const { return settings_; }

  const TensorEntry* find(const char* suffix) const { return find_(module_ + suffix); }
  // The first that is there. Throws where none is, naming all, and the tensor that needs one.
  const TensorEntry& at(std::span<const char* const> suffixes, const TensorEntry& beside) const;

  [[noreturn]] void refuse_shape(const TensorEntry& entry, const std::string& expected) const;
  void check_shape(const TensorEntry& entry, const Shape& expected) const;
  void check_dtype(const TensorEntry& entry, DType expected) const;
  void check_scale_dtype(const TensorEntry& entry) const;  // F32, F16 or BF16

  StoredWeight start(const char* form, const TensorEntry& codes) const;
  // Groups of columns of a whole number each, each with a scale: [rows, groups] of a row.
  void set_groups(const TensorEntry& scales, int64_t groups, StoredWeight& out) const;
  // Throws where the config's groups, the last of them cut off, are as many as these.
  void check_group_size(const StoredWeight& found) const;

 private:
  std::string where(const TensorEntry& entry) const;

  const std::string& module_;
  const Shape& shape_;
  const QuantSettings& settings_;
  const FindTensor& find_;
  const std::string& source_;
};

// Of codes of a byte.
WeightCodes byte_codes(DType dtype);

// Scales for blocks, which lie in rows of `across`.
void set_blocks(int64_t block_rows, int64_t block_columns, int64_t across, StoredWeight& out);

}  // namespace fp8kv
