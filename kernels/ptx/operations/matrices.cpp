// Matrix instructions, with the fragments of the PTX ISA's figures.
#include <cstdint>
#include <cstring>

#include "kernels/ptx/operations/addresses.h"
#include "kernels/ptx/operations/floats.h"
#include "kernels/ptx/operations/operations.h"

namespace fp8kv::ptx {
namespace {

float f16_of(uint32_t pair, int half) {
  return f16_number(static_cast<uint16_t>(pair >> 16 * half));
}
float bf16_of(uint32_t pair, int half) {
  return bf16_number(static_cast<uint16_t>(pair >> 16 * half));
}

// mma.m16n8k16. A lane has group = lane / 4 and place = lane % 4. Its registers hold
//   A [16, 16]: rows group, group + 8, group, group + 8; columns 2 place and 2 place + 1, plus 8
//               from the third register on
//   B [16, 8]:  column group; rows like A's columns
//   C [16, 8]:  rows group, group, group + 8, group + 8; columns 2 place, 2 place + 1 in turn
// Sums are in f32, in the order of the columns of A: a device's order is not documented.
// PTX ISA 9.7.14.5.8.
template <float (*kNumber)(uint32_t, int)>
void multiply(Warp& warp, const Instruction& in, uint32_t) {
  float a[16][16], b[16][8], c[16][8];
  const Operand *a_at = &in.operand[4], *b_at = a_at + 4, *c_at = b_at + 2;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int group = lane / 4, place = lane % 4 * 2;
    for (int i = 0; i < 4; ++i) {
      const uint32_t pair = lanes_of<uint32_t>(warp, a_at[i])[lane];
      float* to = &a[group + i % 2 * 8][place + i / 2 * 8];
      to[0] = kNumber(pair, 0);
      to[1] = kNumber(pair, 1);
      c[group + i / 2 * 8][place + i % 2] = lanes_of<float>(warp, c_at[i])[lane];
    }
    for (int i = 0; i < 2; ++i) {
      const uint32_t pair = lanes_of<uint32_t>(warp, b_at[i])[lane];
      b[place + i * 8][group] = kNumber(pair, 0);
      b[place + i * 8 + 1][group] = kNumber(pair, 1);
    }
  }
  for (int row = 0; row < 16; ++row) {
    for (int depth = 0; depth < 16; ++depth) {
      for (int col = 0; col < 8; ++col) c[row][col] += a[row][depth] * b[depth][col];
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 4; ++i) {
      lanes_of<float>(warp, in.operand[i])[lane] = c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
    }
  }
}

// Four matrices of 8 x 8 halves. Lane l gives the address of row l % 8 of matrix l / 8. From each
// matrix it gets element [l / 4][2 (l % 4)] and the next one; with kTransposed, from the transposed
// matrices.  PTX ISA 9.7.14.5.15.
template <bool kTransposed>
void load_matrices(Warp& warp, const Instruction& in, uint32_t) {
  uint16_t matrix[4][8][8];
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint32_t at = shared_address(warp, in.operand[4], in.offset, lane, 16);
    read_shared(warp, lane, at, 16);
    std::memcpy(matrix[lane / 8][lane % 8], warp.shared->data() + at, 16);
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = lane / 4, col = lane % 4 * 2;
    for (int i = 0; i < 4; ++i) {
      const uint32_t low = kTransposed ? matrix[i][col][row] : matrix[i][row][col];
      const uint32_t high = kTransposed ? matrix[i][col + 1][row] : matrix[i][row][col + 1];
      lanes_of<uint32_t>(warp, in.operand[i])[lane] = low | high << 16;
    }
  }
}

// Transposes a matrix of 8 x 8 halves in ldmatrix's layout.  PTX ISA 9.7.14.5.17.
void transpose(Warp& warp, const Instruction& in, uint32_t) {
  uint16_t matrix[8][8];
  const uint32_t* from = lanes_of<uint32_t>(warp, in.operand[1]);
  for (int lane = 0; lane < kLanes; ++lane) {
    matrix[lane / 4][lane % 4 * 2] = static_cast<uint16_t>(from[lane]);
    matrix[lane / 4][lane % 4 * 2 + 1] = static_cast<uint16_t>(from[lane] >> 16);
  }
  uint32_t* to = lanes_of<uint32_t>(warp, in.operand[0]);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = lane / 4, col = lane % 4 * 2;
    to[lane] = matrix[col][row] | uint32_t{matrix[col + 1][row]} << 16;
  }
}

}  // namespace

void add_matrix_operations(Operations& o) {
  const std::string mma = "mma.sync.aligned.m16n8k16.row.col.f32.";
  o[mma + "f16.f16.f32"] = {multiply<f16_of>, "4444:4444444444", Kind::whole};
  o[mma + "bf16.bf16.f32"] = {multiply<bf16_of>, "4444:4444444444", Kind::whole};
  const std::string load = "ldmatrix.sync.aligned.m8n8.x4.";
  o[load + "shared.b16"] = {load_matrices<false>, "4444:s", Kind::whole};
  o[load + "trans.shared.b16"] = {load_matrices<true>, "4444:s", Kind::whole};
  o["movmatrix.sync.aligned.m8n8.trans.b16"] = {transpose, "4:4", Kind::whole};
}

}  // namespace fp8kv::ptx
