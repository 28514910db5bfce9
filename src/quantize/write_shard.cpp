#include "quantize/write_shard.h"

#include <algorithm>
#include <vector>

#include "backend/cpu/isa/cpu_isa.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "files/file.h"
#include "files/output/new_file.h"
#include "quantize/encode_rows.h"

namespace fp8kv {
namespace {

// The bytes of one job, and of one step between progress reports. Large enough to make overhead
// negligible, small enough to fit a core's cache and to notice interrupts.
constexpr uint64_t kPieceBytes = uint64_t(1) << 20;
constexpr uint64_t kStepBytes = uint64_t(32) << 20;

// The tensor's name as people find it in the source.
std::string name_of(const MovedTensor& tensor) {
  const std::string name = quote(tensor.from.name);
  return tensor.rows_of.empty() ? name : cat(quote(tensor.rows_of), ", in what becomes ", name);
}

class ShardWriter {
 public:
  ShardWriter(const ShardTools& tools, const ShardPlan& plan, const std::filesystem::path& to)
      : tools_(tools),
        in_(tools.checkpoint.folder() / plan.file),
        out_(to, to.filename(), plan.bytes),
        kernels_(cpu_kernels(chosen_cpu_isa())),
        scratch_(static_cast<size_t>(tools.threads.threads())) {}

  void write(const ShardPlan& plan) {
    out_.write(0, std::as_bytes(std::span(plan.head)));
    for (const MovedTensor& tensor : plan.tensors) {
      tensor.quantised ? quantize(tensor) : copy(tensor);
    }
    out_.close();
  }

 private:
  struct Scratch {
    std::vector<std::byte> rows;
    std::vector<std::byte> codes;
  };

  // A matrix, and the pieces in which it is processed.
  struct Matrix {
    const MovedTensor& tensor;
    int64_t rows;
    int64_t columns;
    uint64_t row_bytes;
    int64_t block_rows;  // 1 if all rows share a scale
    int64_t block_columns;
    int64_t blocks;      // blocks of columns
    int64_t piece_rows;  // a multiple of block_rows
  };

  Matrix matrix_of(const MovedTensor& tensor) const {
    const Fp8Scheme& scheme = tools_.scheme;
    const Shape& shape = tensor.from.shape;
    Matrix m{tensor, shape[0], shape[1], 0, scheme.block_rows, scheme.block_columns, 0, 0};
    if (m.block_rows == 0) m.block_rows = 1;
    m.row_bytes = static_cast<uint64_t>(m.columns) * dtype_bytes(tensor.from.dtype);
    if (m.block_columns == 0) m.block_columns = m.columns;
    m.blocks = (m.columns + m.block_columns - 1) / m.block_columns;
    const int64_t unit = std::max<int64_t>(m.block_rows, 1);
    const auto units =
        static_cast<int64_t>(kPieceBytes / (m.row_bytes * static_cast<uint64_t>(unit)));
    m.piece_rows = unit * std::max<int64_t>(units, 1);
    return m;
  }

  // Calls work(piece, thread) for every piece of `bytes`, and reports progress.
  template <typename Work>
  void in_steps(int64_t pieces, uint64_t bytes, const Work& work) {
    const auto step =
        std::max<int64_t>(1, static_cast<int64_t>(kStepBytes * static_cast<uint64_t>(pieces) /
                                                  std::max<uint64_t>(bytes, 1)));
    uint64_t said = 0;
    for (int64_t at = 0; at < pieces; at += step) {
      const int64_t count = std::min(step, pieces - at);
      tools_.threads.run(count, [&](int64_t job, int thread) {
        check_interrupt();
        work(at + job, scratch_[static_cast<size_t>(thread)]);
      });
      const uint64_t now =
          bytes * static_cast<uint64_t>(at + count) / static_cast<uint64_t>(pieces);
      tools_.progress.advance(now - said);
      said = now;
    }
  }

  void copy(const MovedTensor& tensor) {
    const uint64_t bytes = tensor.from.end - tensor.from.begin;
    const auto pieces = static_cast<int64_t>((bytes + kPieceBytes - 1) / kPieceBytes);
    in_steps(pieces, bytes, [&](int64_t piece, Scratch& scratch) {
      const uint64_t at = static_cast<uint64_t>(piece) * kPieceBytes;
      scratch.rows.resize(std::min(kPieceBytes, bytes - at));
      in_.read(tensor.from.begin + at, scratch.rows);
      out_.write(tensor.to + at, scratch.rows);
    });
    begin_sync(tensor.to, bytes);
  }

  // Reads the rows of a piece into `scratch`, and returns their number.
  int64_t read_piece(const Matrix& m, int64_t first, Scratch& scratch) const {
    const int64_t rows = std::min(m.piece_rows, m.rows - first);
    scratch.rows.resize(static_cast<size_t>(rows) * m.row_bytes);
    in_.read(m.tensor.from.begin + static_cast<uint64_t>(first) * m.row_bytes, scratch.rows);
    return rows;
  }

  RowEncoder encoder_of(const Matrix& m) const {
    return {kernels_, m.tensor.from.dtype, m.columns, m.block_columns};
  }

  // Makes the scales of rows that share them. `first` is the number of the first row, for messages.
  void make_scales(const Matrix& m, RowEncoder& encoder, std::span<const std::byte> rows,
                   int64_t first, std::span<float> scales) const {
    const auto n_rows = static_cast<int64_t>(rows.size() / m.row_bytes);
    std::vector<uint32_t> amax(static_cast<size_t>(m.blocks), 0);
    encoder.raise(rows.data(), n_rows, amax);
    check_finite(m, encoder, rows, first, amax);
    for (size_t b = 0; b < amax.size(); ++b) {
      scales[b] = weight_scale(float_from_bits(amax[b]), m.tensor.from.dtype);
    }
  }

