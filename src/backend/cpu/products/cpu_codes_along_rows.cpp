#include "backend/cpu/products/cpu_codes_along_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backend/cpu/memory/cpu_memory.h"

namespace fp8kv {
namespace {

// Rows of a job: few enough that a line of memory is used up before it leaves the cache.
constexpr int64_t kJobRows = 64;

// Transposes an 8 x 8 block of 4-bit elements, the first in the lowest bits: words of eight rows of
// a column become words of eight columns of a row.
void transpose(std::array<uint32_t, 8>& words) {
  constexpr std::array<uint32_t, 3> kMasks = {0x0000FFFFu, 0x00FF00FFu, 0x0F0F0F0Fu};
  for (size_t stage = 0, far = 4; far > 0; ++stage, far /= 2) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (i & far) continue;
      const uint32_t other = (words[i] >> (4 * far) ^ words[i + far]) & kMasks[stage];
      words[i + far] ^= other;
      words[i] ^= other << (4 * far);
    }
  }
}

// to [rows][columns / per_word]
void turn_words_down(const QuantisedMatrix& matrix, int64_t begin, int64_t end, uint32_t* to) {
  const int64_t words = matrix.columns * matrix.bits / 32;
  const auto* from = static_cast<const uint32_t*>(matrix.codes);
  // Makes bytes signed: see form_along_rows.
  const uint32_t flip = matrix.bits == 8 ? 0x80808080u : 0u;
  for (int64_t word = 0; word < words; ++word) {
    for (int64_t r = begin; r < end; ++r) {
      to[r * words + word] = from[word * matrix.rows + r] ^ flip;
    }
  }
}

void turn_words_shuffled(const QuantisedMatrix& matrix, int64_t begin, int64_t end, uint32_t* to) {
  const int64_t words = matrix.columns / 8, across = matrix.rows / 8;
  const auto* from = static_cast<const uint32_t*>(matrix.codes);
  for (int64_t word = 0; word < words; ++word) {
    for (int64_t r = begin; r < end; r += 8) {
      std::array<uint32_t, 8> block;
      for (int64_t i = 0; i < 8; ++i) {
        block[static_cast<size_t>(i)] = from[(word * 8 + i) * across + r / 8];
      }
      transpose(block);
      for (int64_t i = 0; i < 8; ++i) {
        to[(r + i) * words + word] = block[static_cast<size_t>(shuffled_place(i))];
      }
    }
  }
}

}  // namespace

bool has_groups_in_order(const QuantisedMatrix& matrix) {
  if (matrix.groups == nullptr) return true;
  for (int64_t c = 0; c < matrix.columns; ++c) {
    if (matrix.groups[c] != c / matrix.block_columns) return false;
  }
  return true;
}

std::optional<QuantisedMatrix> form_along_rows(const QuantisedMatrix& matrix) {
  const bool shuffled = matrix.codes_as == WeightCodes::words_shuffled && matrix.rows % 8 == 0;
  const bool down =
      matrix.codes_as == WeightCodes::words_down && (matrix.bits == 4 || matrix.bits == 8);
  if (matrix.groups != nullptr || matrix.columns % 8 != 0 || (!shuffled && !down)) {
    return std::nullopt;
  }
  QuantisedMatrix turned = matrix;
  // Unsigned 8-bit zero points do not fit signed bytes, but zero points and codes less 128 do.
  turned.codes_as = matrix.bits == 8 ? WeightCodes::i8 : WeightCodes::words;
  turned.zeros_as = ZeroPoints::i8;
  turned.zero_add = 0;
  turned.block_rows = 1;
  turned.row_step = matrix.n_groups;
  turned.group_step = 1;
  turned.codes = turned.scales = turned.zeros = nullptr;
  return turned;
}

QuantisedMatrix codes_along_rows(ThreadPool& pool, const QuantisedMatrix& matrix,
                                 std::vector<Tensor>& storage) {
  const int64_t n_groups = matrix.n_groups;
  const auto allocate = [&](DType dtype, const Shape& shape) {
    TensorView view{nullptr, dtype, shape};
    std::shared_ptr<std::byte> memory = allocate_zeroed(view.bytes());
    view.data = memory.get();
    storage.emplace_back(view, std::move(memory));
    return view;
  };
  const TensorView codes =
      allocate(DType::i32, Shape{matrix.rows, matrix.columns * matrix.bits / 32});
  const TensorView scales = allocate(matrix.scale_dtype, Shape{matrix.rows, n_groups});
  const TensorView zeros = allocate(DType::i8, Shape{matrix.rows, n_groups});
  QuantisedMatrix turned = form_along_rows(matrix).value();
  turned.codes = codes.data;
  turned.scales = scales.data;
  turned.zeros = zeros.data;
  const auto scale_bytes = static_cast<int64_t>(dtype_bytes(matrix.scale_dtype));
  pool.run((matrix.rows + kJobRows - 1) / kJobRows, [&](int64_t job, int /*thread*/) {
    const int64_t begin = job * kJobRows, end = std::min(begin + kJobRows, matrix.rows);
    const bool shuffled = matrix.codes_as == WeightCodes::words_shuffled;
    const auto turn = shuffled ? turn_words_shuffled : turn_words_down;
    turn(matrix, begin, end, codes.as<uint32_t>());
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t group = 0; group < n_groups; ++group) {
        const int64_t at = r * n_groups + group;
        const int64_t from = r / matrix.block_rows * matrix.row_step + group * matrix.group_step;
        std::memcpy(scales.data + at * scale_bytes,
                    static_cast<const std::byte*>(matrix.scales) + from * scale_bytes,
                    static_cast<size_t>(scale_bytes));
        zeros.as<int8_t>()[at] =
            static_cast<int8_t>(zero_value(matrix, r, group) - (matrix.bits == 8 ? 128.0f : 0.0f));
      }
    }
  });
  return turned;
}

}  // namespace fp8kv
