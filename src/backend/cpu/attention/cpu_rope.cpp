#include "backend/cpu/attention/cpu_rope.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "backend/cpu/memory/cpu_kv_rows.h"
#include "core/numbers/hadamard.h"
#include "core/numbers/half.h"
#include "core/numbers/toward_zero.h"

namespace fp8kv {
namespace {

// Jobs per thread, so that a slow one does not hold up the rest, and the least rows of a job. Each
// job adds 4096 counters to the shared ones.
constexpr int64_t kJobsPerThread = 8, kLeastRows = 128;
// Elements whose bins are found together.
constexpr int64_t kBinned = 128;

// Magnitudes of one job's values, before they are added to the shared ones.
class LocalMagnitudes {
 public:
  void add(const CpuKernels& kernels, const float* x, int64_t count) {
    std::array<uint32_t, kBinned> bins;
    for (int64_t first = 0; first < count; first += kBinned) {
      const int64_t n = std::min(kBinned, count - first);
      const uint32_t largest = kernels.magnitude_bins(x + first, n, bins.data());
      if (largest >= kInfinity) {
        add_each(x + first, n);
        continue;
      }
      amax_ = std::max(amax_, largest);
#pragma GCC unroll 8
      for (int64_t i = 0; i < n; ++i) ++bins_[bins[static_cast<size_t>(i)]];
    }
  }
  // Adds to a head's words, which other threads add to as well. Integers: any order gives the same
  // result.
  void merge_into(uint64_t* words) const {
    std::atomic_ref<uint64_t> amax(words[kMagnitudeAmax]);
    uint64_t seen = amax.load(std::memory_order_relaxed);
    while (seen < amax_ && !amax.compare_exchange_weak(seen, amax_, std::memory_order_relaxed)) {
    }
    add_to(words[kMagnitudeNonfinite], nonfinite_);
    for (size_t bin = 0; bin < bins_.size(); ++bin) {
      add_to(words[kMagnitudeFirstBin + bin], bins_[bin]);
    }
  }

 private:
  static constexpr uint32_t kInfinity = 0x7F800000u;  // and NaN above it

  void add_each(const float* x, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t magnitude = float_bits(x[i]) & 0x7FFFFFFFu;
      if (magnitude >= kInfinity) {
        ++nonfinite_;
        continue;
      }
      amax_ = std::max(amax_, magnitude);
      ++bins_[static_cast<size_t>(magnitude_bin(magnitude))];
    }
  }

  static void add_to(uint64_t& word, uint64_t count) {
    if (count == 0) return;
    std::atomic_ref<uint64_t>(word).fetch_add(count, std::memory_order_relaxed);
  }

  uint32_t amax_ = 0;
  uint64_t nonfinite_ = 0;
  std::array<uint32_t, kMagnitudeBins> bins_{};
};

enum Part { kQ, kK, kV, kParts };

struct Op {
  const CpuKernels& kernels;
  const RopeAppend& args;
  int64_t n;
  int64_t n_heads;
  int64_t n_kv_heads;
  int64_t groups;  // groups of query heads: one per KV head, or one in all