  void check_finite(const Matrix& m, RowEncoder& encoder, std::span<const std::byte> rows,
                    int64_t first, std::span<const uint32_t> amax) const {
    if (*std::max_element(amax.begin(), amax.end()) < kInfinityBits) return;
    const auto n_rows = static_cast<int64_t>(rows.size() / m.row_bytes);
    const int64_t at = encoder.find_not_finite(rows.data(), n_rows).value();
    throw Error(cat(quote(tools_.checkpoint.folder().string()), ": tensor ", name_of(m.tensor),
                    ": element [", first + at / m.columns, ", ", at % m.columns, "] is ",
                    encoder.element(rows.data(), at), ", expected a finite number"),
                "the file is damaged, or the model was: fetch it again, or from whoever made it");
  }

  // Quantises with one scale for all rows, which takes two passes over them.
  void quantise_whole(const MovedTensor& tensor) {
    const Matrix m = matrix_of(tensor);
    const int64_t pieces = (m.rows + m.piece_rows - 1) / m.piece_rows;
    const uint64_t bytes = tensor.from.end - tensor.from.begin;
    std::vector<float> amax(static_cast<size_t>(pieces));
    in_steps(pieces, bytes / 2, [&](int64_t piece, Scratch& scratch) {
      const int64_t first = piece * m.piece_rows;
      const int64_t rows = read_piece(m, first, scratch);
      RowEncoder encoder = encoder_of(m);
      std::vector<uint32_t> most(1, 0);
      encoder.raise(scratch.rows.data(), rows, most);
      check_finite(m, encoder, scratch.rows, first, most);
      amax[static_cast<size_t>(piece)] = float_from_bits(most.front());
    });
    const std::vector<float> scale = {
        weight_scale(*std::max_element(amax.begin(), amax.end()), tensor.from.dtype)};
    in_steps(pieces, bytes - bytes / 2, [&](int64_t piece, Scratch& scratch) {
      const int64_t first = piece * m.piece_rows;
      const int64_t rows = read_piece(m, first, scratch);
      scratch.codes.resize(static_cast<size_t>(rows * m.columns));
      encoder_of(m).encode(scratch.rows.data(), rows, scale, scratch.codes.data());
      out_.write(tensor.to + static_cast<uint64_t>(first * m.columns), scratch.codes);
    });
    write_scales(tensor, scale);
    begin_sync(tensor.to, static_cast<uint64_t>(m.rows * m.columns));
  }

  void quantize(const MovedTensor& tensor) {
    if (tensor.input_amax) write_input_scale(tensor);
    tools_.scheme.block_rows == 0 ? quantise_whole(tensor) : quantise_blocks(tensor);
  }

  void quantise_blocks(const MovedTensor& tensor) {
    const Matrix m = matrix_of(tensor);
    std::vector<float> scales(static_cast<size_t>(tensor.scales.elements()));
    const int64_t pieces = (m.rows + m.piece_rows - 1) / m.piece_rows;
    const uint64_t bytes = tensor.from.end - tensor.from.begin;
    in_steps(pieces, bytes, [&](int64_t piece, Scratch& scratch) {
      const int64_t first = piece * m.piece_rows;
      const int64_t rows = read_piece(m, first, scratch);
      RowEncoder encoder = encoder_of(m);
      scratch.codes.resize(static_cast<size_t>(rows * m.columns));
      for (int64_t r = 0; r < rows; r += m.block_rows) {
        const int64_t n = std::min(m.block_rows, rows - r);
        const auto these = std::span(scratch.rows)
                               .subspan(static_cast<size_t>(r) * m.row_bytes,
                                        static_cast<size_t>(n) * m.row_bytes);
        const auto of_these =
            std::span(scales).subspan(static_cast<size_t>((first + r) / m.block_rows * m.blocks),
                                      static_cast<size_t>(m.blocks));
        make_scales(m, encoder, these, first + r, of_these);
        encoder.encode(these.data(), n, of_these, scratch.codes.data() + r * m.columns);
      }
      out_.write(tensor.to + static_cast<uint64_t>(first * m.columns), scratch.codes);
    });
    write_scales(tensor, scales);
    begin_sync(tensor.to, static_cast<uint64_t>(m.rows * m.columns));
  }

  // Starts writing large tensors to disk early. Small ones are left to the end.
  void begin_sync(uint64_t offset, uint64_t length) const {
    if (length >= kStepBytes / 2) out_.begin_sync(offset, length);
  }

  void write_input_scale(const MovedTensor& tensor) {
    std::vector<std::byte> bytes(dtype_bytes(tensor.from.dtype));
    store_scale(weight_scale(*tensor.input_amax, tensor.from.dtype), tensor.from.dtype,
                bytes.data());
    out_.write(tensor.input_scale_to, bytes);
  }

  void write_scales(const MovedTensor& tensor, std::span<const float> scales) {
    const size_t size = dtype_bytes(tensor.from.dtype);
    std::vector<std::byte> bytes(scales.size() * size);
    for (size_t i = 0; i < scales.size(); ++i) {
      store_scale(scales[i], tensor.from.dtype, bytes.data() + i * size);
    }
    out_.write(tensor.scales_to, bytes);
  }

  const ShardTools& tools_;
  InputFile in_;
  NewFile out_;
  const CpuKernels& kernels_;
  std::vector<Scratch> scratch_;
};

}  // namespace

void write_shard(const ShardTools& tools, const ShardPlan& plan, const std::filesystem::path& to) {
  ShardWriter(tools, plan, to).write(plan);
}

}  // namespace fp8kv
