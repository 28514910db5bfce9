#include "backend/cpu/products/cpu_experts.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>

#include "backend/cpu/products/cpu_identities.h"
#include "backend/cpu/products/cpu_products.h"
#include "base/error.h"

namespace fp8kv {
namespace {

// Rows of one expert that are multiplied together: as many as fit a cache.
constexpr int64_t kMostRows = 512;
// Rows of all experts that are worked on at a time, which bounds the scratch memory.
constexpr int64_t kWaveRows = 4096;
// Pieces of work a thread should find, so that a slow one does not hold up the rest.
constexpr int64_t kJobsPerThread = 4;
// Rows of a weight in one job of dot products; a multiple of every vector of `activate`.
constexpr int64_t kDotJob = 64;

// A row that is sent to an expert.
struct Sent {
  int32_t row;
  float in_weight;  // multiplies the row on its way in
  float weight;     // multiplies the expert's result
};

// Some rows of one expert, within a wave.
struct Segment {
  int64_t expert;
  int64_t first;  // in the wave
  int64_t count;
  int64_t packed_first;  // index of its first packed row
};

// Rows of a segment that are packed together.
struct Group {
  const Segment* segment;
  int64_t first;  // in the segment
  int64_t count;
};

class Experts {
 public:
  Experts(const CpuContext& cpu, ExpertScratch& scratch, const RoutedRows& rows,
          const ExpertMatrices& matrices, RowForm form)
      : kernels_(cpu.kernels),
        pool_(cpu.pool),
        scratch_(scratch),
        x_(rows.x),
        matrices_(matrices),
        out_(rows.out),
        form_(form),
        activate_(cpu.kernels.activate[static_cast<size_t>(matrices.activation)]) {
    scratch.threads.resize(static_cast<size_t>(pool_.threads()));
    scratch.codes.resize(static_cast<size_t>(pool_.threads()));
  }

  void run(const Routed& routed, bool dots) {
    sort(routed);
    const int64_t dim = this->dim();
    pool_.run(x_.shape[0], [&](int64_t row, int /*thread*/) {
      std::fill_n(out_.as<float>() + row * dim, dim, 0.0f);
    });
    const auto n_experts = static_cast<int64_t>(begins_.size()) - 1;
    for (int64_t expert = 0, at = 0; expert < n_experts;) {
      std::vector<Segment> wave;
      const int64_t wave_begin = at;
      int64_t packed = 0;
      while (expert < n_experts && at - wave_begin < kWaveRows) {
        const int64_t end = std::min(
            {begins_[static_cast<size_t>(expert) + 1], at + kMostRows, wave_begin + kWaveRows});
        if (end > at) {
          wave.push_back({expert, at - wave_begin, end - at, packed});
          packed += divide_up(end - at, kPackRows) * kPackRows;
        }
        at = end;
        if (at == begins_[static_cast<size_t>(expert) + 1]) ++expert;
      }
      const std::span rows(sent_.data() + wave_begin, static_cast<size_t>(at - wave_begin));
      if (dots) {
        run_by_dots(wave, rows);
      } else {
        run_by_tiles(wave, rows);
      }
    }
  }

 private:
  int64_t dim() const { return x_.shape[1]; }
  int64_t hidden_dim() const { return matrices_.hidden_dim; }
  int64_t width() const { return strip_width(kernels_, form_); }

  WeightRows weight(int64_t matrix, int64_t expert) const {
    const int64_t at = matrix * matrices_.addresses.shape[1] + expert;
    const uint64_t address = matrices_.addresses.as<const uint64_t>()[at];
    const Shape shape = matrix == 2 ? Shape{dim(), hidden_dim()} : Shape{hidden_dim(), dim()};
    WeightRows rows{{reinterpret_cast<const std::byte*>(static_cast<uintptr_t>(address)),
                     matrices_.dtype, shape}};
    if (!matrices_.codes.empty()) {
      const auto& codes = matrices_.codes[static_cast<size_t>(at)];
      if (codes) rows.codes = &*codes;
    }
    return rows;
  }

