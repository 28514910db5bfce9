// Searches the tensors of one module's quantised weight by name, and refuses those that do not fit.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/numbers/tensor.h"
#include "formats/safetensors.h"
#include "quant/quant_settings.h"
#include "quant/stored_weight.h"

namespace fp8kv {

// Rows and columns that share a scale if the config does not say.
inline constexpr int64_t kUsualBlock = 128;

inline int64_t parts_of(int64_t all, int64_t part) {
  return (all + part - 1) / part;
}

class WeightSearch {
 public:
  WeightSearch(const std::string& module, const WeightShape& shape, const QuantSettings& settings,
               const FindTensor& find, const std::string& source)
      : module_(module), shape_(shape), settings_(settings), find_(find), source_(source) {}

  // The shape of the decoded weight: [rows, columns], or [experts, rows, columns].
  const Shape& shape() const { return shape_.whole; }
  int64_t columns() const { return shape()[shape().rank() - 1]; }
  int64_t rows() const { return shape().elements() / columns(); }  // of all experts
  int64_t bands() const { return shape_.bands; }
  const QuantSettings& settings() const { return settings_; }

  const TensorEntry* find(const char* suffix) const { return find_(module_ + suffix); }
  // Returns the first tensor that is there. Throws if none is, naming all of them and the tensor
  // that needs one.
  const TensorEntry& at(std::span<const char* const> suffixes, const TensorEntry& beside) const;

  [[noreturn]] void refuse_shape(const TensorEntry& entry, const std::string& expected) const;
  void check_shape(const TensorEntry& entry, const Shape& expected) const;
  void check_dtype(const TensorEntry& entry, DType expected) const;
  void check_scale_dtype(const TensorEntry& entry) const;  // throws unless F32, F16 or BF16

  StoredWeight start(const char* form, const TensorEntry& codes) const;
  // Sets groups of equally many columns, each with a scale. Scales are [rows, groups].
  void set_groups(const TensorEntry& scales, int64_t groups, StoredWeight& out) const;
  // Throws if there are as many groups as the config's group size gives with a shorter last group.
  void check_group_size(const StoredWeight& found) const;

 private:
  std::string where(const TensorEntry& entry) const;

  const std::string& module_;
  WeightShape shape_;
  const QuantSettings& settings_;
  const FindTensor& find_;
  const std::string& source_;
};

// The kind of codes in a tensor of bytes.
WeightCodes byte_codes(DType dtype);

// Sets scales for blocks, with `across` scales in each row of blocks.
void set_blocks(int64_t block_rows, int64_t block_columns, int64_t across, StoredWeight& out);

}  // namespace fp8kv