  const TensorView& view(Part part) const {
    return part == kQ ? args.q : part == kK ? args.k : args.v;
  }
  int64_t head_dim(Part part) const { return view(part).shape[2]; }
};

const float* rope_of(const Op& op, Part part, int64_t row) {
  const ConstTensorView& rope = part == kQ && op.args.q_rope ? *op.args.q_rope : op.args.rope;
  const int64_t position = op.args.batch.positions.as<int32_t>()[row];
  return rope.as<float>() + position * rope.shape[1];
}

void rotate(const Op& op, Part part, float* x, int64_t row) {
  const float* cosines = rope_of(op, part, row);
  const auto pairs = static_cast<int>(op.args.rope.shape[1] / 2);
  if (op.args.pairs == RopePairs::halves) return op.kernels.rotate(x, cosines, pairs);
  const float* sines = cosines + pairs;
  for (int i = 0; i < pairs; ++i) {
    const float first = x[2 * i], second = x[2 * i + 1];
    x[2 * i] = first * cosines[i] - second * sines[i];
    x[2 * i + 1] = second * cosines[i] + first * sines[i];
  }
}

void round_to(const Op& op, Part part, float* x) {
  if (op.args.round_to == DType::f16) op.kernels.round_f16(x, op.head_dim(part));
  if (op.args.round_to == DType::bf16) op.kernels.round_bf16(x, op.head_dim(part));
}

// Appends row `number` of a cache of latents in blocks: the rotated part of K, or the latent.
void append_latent(const Op& op, Part part, const float* x, int64_t number) {
  const KvRow row = op.args.kv.k_row();
  const LatentBlocks blocks = row.latent();
  auto* token = static_cast<std::byte*>(op.args.kv.k) + number * row.bytes();
  if (part == kK) {
    op.kernels.store[DType::bf16](x, blocks.rope_dim, 1.0f, token + blocks.rope_at());
    return;
  }
  for (int32_t block = 0; block < blocks.blocks(); ++block) {
    const float* values = x + block * kLatentBlock;
    const float scale =
        latent_block_scale(float_from_bits(op.kernels.largest_bits(values, kLatentBlock, 0)));
    op.kernels.store[DType::f8_e4m3](values, kLatentBlock, scale, token + block * kLatentBlock);
    std::memcpy(token + blocks.scales_at() + block * 4, &scale, sizeof scale);
  }
}

void append(const Op& op, Part part, const float* x, int64_t row, int64_t head) {
  const bool is_key = part == kK;
  const PagedKv& kv = op.args.kv;
  const int64_t slot = op.args.batch.slots.as<int32_t>()[row];
  const int64_t number = kv.row(slot / kv.page_size, head, slot % kv.page_size);
  if (kv.k_format == KvFormat::ds_mla) return append_latent(op, part, x, number);
  const float* scales = is_key ? kv.k_scale : kv.v_scale;
  KvRow to_row = is_key ? kv.k_row() : kv.v_row();
  const int64_t bytes = to_row.bytes();
  // In a latent cache of plain elements, K and V are parts of one row.
  to_row.dim = static_cast<int32_t>(op.head_dim(part));
  auto* to = static_cast<std::byte*>(is_key ? kv.k : kv.v) + number * bytes;
  const float stored = scales == nullptr ? 1.0f : scales[head];
  if (kv.toward_zero) {
    std::vector<float> cut(x, x + to_row.dim);
    for (float& value : cut) value = e4m3_toward_zero(value, stored);
    return write_kv_row(op.kernels, to_row, cut.data(), stored, to);
  }
  if (!kv_spec(to_row.format).rotated) return write_kv_row(op.kernels, to_row, x, stored, to);
  std::vector<float> turned(x, x + to_row.dim);
  hadamard(turned.data(), to_row.dim, false);
  round_to(op, part, turned.data());
  write_kv_row(op.kernels, to_row, turned.data(), stored, to);
}

// Fetches the next row's heads, since the processor cannot foresee them: heads of a row are
// adjacent, but the next row's lie elsewhere.
void fetch_row(const float* x, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(float);
  constexpr int kWritten = 1;
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(x + i, kWritten);
}

// Processes rows [begin, end) of one KV head, or of one group of query heads.
void process(const Op& op, Part part, int64_t kv_head, int64_t begin, int64_t end) {
  const int64_t group = op.n_heads / op.groups;
  const int64_t heads = part == kQ ? group : 1;
  const int64_t first_head = part == kQ ? kv_head * group : kv_head;
  const int64_t row_heads = part == kQ ? op.n_heads : op.n_kv_heads;
  const int64_t size = op.head_dim(part);
  std::optional<LocalMagnitudes> magnitudes;
  if (op.args.magnitudes) magnitudes.emplace();
  float* elements = op.view(part).as<float>();
  for (int64_t row = begin; row < end; ++row) {
    if (row + 1 < end)
      fetch_row(elements + ((row + 1) * row_heads + first_head) * size, heads * size);
    for (int64_t head = first_head; head < first_head + heads; ++head) {
      float* x = elements + (row * row_heads + head) * size;
      if (part != kV && size > 0) rotate(op, part, x, row);
      round_to(op, part, x);
      if (magnitudes) magnitudes->add(op.kernels, x, size);
      if (part != kQ) append(op, part, x, row, head);
    }
  }
  if (magnitudes) {
    uint64_t* words = op.args.magnitudes->as<uint64_t>();
    magnitudes->merge_into(words + (part * op.n_kv_heads + kv_head) * kMagnitudeWords);
  }
}

}  // namespace

void cpu_rope_append(const CpuContext& cpu, const RopeAppend& args) {
  const int64_t n_kv_heads = args.k.shape[1];
  const int64_t groups = std::max<int64_t>(n_kv_heads, 1);
  const int64_t parts = n_kv_heads > 0 ? kParts : 1;
  const Op op{cpu.kernels, args, args.q.shape[0], args.q.shape[1], n_kv_heads, groups};
  const int64_t wanted = cpu.pool.threads() * kJobsPerThread / (groups * parts);
  const int64_t blocks = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, op.n / kLeastRows));
  cpu.pool.run(blocks * groups * parts, [&](int64_t job, int /*thread*/) {
    const auto part = static_cast<Part>(job % parts);
    const int64_t head = job / parts % groups;
    const int64_t block = job / parts / groups;
    process(op, part, head, op.n * block / blocks, op.n * (block + 1) / blocks);
  });
}

}  // namespace fp8kv