  // Elements [first, first + count) of the bias of an expert's matrix; zeros if there is no bias.
  // REQUIRES count <= kDotJob.
  std::array<float, kDotJob> bias(int64_t matrix, int64_t expert, int64_t first,
                                  int64_t count) const {
    std::array<float, kDotJob> out{};
    if (!matrices_.biases) return out;
    const auto& [gates, ups, downs] = *matrices_.biases;
    const ConstTensorView& all = matrix == 0 ? gates : matrix == 1 ? ups : downs;
    const int64_t at = expert * all.shape[1] + first;
    kernels_.to_float[all.dtype](all.data + at * static_cast<int64_t>(dtype_bytes(all.dtype)),
                                 count, out.data());
    return out;
  }

  // Adds the bias to rows [n_rows, count], `stride` apart.
  void add_bias(int64_t matrix, int64_t expert, int64_t first, int64_t count, float* rows,
                int64_t n_rows, int64_t stride) const {
    if (!matrices_.biases) return;
    const auto added = bias(matrix, expert, first, count);
    for (int64_t row = 0; row < n_rows; ++row, rows += stride) {
      for (int64_t j = 0; j < count; ++j) rows[j] += added[static_cast<size_t>(j)];
    }
  }

  // An expert's first matrix: its gate, or `up` if it has no gate.
  int64_t first_matrix() const { return matrices_.gated ? 0 : 1; }

  // Takes the products of the first matrix, and of `up` if there is a gate.
  void activate(float* first, const float* up, int64_t count) const {
    if (matrices_.swiglu) return kernels_.clamped_swiglu(first, up, count, *matrices_.swiglu);
    activate_(first, matrices_.gated ? up : nullptr, count);
  }

  // Raises the expert's largest magnitude to that of the rows which `down` multiplies: rows
  // [n_rows, count], `stride` apart.
  void look_at(int64_t expert, const float* rows, int64_t n_rows, int64_t count,
               int64_t stride) const {
    if (!matrices_.down_amax) return;
    uint32_t most = 0;
    for (int64_t row = 0; row < n_rows; ++row) {
      most = kernels_.largest_bits(rows + row * stride, count, most);
    }
    std::atomic_ref<uint64_t> largest(matrices_.down_amax->as<uint64_t>()[expert]);
    uint64_t had = largest.load(std::memory_order_relaxed);
    while (had < most && !largest.compare_exchange_weak(had, most, std::memory_order_relaxed)) {
    }
  }

  // Sorts all sent rows by expert, then by row.
  void sort(const Routed& routed) {
    const auto n_experts = static_cast<size_t>(matrices_.addresses.shape[1]);
    const auto choices = n_experts + static_cast<size_t>(matrices_.identities);
    const int64_t k = routed.ids.shape[1], n = routed.ids.shape[0] * k;
    const auto* ids = routed.ids.as<const int32_t>();
    const auto is_identity = [&](int64_t i) { return static_cast<size_t>(ids[i]) >= n_experts; };
    begins_.assign(n_experts + 1, 0);
    for (int64_t i = 0; i < n; ++i) {
      FP8KV_ASSERT(ids[i] >= 0 && static_cast<size_t>(ids[i]) < choices);
      if (!is_identity(i)) ++begins_[static_cast<size_t>(ids[i]) + 1];
    }
    for (size_t i = 0; i < n_experts; ++i) begins_[i + 1] += begins_[i];
    std::vector<int64_t> next = begins_;
    sent_.resize(static_cast<size_t>(begins_.back()));
    for (int64_t i = 0; i < n; ++i) {
      if (is_identity(i)) continue;
      const auto at = static_cast<size_t>(next[static_cast<size_t>(ids[i])]++);
      const float weight = routed.weights.as<const float>()[i];
      sent_[at] = {static_cast<int32_t>(i / k), matrices_.weigh_input ? weight : 1.0f,
                   matrices_.weigh_input ? 1.0f : weight};
    }
  }

