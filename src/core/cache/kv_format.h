// The formats of one row of a KV cache (K or V of one token and one KV head), as a table with a row
// for each format. core/cache/kv_rows.h writes and reads such rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/cache/latent_blocks.h"
#include "core/numbers/dtype.h"
#include "core/numbers/fp8.h"
#include "core/numbers/hd.h"

namespace fp8kv {

enum class KvFormat : uint8_t {
  f32,
  f16,
  bf16,
  e4m3fn,
  e4m3fnuz,
  e5m2,
  e5m2fnuz,
  ds_mla,               // latent rows, see core/cache/latent_blocks.h
  nvfp4,                // E2M1 codes, an E4M3 scale for each 16, and a stored scale
  nvfp4_4over6,         // the layout of nvfp4; each block takes the better of max / 6 and max / 4
  int8_per_token_head,  // an F32 scale for each row
  fp8_per_token_head,   // E4M3FN codes, and an F32 scale for each row
  int4_per_token_head,  // Hadamard-rotated, an F32 scale for each row, a zero point in its low bits
  int4_values           // 4-bit steps from the row's minimum: V of turboquant_k8v4
};

// Which caches can use a format.
enum class KvHolds : uint8_t {
  any,      // every cache
  heads,    // caches with separate K and V
  latents,  // caches of one latent vector that contains V
};

struct KvFormatSpec {
  int8_t code_bits = 0;
  // Elements that share a scale computed when the row is written. 0: no such scale; kWholeRow: one
  // for the row.
  int16_t block = 0;
  int8_t scale_bytes = 0;  // bytes of that scale and of whatever stands beside it
  // The number of elements in a row is a multiple of this. For latents this holds for the latent.
  int16_t multiple = 1;
  KvHolds holds = KvHolds::any;
  bool stored_scale = false;  // every value is multiplied by a scale stored with the model
  bool rotated = false;       // Q, K and V go through core/numbers/hadamard.h

  // Whether a row is plain elements of one type and nothing else.
  FP8KV_HD constexpr bool in_elements() const { return block == 0; }
};

inline constexpr int16_t kWholeRow = -1;
inline constexpr int32_t kNvfp4Block = 16;

// Sources: core/numbers/fp8.h, core/cache/latent_blocks.h; vLLM 0.33 v1/attention/ops/
// triton_reshape_and_cache_flash.py (int8 and fp8 per token and head), int4_per_token_head.py,
// triton_turboquant_store.py (int4_values); NVIDIA's NVFP4: blocks of 16, E4M3 scales.
FP8KV_HD constexpr KvFormatSpec kv_spec(KvFormat format) {
  switch (format) {
    case KvFormat::f32:
      return {.code_bits = 32};
    case KvFormat::f16:
    case KvFormat::bf16:
      return {.code_bits = 16};
    case KvFormat::e4m3fn:
    case KvFormat::e4m3fnuz:
    case KvFormat::e5m2:
    case KvFormat::e5m2fnuz:
      return {.code_bits = 8, .stored_scale = true};
    case KvFormat::ds_mla:
      return {.code_bits = 8,
              .block = kLatentBlock,
              .scale_bytes = 4,
              .multiple = kLatentBlock,
              .holds = KvHolds::latents};
    case KvFormat::nvfp4:
    case KvFormat::nvfp4_4over6:
      return {.code_bits = 4,
              .block = kNvfp4Block,
              .scale_bytes = 1,
              .multiple = kNvfp4Block,
              .holds = KvHolds::heads,
              .stored_scale = true};
    case KvFormat::int8_per_token_head:
    case KvFormat::fp8_per_token_head:
      return {.code_bits = 8, .block = kWholeRow, .scale_bytes = 4, .holds = KvHolds::heads};
    case KvFormat::int4_per_token_head:
      return {.code_bits = 4,
              .block = kWholeRow,
              .scale_bytes = 4,
              .multiple = 2,
              .holds = KvHolds::heads,
              .rotated = true};
    case KvFormat::int4_values:
      return {.code_bits = 4,
              .block = kWholeRow,
              .scale_bytes = 4,
              .multiple = 2,
              .holds = KvHolds::heads};
  }
  return {};
}

// One row of `dim` elements. In a cache of latents the last `rank` of them are the latent; else
// rank is 0.
struct KvRow {
  KvFormat format = KvFormat::f32;
  int32_t dim = 0;
  int32_t rank = 0;

  FP8KV_HD constexpr LatentBlocks latent() const { return {rank, dim - rank}; }
  // Elements that share a scale. REQUIRES a format that makes scales.
  FP8KV_HD constexpr int32_t block() const {
    const int32_t block = kv_spec(format).block;
    return block == kWholeRow ? dim : block;
  }
  // The number of parts that are written separately: blocks, and the rotated part of a latent row.
  FP8KV_HD constexpr int32_t parts() const {
    if (format == KvFormat::ds_mla) return latent().blocks() + 1;
    return kv_spec(format).in_elements() ? 1 : dim / block();
  }
  // The byte where the scales begin, behind the codes of all blocks.
  FP8KV_HD constexpr int32_t scales_at() const { return dim * kv_spec(format).code_bits / 8; }
  FP8KV_HD constexpr int32_t bytes() const {
    if (format == KvFormat::ds_mla) return latent().bytes();
    if (kv_spec(format).in_elements()) return scales_at();
    return scales_at() + parts() * kv_spec(format).scale_bytes;
  }
};

// The format whose elements have this type. REQUIRES a compute or fp8 type.
KvFormat kv_format(DType elements);
KvFormat kv_format(Fp8Format format);
// The element type of a format made of plain elements; nullopt for other formats.
std::optional<DType> kv_elements(KvFormat format);
// The FP8 format of a cache whose values are code * stored scale; nullopt for other formats.
std::optional<Fp8Format> fp8_format(KvFormat format);

// Whether elements are E4M3FN or E4M3FNUZ.
bool is_e4m3(KvFormat format);
// Whether the format is nvfp4 or nvfp4_4over6, which share layout and scales.
bool is_nvfp4(KvFormat format);

// The range of magnitudes that a format can hold at a stored scale of 1, for checks and charts.
// NVFP4 goes up to 6 * 448, and its blocks lose precision below 2^-6, the smallest normal block
// scale. REQUIRES a format with stored scales.
Fp8Spec kv_range(KvFormat format);

// "float8_e4m3fn", "nvfp4": torch's name for element types, vLLM's name for other formats.
std::string format_name(KvFormat format);

}  // namespace fp8kv
