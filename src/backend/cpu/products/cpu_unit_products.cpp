#include "backend/cpu/products/cpu_unit_products.h"

#include <algorithm>
#include <array>

namespace fp8kv {
namespace {

// Up to this many blocks of rows, weights are read in place. For more rows they are packed first:
// rows of a matrix often lie a power of two apart and compete for the same cache lines.
constexpr int64_t kMostBlocksInPlace = 2;

// Lines of the rows' next k block that one step fetches. With eight strips in a job, this covers
// the block.
constexpr int kLinesAhead = 4;

// Stands in for the rows of a weight past its last one.
alignas(64) constexpr std::array<std::byte, kTileStride * sizeof(float)> kZeroRow{};

const UnitNumbers& numbers_of(const CpuKernels& kernels, RowForm form) {
  const MatrixUnit& unit = *kernels.matrix_unit;
  return form == RowForm::unit_f16 ? *unit.f16 : unit.bf16;
}
int weight_parts(RowForm form) {
  return form == RowForm::unit_two_bf16 ? 2 : 1;
}
int row_parts(RowForm form) {
  return form == RowForm::unit_bf16 ? 1 : 2;
}

// A strip's k block.
struct Step {
  int64_t strip;
  int64_t k_block;
};

// The strips of a weight, k block by k block.
class Strips {
 public:
  Strips(const TileRows& rows, const StripWeight& weight, const StripRange& range,
         const StripMemory& memory)
      : packed_(rows.packed),
        numbers_(numbers_of(rows.kernels, rows.packed.form)),
        parts_(weight_parts(rows.packed.form)),
        weight_(weight.view),
        coded_(weight.coded),
        panel_(reinterpret_cast<uint16_t*>(memory.panel)),
        scratch_(memory.codes),
        range_(range),
        first_(rows.first_row / kUnitRows),
        blocks_(divide_up(rows.first_row + rows.n_rows, kUnitRows) - first_) {}

  int64_t blocks() const { return blocks_; }
  bool has_few_blocks() const { return blocks_ <= kMostBlocksInPlace; }
  bool in_place() const {
    return coded_ == nullptr && parts_ == 1 && has_few_blocks() && packed_.in_dim % kUnitDepth == 0;
  }

  // Adds a k block to the sums of a strip; the first block sets them. `next` is the step that
  // follows.
  void multiply(const Step& now, const Step& next, float* sums) const {
    const bool read_in_place = in_place() && is_whole(now.strip);
    if (!read_in_place) pack(now);
    const UnitWeights weights =
        read_in_place
            ? UnitWeights{at(now), row_bytes(), kUnitRows * row_bytes(), 0, kUnitDepth * 2}
            : packed_weights(panel_, parts_);
    const int64_t steps = divide_up(packed_.depth(now.k_block), kUnitDepth);
    numbers_.multiply[parts_ - 1][row_parts(packed_.form) - 1](
        weights, steps, packed_.at(now.k_block, first_ * kUnitRows), blocks_,
        kUnitRows * kTileStride, packed_sums(sums), now.k_block > 0, ahead(now, next));
  }

 private:
  int64_t row_bytes() const { return packed_.in_dim * 2; }
  const std::byte* at(const Step& step, int64_t row = 0) const {
    return weight_.data + (step.strip * kUnitWeights + row) * row_bytes() +
           step.k_block * packed_.block() * 2;
  }
  bool is_whole(int64_t strip) const { return (strip + 1) * kUnitWeights <= weight_.shape[0]; }
  // Codes are not fetched: they are read in an order of their own. Each strip fetches a share of
  // the rows' next k block.
  UnitAhead ahead(const Step& now, const Step& next) const {
    UnitAhead ahead;
    if (coded_ == nullptr && is_whole(next.strip)) {
      ahead.weights = at(next);
      ahead.row_bytes = row_bytes();
    }
    if (!has_few_blocks() && now.k_block + 1 < packed_.blocks()) {
      const int64_t words = blocks_ * kUnitRows * kTileStride;
      const int64_t share = (now.strip - range_.first) * words / range_.count;
      ahead.rows = packed_.at(now.k_block + 1, first_ * kUnitRows) + share;
      ahead.lines = kLinesAhead;
    }
    return ahead;
  }

