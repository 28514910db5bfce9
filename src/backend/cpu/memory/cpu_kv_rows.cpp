#include "backend/cpu/memory/cpu_kv_rows.h"

#include <array>

#include "core/cache/kv_rows.h"

namespace fp8kv {
namespace {

// The values of all codes, since looking them up is faster than decoding.
constexpr std::array<float, 16> kE2m1 = [] {
  std::array<float, 16> values{};
  for (uint32_t code = 0; code < values.size(); ++code) values[code] = e2m1_decode(code);
  return values;
}();

void read_latent(const CpuKernels& kernels, const KvRow& row, const uint8_t* from, float* to) {
  const LatentBlocks blocks = row.latent();
  const auto* bytes = reinterpret_cast<const std::byte*>(from);
  kernels.to_float[DType::bf16](bytes + blocks.rope_at(), blocks.rope_dim, to);
  to += blocks.rope_dim;
  kernels.to_float[DType::f8_e4m3](bytes, blocks.rank, to);
  for (int32_t block = 0; block < blocks.blocks(); ++block, to += kLatentBlock) {
    const float scale = load_f32(from + blocks.scales_at() + block * 4);
    for (int32_t i = 0; i < kLatentBlock; ++i) to[i] *= scale;
  }
}

void read_nvfp4(const KvRow& row, const uint8_t* from, float* to) {
  for (int32_t block = 0; block < row.parts(); ++block) {
    const float scale = fp8_decode<Fp8Format::e4m3fn>(from[row.scales_at() + block]);
    const int32_t first = block * kNvfp4Block;
    for (int32_t i = first; i < first + kNvfp4Block; i += 2) {
      const uint8_t pair = from[i / 2];
      to[i] = kE2m1[pair & 15u] * scale;
      to[i + 1] = kE2m1[pair >> 4] * scale;
    }
  }
}

void read_int8(const KvRow& row, const uint8_t* from, float* to) {
  const float scale = load_f32(from + row.scales_at());
  for (int32_t i = 0; i < row.dim; ++i) {
    to[i] = static_cast<float>(static_cast<int8_t>(from[i])) * scale;
  }
}

void read_fp8(const CpuKernels& kernels, const KvRow& row, const uint8_t* from, float* to) {
  kernels.to_float[DType::f8_e4m3](reinterpret_cast<const std::byte*>(from), row.dim, to);
  const float scale = load_f32(from + row.scales_at());
  for (int32_t i = 0; i < row.dim; ++i) to[i] *= scale;
}

}  // namespace

void read_kv_row(const CpuKernels& kernels, const KvRow& row, const std::byte* from, float* to) {
  if (const std::optional<DType> elements = kv_elements(row.format)) {
    return kernels.to_float[*elements](from, row.dim, to);
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(from);
  if (row.format == KvFormat::ds_mla) return read_latent(kernels, row, bytes, to);
  if (is_nvfp4(row.format)) return read_nvfp4(row, bytes, to);
  if (row.format == KvFormat::int8_per_token_head) return read_int8(row, bytes, to);
  if (row.format == KvFormat::fp8_per_token_head) return read_fp8(kernels, row, bytes, to);
  for (int32_t i = 0; i < row.dim; ++i) to[i] = row_value(row, bytes, i);
}

void write_kv_row(const CpuKernels& kernels, const KvRow& row, const float* x, float stored,
                  std::byte* to) {
  if (const std::optional<DType> elements = kv_elements(row.format)) {
    return kernels.store[*elements](x, row.dim, stored, to);
  }
  const auto value = [x](int32_t i) { return x[i]; };
  for (int32_t part = 0; part < row.parts(); ++part) {
    encode_part(row, part, value, stored, reinterpret_cast<uint8_t*>(to));
  }
}

}  // namespace fp8kv
