#include "checkpoint/identity/sampled_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/digest.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "checkpoint/identity/identity_tensors.h"
#include "checkpoint/model_weights.h"
#include "config/families/tensor_table.h"
#include "core/numbers/dtype.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

constexpr uint64_t kPieceBytes = 512;
constexpr uint64_t kVectorBytes = uint64_t(16) << 10;  // most bytes read of a norm or a bias
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kMostRows = 128;  // most rows read of a tensor
constexpr uint64_t kLeastRows = 16;
// The most rows of all tensors except those of experts: 128 MiB of pages.
constexpr uint64_t kRowsOfModel = 32768;

// SplitMix64 (Steele, Lea, Flood 2014). Its input is the place of a piece, so every run reads the
// same pieces.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

double value_at(const char* bytes, DType dtype) {
  uint16_t half = 0;
  float single = 0;
  switch (dtype) {
    case DType::f16:
      std::memcpy(&half, bytes, sizeof(half));
      return f16_to_float(half);
    case DType::bf16:
      std::memcpy(&half, bytes, sizeof(half));
      return bf16_to_float(half);
    default:
      std::memcpy(&single, bytes, sizeof(single));
      return single;
  }
}

// The pieces of one tensor in a row, and the sizes of their values.
class Pieces {
 public:
  Pieces(std::string name, DType dtype) : name_(std::move(name)), dtype_(dtype) {}

  void add(const std::string& bytes) {
    const size_t width = dtype_bytes(dtype_);
    double squares = 0;
    for (size_t at = 0; at + width <= bytes.size(); at += width) {
      const double value = value_at(bytes.data() + at, dtype_);
      squares += value * value;
    }
    const size_t n = bytes.size() / width;
    if (n > 0) largest_ = std::max(largest_, squares / static_cast<double>(n));
    squares_ += squares;
    n_ += n;
    bytes_ += bytes;
  }

  const std::string& bytes() const { return bytes_; }
  RowSizes sizes() const {
    const double mean = n_ > 0 ? squares_ / static_cast<double>(n_) : 0;
    return {std::sqrt(mean), std::sqrt(largest_), name_};
  }

 private:
  std::string name_;
  DType dtype_;
  std::string bytes_;
  double squares_ = 0, largest_ = 0;
  size_t n_ = 0;
};

class LayerRows {
 public:
  LayerRows(const ModelWeights& weights, int64_t layer, uint64_t rows_of_others)
      : weights_(weights), seed_(mixed(static_cast<uint64_t>(layer))), rows_(rows_of_others) {}

  void add(const ModelTensor& tensor) {
    const Weight weight = weights_.at(tensor);
    const auto columns = static_cast<uint64_t>(weight.shape[weight.shape.rank() - 1]);
    const uint64_t n_rows =
        columns > 0 ? static_cast<uint64_t>(weight.shape.elements()) / columns : 0;
    Pieces pieces(tensor.name, weight.dtype);
    if (weight.shape.rank() == 1) {
      // In a vector each value counts as a row.
      const uint64_t width = dtype_bytes(weight.dtype);
      const std::string bytes = weights_.read(weight, 0, std::min(weight.bytes(), kVectorBytes));
      for (size_t at = 0; at < bytes.size(); at += width) pieces.add(bytes.substr(at, width));
    } else {
      add_rows(weight, n_rows, makes_kv(tensor) ? kMostRows : rows_, pieces);
    }
    add(weight, pieces);
  }

  // Reads a piece of every matrix of every expert.
  void add_experts(const ModelTensor& first, const std::vector<std::vector<ExpertPart>>& experts) {
    const Weight weight = weights_.at(first);
    Pieces pieces(first.name, weight.dtype);
    for (const std::vector<ExpertPart>& parts : experts) {
      for (const ExpertPart& part : parts) {
        const Piece piece = next_piece(part.offset, part.bytes);
        pieces.add(weights_.read(part.weight, piece.offset, piece.length));
      }
    }
    add(weight, pieces);
  }

  RowsIdentity done() && { return {digest_.hex().substr(0, kDigestDigits), std::move(sizes_)}; }

 private:
  void add(const Weight& weight, const Pieces& pieces) {
    check_interrupt();
    digest_.add(cat(dtype_name(weight.dtype), " ", weight.shape.text(), "\n"));
    digest_.add(pieces.bytes());
    sizes_.push_back(pieces.sizes());
  }

  // Splits the rows into `most` equal parts and reads one row of each.
  void add_rows(const Weight& weight, uint64_t n_rows, uint64_t most, Pieces& pieces) {
    const uint64_t taken = std::min(n_rows, most);
    const uint64_t row_bytes = weight.bytes() / n_rows;
    // Reads a small matrix at once, since its pieces lie in as many pages as the matrix itself.
    const bool at_once = taken * kPageBytes >= weight.bytes();
    const std::string all = at_once ? weights_.read(weight, 0, weight.bytes()) : "";
    for (uint64_t i = 0; i < taken; ++i) {
      const uint64_t first = i * n_rows / taken, end = (i + 1) * n_rows / taken;
      const Piece piece = next_piece((first + next() % (end - first)) * row_bytes, row_bytes);
      pieces.add(at_once ? all.substr(piece.offset, piece.length)
                         : weights_.read(weight, piece.offset, piece.length));
    }
  }

  struct Piece {
    uint64_t offset, length;
  };

  Piece next_piece(uint64_t offset, uint64_t bytes) {
    const uint64_t places = std::max(bytes / kPieceBytes, uint64_t{1});
    return {offset + next() % places * kPieceBytes, std::min(bytes, kPieceBytes)};
  }

  uint64_t next() { return mixed(seed_ ^ count_++); }

  const ModelWeights& weights_;
  const uint64_t seed_, rows_;
  uint64_t count_ = 0;
  Sha256 digest_;
  std::vector<RowSizes> sizes_;
};

// The rows to read of each matrix that makes neither K nor V, within the limit for the model.
uint64_t rows_of_others(const ModelConfig& config) {
  uint64_t of_kv = 0, n_others = 0;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    for (const ModelTensor& tensor : layer_tensors(config, i)) {
      if (tensor.shape.rank() < 2 || is_of_experts(tensor)) continue;
      makes_kv(tensor) ? of_kv += kMostRows : n_others += 1;
    }
  }
  const uint64_t left = kRowsOfModel - std::min(of_kv, kRowsOfModel);
  return std::clamp(left / std::max(n_others, uint64_t{1}), kLeastRows, kMostRows);
}

}  // namespace

std::vector<RowsIdentity> sampled_rows(const Checkpoint& checkpoint, const ModelConfig& config) {
  const ModelWeights weights(checkpoint, config.dtype);
  const uint64_t of_others = rows_of_others(config);
  std::vector<RowsIdentity> rows;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    const std::vector<ModelTensor> tensors = layer_tensors(config, i);
    LayerRows layer(weights, i, of_others);
    bool has_experts = false;
    for (const ModelTensor& tensor : tensors) {
      if (!decides_caches(config, i, tensor)) continue;
      if (!is_of_experts(tensor)) {
        layer.add(tensor);
      } else if (!std::exchange(has_experts, true)) {
        layer.add_experts(tensor,
                          expert_parts(weights, tensors, sampled_experts_of(*config.experts)));
      }
    }
    rows.push_back(std::move(layer).done());
  }
  return rows;
}

}  // namespace fp8kv