  void pack(const Step& step) const {
    const int64_t depth = packed_.depth(step.k_block);
    const std::byte* from[kUnitWeights];
    uint16_t* decoded = coded_ == nullptr ? nullptr : decode_buffer(scratch_, kUnitWeights * depth);
    for (int64_t j = 0; j < kUnitWeights; ++j) {
      const int64_t row = step.strip * kUnitWeights + j;
      if (row >= weight_.shape[0]) {
        from[j] = kZeroRow.data();
      } else if (coded_ == nullptr) {
        from[j] = at(step, j);
      } else {
        uint16_t* to = decoded + j * depth;
        coded_->decode(row, step.k_block * packed_.block(), depth, to);
        from[j] = reinterpret_cast<const std::byte*>(to);
      }
    }
    numbers_.pack_weights[weight_.dtype](from, kUnitWeights, depth, panel_);
  }

  const PackedRows& packed_;
  const UnitNumbers& numbers_;
  int parts_;  // parts of a weight
  const ConstTensorView& weight_;
  CodedRows* coded_;
  uint16_t* panel_;
  CodeScratch& scratch_;
  StripRange range_;
  int64_t first_;  // first block of rows
  int64_t blocks_;
};

}  // namespace

void pack_unit_rows(const CpuKernels& kernels, RowForm form, std::span<const float* const> rows,
                    const ElementRange& elements, float* to) {
  const int parts = row_parts(form);
  numbers_of(kernels, form)
      .pack_rows[parts - 1](rows.data(), static_cast<int>(rows.size()), elements.count,
                            to + elements.first / kUnitDepth * parts * kUnitWords);
}

int64_t unit_sums_floats(int64_t n_rows, int64_t n_strips) {
  return (divide_up(n_rows, kUnitRows) + 1) * n_strips * kUnitSums;
}

void multiply_unit_strips(const TileRows& rows, const StripWeight& weight, const StripRange& range,
                          const ProductsOut& out, const StripMemory& memory) {
  const MatrixUnit& unit = *rows.kernels.matrix_unit;
  const UnitTurn turn(unit);
  const Strips strips(rows, weight, range, memory);
  float* of_unit = memory.panel + kTileStride * kUnitWeights;
  const int64_t size = strips.blocks() * kUnitSums;
  // Few rows: finishes one strip after the other, since whole rows of weights stream fastest and
  // tables of codes are made once. Many rows: does all strips of a k block, whose rows stay in the
  // cache.
  const int64_t k_blocks = rows.packed.blocks(), n_steps = k_blocks * range.count;
  const auto step_at = [&](int64_t i) {
    return strips.has_few_blocks() ? Step{range.first + i / k_blocks, i % k_blocks}
                                   : Step{range.first + i % range.count, i / range.count};
  };
  for (int64_t i = 0; i < n_steps; ++i) {
    const Step now = step_at(i), next = step_at(std::min(i + 1, n_steps - 1));
    strips.multiply(now, next, of_unit + (now.strip - range.first) * size);
  }
  const float* scales = rows.packed.scales();
  const int64_t offset = rows.first_row % kUnitRows;
  for (int64_t done = 0; done < rows.n_rows;) {
    const int64_t row = offset + done;
    const int64_t count = std::min(kUnitRows - row % kUnitRows, rows.n_rows - done);
    for (int64_t strip = 0; strip < range.count; ++strip) {
      const int64_t first = strip * kUnitWeights;
      unit.unpack(of_unit + strip * size + row / kUnitRows * kUnitSums,
                  static_cast<int>(row % kUnitRows), static_cast<int>(count),
                  {out.at + done * out.stride + first, out.stride,
                   std::min<int64_t>(kUnitWeights, out.columns - first),
                   out.bias == nullptr ? nullptr : out.bias + first, out.add,
                   scales == nullptr ? nullptr : scales + rows.first_row + done});
    }
    done += count;
  }
}

}  // namespace fp8kv
