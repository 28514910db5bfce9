// Products of attention by a matrix unit. For scores, keys are the unit's weights and queries its
// rows. For outputs, the softmax's weights are multiplied with values, packed as transposed rows.
#include "backend/cpu/attention/cpu_attention_op.h"

namespace fp8kv::attention {
namespace {

constexpr int64_t kBlockSteps = kBlockTokens / kUnitDepth;
// Parts of a block whose scores are computed together.
constexpr int64_t kParts = kBlockTokens / kUnitWeights;
// Parts of a softmax weight: two, which keep 16 bits.
constexpr int kWeightParts = 2;

alignas(64) constexpr std::array<std::byte, kBlockTokens * sizeof(float)> kZeroRow{};

// f16 only with a cache in f16.
const UnitNumbers& numbers_of(const Op& op) {
  const MatrixUnit& unit = *op.kernels.matrix_unit;
  return unit.f16 != nullptr && op.element == DType::f16 ? *unit.f16 : unit.bf16;
}
bool is_scaled(const Op& op) {
  return numbers_of(op).type == DType::f16;
}
int query_parts(const Op& op) {
  return is_scaled(op) ? 2 : parts_of(op.options.rounded_to);
}
int cache_parts(const Op& op) {
  return parts_of(op.element, numbers_of(op).type);
}
int64_t key_steps(const Op& op) {
  return divide_up(op.head_dim, kUnitDepth);
}
int64_t query_words(const Op& op) {
  return key_steps(op) * query_parts(op) * kUnitWords;
}
int64_t value_blocks(const Op& op) {
  return divide_up(op.v_dim, kUnitRows);
}
int64_t value_words(const Op& op) {
  return kBlockSteps * cache_parts(op) * kUnitWords;
}

// Parts of Work::panel.
struct Panel {
  float* keys;     // [kParts, key_floats]
  float* weights;  // kUnitWeights queries at a time
  float* values;   // [value_blocks, value_words]
  float* scores;   // [kParts, query blocks, kUnitSums]

  static constexpr int64_t kWeights = kBlockSteps * kWeightParts * kUnitWeights * kUnitDepth / 2;
  // Floats of kUnitWeights packed keys.
  static int64_t key_floats(const Op& op) {
    return key_steps(op) * cache_parts(op) * kUnitWeights * kUnitDepth / 2;
  }