  // The expert's input: a row of x, or row i of `weighed` [wave rows, dim] with the weighted copy.
  const float* row_of(const Sent& sent, int64_t i, float* weighed) const {
    const float* row = x_.as<float>() + sent.row * dim();
    if (!matrices_.weigh_input) return row;
    float* to = weighed + i * dim();
    for (int64_t j = 0; j < dim(); ++j) to[j] = row[j] * sent.in_weight;
    return to;
  }
  float* weighed_rows(size_t n_rows) const {
    const int64_t n = matrices_.weigh_input ? static_cast<int64_t>(n_rows) : 0;
    return scratch_.weighed.floats(static_cast<size_t>(n * dim()));
  }

  // A segment's part of a wave's packed rows. Each segment is packed by itself.
  PackedRows packed(float* wave, const Segment& segment, int64_t in_dim) const {
    PackedRows rows{nullptr, segment.count, in_dim, form_};
    rows.data = wave + segment.packed_first * rows.blocks() * kTileStride;
    return rows;
  }

  float* packed_wave(Scratch& scratch, const std::vector<Segment>& wave, int64_t in_dim) const {
    const Segment& last = wave.back();
    const PackedRows all{nullptr, last.packed_first + last.count, in_dim, form_};
    return scratch.floats(all.floats());
  }

  // Computes a wave by tiles.
  void run_by_tiles(const std::vector<Segment>& wave, std::span<const Sent> rows) {
    float* in = packed_wave(scratch_.rows, wave, dim());
    float* hidden = packed_wave(scratch_.prepared, wave, hidden_dim());
    float* weighed = weighed_rows(rows.size());
    std::vector<Group> groups;
    for (const Segment& segment : wave) {
      for (int64_t first = 0; first < segment.count; first += kPackRows) {
        groups.push_back({&segment, first, std::min(kPackRows, segment.count - first)});
      }
    }
    pool_.run(static_cast<int64_t>(groups.size()), [&](int64_t job, int /*thread*/) {
      const Group& group = groups[static_cast<size_t>(job)];
      std::array<const float*, kPackRows> from{};
      for (int64_t i = 0; i < group.count; ++i) {
        const int64_t at = group.segment->first + group.first + i;
        from[static_cast<size_t>(i)] = row_of(rows[static_cast<size_t>(at)], at, weighed);
      }
      pack_rows(kernels_, std::span(from).first(static_cast<size_t>(group.count)),
                packed(in, *group.segment, dim()), group.first);
    });
    const int64_t strips = divide_up(hidden_dim(), width());
    pool_.run(static_cast<int64_t>(wave.size()) * strips, [&](int64_t job, int thread) {
      const Segment& segment = wave[static_cast<size_t>(job / strips)];
      hidden_strip(segment, job % strips, packed(in, segment, dim()),
                   packed(hidden, segment, hidden_dim()), scratch_.threads[thread],
                   scratch_.codes[thread]);
    });
    const int64_t out_strips = divide_up(dim(), width());
    const int64_t parts = row_parts(out_strips);
    pool_.run(out_strips * parts, [&](int64_t job, int thread) {
      const int64_t n = x_.shape[0], part = job % parts;
      const Rows part_rows{part_begin(n, parts, part), part_begin(n, parts, part + 1)};
      for (const Segment& segment : wave) {
        const auto of_segment =
            rows.subspan(static_cast<size_t>(segment.first), static_cast<size_t>(segment.count));
        down_strip(segment, job / parts, of_segment, part_rows,
                   packed(hidden, segment, hidden_dim()), scratch_.threads[thread],
                   scratch_.codes[thread]);
      }
    });
  }

  struct Rows {
    int64_t begin, end;
  };

