#include <cstring>

#include "backend/cpu/isa/common/cpu_matrix_unit.h"
#include "base/rng.h"

namespace fp8kv {
namespace {

constexpr int64_t kSteps = 4;
constexpr int kParts = 2;

struct Operands {
  float x[kUnitRows][kSteps * kUnitDepth];
  float weights[kUnitWeights][kSteps * kUnitDepth];
};

struct alignas(64) Memory {
  float rows[kSteps * kParts * kUnitWords];
  uint16_t weights[kSteps * kParts * kUnitWeights * kUnitDepth];
  float sums[kUnitSums];
};

void multiply(const MatrixUnit& unit, const Operands& operands, Memory& memory) {
  constexpr int64_t kDepth = kSteps * kUnitDepth;
  const float* rows[kUnitRows];
  const std::byte* weights[kUnitWeights];
  for (int i = 0; i < kUnitRows; ++i) rows[i] = operands.x[i];
  for (int i = 0; i < kUnitWeights; ++i) {
    weights[i] = reinterpret_cast<const std::byte*>(operands.weights[i]);
  }
  const UnitNumbers& numbers = *unit.f16;
  numbers.pack_rows[kParts - 1](rows, kUnitRows, kDepth, memory.rows);
  numbers.pack_weights.f32(weights, kUnitWeights, kDepth, memory.weights);
  const UnitTurn turn(unit);
  numbers.multiply[kParts - 1][kParts - 1](packed_weights(memory.weights, kParts), kSteps,
                                           memory.rows, 1, kSteps * kParts * kUnitWords,
                                           packed_sums(memory.sums), false, {});
}

}  // namespace

bool same_f16_product(const MatrixUnit& one, const MatrixUnit& other) {
  Rng rng(1);
  const auto fill = [&](auto& rows) {
    for (auto& row : rows) {
      for (float& x : row) x = static_cast<float>(rng.uniform() * 2 - 1);
    }
  };
  Operands operands;
  Memory of_one, of_other;
  fill(operands.x);
  fill(operands.weights);
  multiply(one, operands, of_one);
  multiply(other, operands, of_other);
  return std::memcmp(of_one.sums, of_other.sums, sizeof of_one.sums) == 0;
}

}  // namespace fp8kv