  Panel(const Op& op, float* memory)
      : keys(memory),
        weights(keys + kParts * key_floats(op)),
        values(weights + kWeights),
        scores(values + value_blocks(op) * value_words(op)) {}
};

uint16_t* words(float* memory) {
  return reinterpret_cast<uint16_t*>(memory);
}

int64_t panel_floats(const Op& op, int64_t queries) {
  return kParts * Panel::key_floats(op) + Panel::kWeights + value_blocks(op) * value_words(op) +
         kParts * divide_up(queries, kUnitRows) * kUnitSums;
}

// Scaled queries of a block, then the scales of all.
int64_t scale_floats(const Op& op, int64_t queries) {
  return is_scaled(op) ? kUnitRows * op.head_dim + divide_up(queries, kUnitRows) * kUnitRows : 0;
}
int64_t query_floats(const Op& op, int64_t queries) {
  return divide_up(queries, kUnitRows) * query_words(op) + scale_floats(op, queries);
}
float* scaled_queries(const Op& op, int64_t queries, const Work& work) {
  return work.queries + divide_up(queries, kUnitRows) * query_words(op);
}
float* query_scales(const Op& op, int64_t queries, const Work& work) {
  return is_scaled(op) ? scaled_queries(op, queries, work) + kUnitRows * op.head_dim : nullptr;
}

void load_queries(const Op& op, const Span& span, const Work& work) {
  const int64_t n = op.queries(span);
  const auto pack = numbers_of(op).pack_rows[query_parts(op) - 1];
  float* scaled = scaled_queries(op, n, work);
  float* scales = query_scales(op, n, work);
  for (int64_t first = 0; first < n; first += kUnitRows) {
    const int64_t count = std::min<int64_t>(kUnitRows, n - first);
    std::array<const float*, kUnitRows> rows{};
    for (int64_t i = 0; i < count; ++i) {
      const float* row = op.q + op.item(span, first + i) * op.head_dim;
      if (scales != nullptr) {
        float& scale = scales[first + i];
        scale = f16_scale(op.kernels.largest_bits(row, op.head_dim, 0));
        float* to = scaled + i * op.head_dim;
        for (int64_t d = 0; d < op.head_dim; ++d) to[d] = row[d] * scale;
        row = to;
      }
      rows[static_cast<size_t>(i)] = row;
    }
    pack(rows.data(), static_cast<int>(count), op.head_dim,
         work.queries + first / kUnitRows * query_words(op));
  }
}

// Keys [first, first + 32) of a block of `count`, in place if they can be read there. Keys past the
// last one may be anything: their scores are not used.
UnitWeights keys_of(const Op& op, const BlockRows& rows, int64_t first, int64_t count,
                    uint16_t* packed) {
  const std::byte* const* keys = rows.keys + first;
  const int64_t left = count - first;
  if (!op.options.chosen && op.element == numbers_of(op).type && op.head_dim % kUnitDepth == 0 &&
      op.kv.page_size % kUnitRows == 0) {
    const std::byte* other = left > kUnitRows ? keys[kUnitRows] : keys[0];
    return {keys[0], op.row_bytes(), other - keys[0], 0, kUnitDepth * 2};
  }
  const std::byte* from[kUnitWeights];
  for (int64_t i = 0; i < kUnitWeights; ++i) from[i] = keys[i < left ? i : 0];
  numbers_of(op).pack_weights[op.element](from, kUnitWeights, op.head_dim, packed);
  return packed_weights(packed, cache_parts(op));
}

// Rows of the next block's K or V, in even shares for `turns` steps of products.
UnitAhead ahead(const Op& op, const std::byte* const* rows, int64_t count, int64_t turns) {
  UnitAhead ahead;
  ahead.pieces = rows;
  ahead.n_pieces = count;
  ahead.in_step = divide_up(count, turns);
  ahead.piece_bytes = op.row_bytes();
  return ahead;
}

void score(const Op& op, const Span& span, const BlockRows& rows, const BlockRows& next,
           const Work& work) {
  const MatrixUnit& unit = *op.kernels.matrix_unit;
  const auto multiply = numbers_of(op).multiply[cache_parts(op) - 1][query_parts(op) - 1];
  const int64_t n = op.queries(span), blocks = divide_up(n, kUnitRows);
  const Panel panel(op, work.panel);
  const int64_t parts = divide_up(rows.count, kUnitWeights);
  // Packs all parts of the block before it multiplies: a tile would wait for keys stored just
  // before.
  UnitWeights keys[kParts];
  for (int64_t part = 0; part < parts; ++part) {
    keys[part] = keys_of(op, rows, part * kUnitWeights, rows.count,
                         words(panel.keys + part * Panel::key_floats(op)));
  }
  const UnitTurn turn(unit);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = part * kUnitWeights;
    const int64_t then = std::clamp<int64_t>(next.count - first, 0, kUnitWeights);
    multiply(keys[part], key_steps(op), work.queries, blocks, query_words(op),
             packed_sums(panel.scores + part * blocks * kUnitSums), false,
             ahead(op, next.keys + first, then, key_steps(op) * divide_up(blocks, 2)));
  }
  const float* scales = query_scales(op, n, work);
  for (int64_t part = 0; part < parts; ++part) {
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t in_block = std::min<int64_t>(kUnitRows, n - b * kUnitRows);
      unit.unpack(
          panel.scores + (part * blocks + b) * kUnitSums, 0, static_cast<int>(in_block),
          {work.scores + b * kUnitRows * kTileStride + part * kUnitWeights, kTileStride,
           kUnitWeights, nullptr, false, scales == nullptr ? nullptr : scales + b * kUnitRows});
    }
  }
}

void sum(const Op& op, const Span& span, const BlockRows& rows, const BlockRows& next,
         const Work& work) {
  const UnitNumbers& numbers = numbers_of(op);
  const int64_t n = op.queries(span), steps = divide_up(rows.count, kUnitDepth);
  const Panel panel(op, work.panel);
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t first = step * kUnitDepth;
    numbers.pack_columns[op.element](
        rows.values + first, static_cast<int>(std::min<int64_t>(kUnitDepth, rows.count - first)),
        op.v_dim, panel.values + step * cache_parts(op) * kUnitWords, value_words(op));
  }
  const UnitTurn turn(*op.kernels.matrix_unit);
  for (int64_t query = 0; query < n; query += kUnitWeights) {
    const std::byte* from[kUnitWeights];
    for (int64_t i = 0; i < kUnitWeights; ++i) {
      const bool is_query = query + i < n;
      from[i] = is_query
                    ? reinterpret_cast<const std::byte*>(work.scores + (query + i) * kTileStride)
                    : kZeroRow.data();
    }
    const bool half = n - query <= kUnitRows;
    numbers.pack_weights.f32(from, half ? kUnitRows : kUnitWeights, rows.count,
                             words(panel.weights));
    UnitWeights weights = packed_weights(panel.weights, kWeightParts);
    if (half) weights.half_bytes = 0;
    const UnitSums sums{work.chunk.sums + query * op.padded_dim, op.padded_dim * 4,
                        kUnitRows * op.padded_dim, kUnitRows};
    const int64_t turns = steps * divide_up(value_blocks(op), 2);
    numbers.multiply[kWeightParts - 1][cache_parts(op) - 1](
        weights, steps, panel.values, value_blocks(op), value_words(op), sums, true,
        ahead(op, next.values, query == 0 ? next.count : 0, turns));
  }
}

}  // namespace

const AttentionKernels kByUnit = {query_floats, panel_floats, load_queries, score, sum};

}  // namespace fp8kv::attention