  // Cuts the rows of x only if there are too few strips for all threads.
  int64_t row_parts(int64_t strips) const {
    const int64_t wanted = pool_.threads() == 1 ? 1 : pool_.threads() * kJobsPerThread;
    return std::clamp<int64_t>(wanted / strips, 1,
                               std::max<int64_t>(1, x_.shape[0] / (4 * kernels_.tile_rows)));
  }

  // Computes activation(gate) * up of a strip, and packs it for `down`.
  void hidden_strip(const Segment& segment, int64_t strip, const PackedRows& in,
                    const PackedRows& out, Scratch& scratch, CodeScratch& codes) const {
    const int64_t width = this->width(), size = segment.count * width;
    const int64_t panel_size = panel_floats(kernels_, form_, segment.count, 1);
    float* panel = scratch.floats(static_cast<size_t>(panel_size + 2 * size));
    float* gate = panel + panel_size;
    float* up = gate + size;
    const TileRows rows{kernels_, in, 0, segment.count};
    const int64_t first = strip * width, count = std::min(width, hidden_dim() - first);
    for (int64_t matrix = first_matrix(); matrix < 2; ++matrix) {
      float* to = matrix == first_matrix() ? gate : up;
      multiply_strips(rows, weight(matrix, segment.expert), {strip, 1}, {to, width, width},
                      {panel, codes});
      add_bias(matrix, segment.expert, first, count, to, segment.count, width);
    }
    activate(gate, up, size);
    look_at(segment.expert, gate, segment.count, count, width);
    for (int64_t row = 0; row < segment.count; row += kPackRows) {
      const int64_t n = std::min(kPackRows, segment.count - row);
      std::array<const float*, kPackRows> from{};
      for (int64_t i = 0; i < n; ++i) from[static_cast<size_t>(i)] = gate + (row + i) * width;
      pack_part(kernels_, std::span(from).first(static_cast<size_t>(n)), {first, count}, out, row);
    }
  }

  // Adds a strip of the expert's results to the rows of `part` that were sent to it.
  void down_strip(const Segment& segment, int64_t strip, std::span<const Sent> sent,
                  const Rows& part, const PackedRows& hidden, Scratch& scratch,
                  CodeScratch& codes) const {
    const auto below = [](const Sent& each, int64_t row) { return each.row < row; };
    const auto begin = std::lower_bound(sent.begin(), sent.end(), part.begin, below);
    const auto end = std::lower_bound(begin, sent.end(), part.end, below);
    if (begin == end) return;
    const int64_t width = this->width(), n = end - begin;
    const int64_t panel_size = panel_floats(kernels_, form_, n, 1);
    float* panel = scratch.floats(static_cast<size_t>(panel_size + n * width));
    float* sums = panel + panel_size;
    multiply_strips({kernels_, hidden, begin - sent.begin(), n}, weight(2, segment.expert),
                    {strip, 1}, {sums, width, width}, {panel, codes});
    const int64_t first = strip * width, count = std::min(width, dim() - first);
    const auto added = bias(2, segment.expert, first, count);
    for (int64_t i = 0; i < n; ++i) {
      const Sent& each = begin[i];
      float* to = out_.as<float>() + each.row * dim() + first;
      for (int64_t j = 0; j < count; ++j) {
        to[j] += each.weight * (sums[i * width + j] + added[static_cast<size_t>(j)]);
      }
    }
  }

  // Computes a wave by dot products.
  void run_by_dots(const std::vector<Segment>& wave, std::span<const Sent> rows) {
    const auto n = static_cast<int64_t>(rows.size());
    const int64_t stride = dot_stride(form_, dim()),
                  hidden_stride = dot_stride(form_, hidden_dim());
    float* in = scratch_.rows.floats(static_cast<size_t>(n * stride));
    float* weighed = weighed_rows(rows.size());
    float* gate = scratch_.hidden.floats(static_cast<size_t>(2 * n * hidden_dim()));
    float* up = gate + n * hidden_dim();
    float* hidden = scratch_.prepared.floats(static_cast<size_t>(n * hidden_stride));
    pool_.run(n, [&](int64_t i, int /*thread*/) {
      prepare_dot_row(kernels_, form_, row_of(rows[static_cast<size_t>(i)], i, weighed), dim(),
                      in + i * stride);
    });
    const int64_t jobs = divide_up(hidden_dim(), kDotJob);
    pool_.run(static_cast<int64_t>(wave.size()) * jobs, [&](int64_t job, int thread) {
      const Segment& segment = wave[static_cast<size_t>(job / jobs)];
      const int64_t begin = job % jobs * kDotJob, end = std::min(begin + kDotJob, hidden_dim());
      const DotRows from{kernels_, form_, in + segment.first * stride, stride, segment.count};
      for (int64_t matrix = first_matrix(); matrix < 2; ++matrix) {
        float* to = (matrix == first_matrix() ? gate : up) + segment.first * hidden_dim();
        multiply_dots(
            from, weight(matrix, segment.expert), {begin, end}, scratch_.codes[thread],
            [&](int64_t row, int64_t column, float sum) { to[row * hidden_dim() + column] = sum; });
        add_bias(matrix, segment.expert, begin, end - begin, to + begin, segment.count,
                 hidden_dim());
      }
      for (int64_t i = segment.first; i < segment.first + segment.count; ++i) {
        const int64_t at = i * hidden_dim() + begin;
        activate(gate + at, up + at, end - begin);
      }
      look_at(segment.expert, gate + segment.first * hidden_dim() + begin, segment.count,
              end - begin, hidden_dim());
    });
    pool_.run(n, [&](int64_t i, int /*thread*/) {
      prepare_dot_row(kernels_, form_, gate + i * hidden_dim(), hidden_dim(),
                      hidden + i * hidden_stride);
    });
    pool_.run(divide_up(dim(), kDotJob), [&](int64_t job, int thread) {
      const int64_t begin = job * kDotJob, end = std::min(begin + kDotJob, dim());
      for (const Segment& segment : wave) {
        const auto added = bias(2, segment.expert, begin, end - begin);
        const DotRows from{kernels_, form_, hidden + segment.first * hidden_stride, hidden_stride,
                           segment.count};
        multiply_dots(from, weight(2, segment.expert), {begin, end}, scratch_.codes[thread],
                      [&](int64_t row, int64_t column, float sum) {
                        const Sent& sent = rows[static_cast<size_t>(segment.first + row)];
                        out_.as<float>()[sent.row * dim() + column] +=
                            sent.weight * (sum + added[static_cast<size_t>(column - begin)]);
                      });
      }
    });
  }

  const CpuKernels& kernels_;
  ThreadPool& pool_;
  ExpertScratch& scratch_;
  const ConstTensorView& x_;
  const ExpertMatrices& matrices_;
  const TensorView& out_;
  const RowForm form_;
  const CpuKernels::Activate activate_;
  std::vector<int64_t> begins_;  // [experts + 1]: where each expert's rows begin in sent_
  std::vector<Sent> sent_;
};

}  // namespace

void cpu_experts(const CpuContext& cpu, ExpertScratch& scratch, const RoutedRows& rows,
                 const ExpertMatrices& matrices) {
  const auto& [x, routed, out] = rows;
  if (x.shape[0] == 0) return;
  FP8KV_ASSERT(x.dtype == DType::f32 && out.dtype == DType::f32 && x.shape == out.shape);
  const bool coded = !matrices.codes.empty();
  // The rows that `down` multiplies arrive strip by strip from gate and up.
  const ProductMethod method = product_method(
      cpu.kernels, {matrices.dtype, coded, x.shape[0], cpu.computed_as.rows}, RowsCome::in_parts);
  Experts(cpu, scratch, rows, matrices, method.form).run(routed, method.dots);
  if (matrices.identities == 0) return;
  cpu_add_identities(cpu, x, routed, matrices.addresses.shape[1], out);
}

}  // namespace fp8kv
