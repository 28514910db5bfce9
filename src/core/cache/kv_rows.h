// Writes and reads rows of every KvFormat that makes scales, in arithmetic that host and device
// share. Formats of plain elements are not here: the backends convert those with vector code.
#pragma once

#include <cfloat>
#include <cstdint>

#include "core/cache/kv_format.h"
#include "core/numbers/e2m1.h"
#include "core/numbers/fp8.h"
#include "core/numbers/half.h"
#include "core/numbers/hd.h"

namespace fp8kv {

// Reads a little-endian F32 from any address, aligned or not.
FP8KV_HD float load_f32(const uint8_t* from) {
  return float_from_bits(static_cast<uint32_t>(from[0]) | static_cast<uint32_t>(from[1]) << 8 |
                         static_cast<uint32_t>(from[2]) << 16 |
                         static_cast<uint32_t>(from[3]) << 24);
}

FP8KV_HD void store_f32(float x, uint8_t* to) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<uint8_t>(float_bits(x) >> 8 * i);
}

FP8KV_HD void store_u16(uint16_t x, uint8_t* to) {
  to[0] = static_cast<uint8_t>(x);
  to[1] = static_cast<uint8_t>(x >> 8);
}

FP8KV_HD uint16_t load_u16(const uint8_t* from) {
  return static_cast<uint16_t>(from[0] | from[1] << 8);
}

FP8KV_HD uint32_t nibble(const uint8_t* codes, int32_t i) {
  return static_cast<uint32_t>(codes[i / 2]) >> (i % 2 * 4) & 15u;
}

namespace kv_rows {

struct Range {
  float min;
  float max;
};

template <typename X>
FP8KV_HD float largest_of(const X& x, int32_t first, int32_t count) {
  float amax = 0.0f;
  for (int32_t i = first; i < first + count; ++i) {
    const float magnitude = x(i) < 0.0f ? -x(i) : x(i);
    amax = magnitude > amax ? magnitude : amax;
  }
  return amax;
}

template <typename X>
FP8KV_HD Range range_of(const X& x, int32_t count) {
  Range range{x(0), x(0)};
  for (int32_t i = 1; i < count; ++i) {
    range.min = x(i) < range.min ? x(i) : range.min;
    range.max = x(i) > range.max ? x(i) : range.max;
  }
  return range;
}

// NaN becomes `low`.
FP8KV_HD float clamped(float x, float low, float high) {
  return x > low ? (x < high ? x : high) : low;
}

// Rounds half away from zero and clamps to [low, high].
FP8KV_HD float rounded(float x, float low, float high) {
  const float cut = clamped(x, low - 1.0f, high + 1.0f);
  return clamped(static_cast<float>(static_cast<int32_t>(cut >= 0.0f ? cut + 0.5f : cut - 0.5f)),
                 low, high);
}

// Packs two 4-bit codes into each byte, the first in the low half.
template <typename Code>
FP8KV_HD void store_nibbles(int32_t first, int32_t count, const Code& code, uint8_t* to) {
  for (int32_t i = first; i < first + count; i += 2) {
    to[i / 2] = static_cast<uint8_t>(code(i) | code(i + 1) << 4);
  }
}

// The E4M3FN block scale that maps `amax` to `top`, with `stored` as the scale of the model.
FP8KV_HD uint8_t nvfp4_scale(float amax, float top, float stored) {
  return fp8_encode<Fp8Format::e4m3fn>(amax / top / stored);
}

struct Nvfp4 {
  float step;  // what a decoded 1 is worth
  FP8KV_HD uint8_t code(float x) const { return step > 0.0f ? e2m1_encode(x / step) : 0; }
  FP8KV_HD float value(float x) const { return e2m1_decode(code(x)) * step; }
};

FP8KV_HD Nvfp4 nvfp4_of(uint8_t scale, float stored) {
  return {fp8_decode<Fp8Format::e4m3fn>(scale) * stored};
}

template <typename X>
FP8KV_HD float squared_error(const Nvfp4& codes, const X& x, int32_t first) {
  float sum = 0.0f;
  for (int32_t i = first; i < first + kNvfp4Block; ++i) {
    const float off = codes.value(x(i)) - x(i);
    sum += off * off;
  }
  return sum;
}

template <typename X>
FP8KV_HD void encode_nvfp4(const KvRow& row, int32_t part, const X& x, float stored, uint8_t* to) {
  const int32_t first = part * kNvfp4Block;
  const float amax = largest_of(x, first, kNvfp4Block);
  uint8_t scale = nvfp4_scale(amax, 6.0f, stored);
  if (row.format == KvFormat::nvfp4_4over6) {
    const uint8_t other = nvfp4_scale(amax, 4.0f, stored);
    if (squared_error(nvfp4_of(other, stored), x, first) <
        squared_error(nvfp4_of(scale, stored), x, first)) {
      scale = other;
    }
  }
  const Nvfp4 codes = nvfp4_of(scale, stored);
  store_nibbles(
      first, kNvfp4Block, [&](int32_t i) { return codes.code(x(i)); }, to);
  to[row.scales_at() + part] = scale;
}

template <typename X>
FP8KV_HD void encode_latent(const KvRow& row, int32_t part, const X& x, uint8_t* to) {
  const LatentBlocks blocks = row.latent();
  if (part == blocks.blocks()) {
    for (int32_t i = 0; i < blocks.rope_dim; ++i) {
      store_u16(bf16_from_float(x(i)), to + blocks.rope_at() + 2 * i);
    }
    return;
  }
  const int32_t first = part * kLatentBlock;
  const float scale = latent_block_scale(largest_of(x, blocks.rope_dim + first, kLatentBlock));
  for (int32_t i = first; i < first + kLatentBlock; ++i) {
    to[i] = fp8_encode<Fp8Format::e4m3fn>(x(blocks.rope_dim + i) / scale);
  }
  store_f32(scale, to + blocks.scales_at() + 4 * part);
}

// The scale of a row, at least vLLM's minimum of 1e-6.
FP8KV_HD float row_scale(float range, float codes) {
  const float scale = range / codes;
  return scale > 1e-6f ? scale : 1e-6f;
}

// Codes of one row. A code is worth code * scale.
struct Int8 {
  float scale;
  float inverse;
  FP8KV_HD float code(float x) const { return rounded(x * inverse, -128.0f, 127.0f); }
};

FP8KV_HD Int8 int8_of(float amax) {
  const float scale = row_scale(amax, 127.0f);
  return {scale, 1.0f / scale};
}

template <typename X>
FP8KV_HD void encode_int8(const KvRow& row, const X& x, uint8_t* to) {
  const Int8 codes = int8_of(largest_of(x, 0, row.dim));
  for (int32_t i = 0; i < row.dim; ++i) {
    to[i] = static_cast<uint8_t>(static_cast<int32_t>(codes.code(x(i))));
  }
  store_f32(codes.scale, to + row.scales_at());
}

template <typename X>
FP8KV_HD void encode_fp8(const KvRow& row, const X& x, uint8_t* to) {
  const float scale = row_scale(largest_of(x, 0, row.dim), 448.0f);
  const float inverse = 1.0f / scale;
  for (int32_t i = 0; i < row.dim; ++i) to[i] = fp8_encode<Fp8Format::e4m3fn>(x(i) * inverse);
  store_f32(scale, to + row.scales_at());
}

template <typename X>
FP8KV_HD void encode_int4(const KvRow& row, const X& x, uint8_t* to) {
  const Range range = range_of(x, row.dim);
  const float scale = row_scale(range.max - range.min, 15.0f);
  const float zero = rounded(-range.min / scale, 0.0f, 15.0f);
  const float inverse = 1.0f / scale;
  const auto code = [&](int32_t i) {
    return static_cast<uint32_t>(rounded(x(i) * inverse + zero, 0.0f, 15.0f));
  };
  store_nibbles(0, row.dim, code, to);
  const uint32_t bits = (float_bits(scale) & ~15u) | static_cast<uint32_t>(zero);
  store_f32(float_from_bits(bits), to + row.scales_at());
}

template <typename X>
FP8KV_HD void encode_int4_values(const KvRow& row, const X& x, uint8_t* to) {
  const Range range = range_of(x, row.dim);
  const float made = (range.max - range.min) / 15.0f;
  const float scale = made > 1e-8f ? made : 1e-8f;
  const auto code = [&](int32_t i) {
    return static_cast<uint32_t>(clamped((x(i) - range.min) / scale + 0.5f, 0.0f, 15.0f));
  };
  store_nibbles(0, row.dim, code, to);
  store_u16(f16_from_float(scale), to + row.scales_at());
  store_u16(f16_from_float(range.min), to + row.scales_at() + 2);
}

}  // namespace kv_rows

// Writes part `part` of a row from the elements x(0) to x(dim - 1). Formats that rotate expect
// rotated elements. Formats with a stored scale use `stored`.
// REQUIRES a format that makes scales, and 0 <= part < row.parts().
template <typename X>
FP8KV_HD void encode_part(const KvRow& row, int32_t part, const X& x, float stored, uint8_t* to) {
  using namespace kv_rows;
  switch (row.format) {
    case KvFormat::ds_mla:
      return encode_latent(row, part, x, to);
    case KvFormat::nvfp4:
    case KvFormat::nvfp4_4over6:
      return encode_nvfp4(row, part, x, stored, to);
    case KvFormat::int8_per_token_head:
      return encode_int8(row, x, to);
    case KvFormat::fp8_per_token_head:
      return encode_fp8(row, x, to);
    case KvFormat::int4_per_token_head:
      return encode_int4(row, x, to);
    case KvFormat::int4_values:
      return encode_int4_values(row, x, to);
    case KvFormat::f32:
    case KvFormat::f16:
    case KvFormat::bf16:
    case KvFormat::e4m3fn:
    case KvFormat::e4m3fnuz:
    case KvFormat::e5m2:
    case KvFormat::e5m2fnuz:
      return;
  }
}

// The value of element d in a row of any format, before multiplication with a stored scale.
FP8KV_HD float row_value(const KvRow& row, const uint8_t* from, int32_t d) {
  const uint8_t* scales = from + row.scales_at();
  switch (row.format) {
    case KvFormat::f32:
      return load_f32(from + 4 * d);
    case KvFormat::f16:
      return f16_to_float(load_u16(from + 2 * d));
    case KvFormat::bf16:
      return bf16_to_float(load_u16(from + 2 * d));
    case KvFormat::e4m3fn:
      return fp8_decode<Fp8Format::e4m3fn>(from[d]);
    case KvFormat::e4m3fnuz:
      return fp8_decode<Fp8Format::e4m3fnuz>(from[d]);
    case KvFormat::e5m2:
      return fp8_decode<Fp8Format::e5m2>(from[d]);
    case KvFormat::e5m2fnuz:
      return fp8_decode<Fp8Format::e5m2fnuz>(from[d]);
    case KvFormat::ds_mla: {
      const LatentBlocks blocks = row.latent();
      if (d < blocks.rope_dim) return bf16_to_float(load_u16(from + blocks.rope_at() + 2 * d));
      const int32_t i = d - blocks.rope_dim;
      return fp8_decode<Fp8Format::e4m3fn>(from[i]) *
             load_f32(from + blocks.scales_at() + i / kLatentBlock * 4);
    }
    case KvFormat::nvfp4:
    case KvFormat::nvfp4_4over6:
      return e2m1_decode(nibble(from, d)) * fp8_decode<Fp8Format::e4m3fn>(scales[d / kNvfp4Block]);
    case KvFormat::int8_per_token_head:
      return static_cast<float>(static_cast<int8_t>(from[d])) * load_f32(scales);
    case KvFormat::fp8_per_token_head:
      return fp8_decode<Fp8Format::e4m3fn>(from[d]) * load_f32(scales);
    case KvFormat::int4_per_token_head: {
      const uint32_t bits = float_bits(load_f32(scales));
      const float steps = static_cast<float>(nibble(from, d)) - static_cast<float>(bits & 15u);
      return steps * float_from_bits(bits & ~15u);
    }
    case KvFormat::int4_values:
      return static_cast<float>(nibble(from, d)) * f16_to_float(load_u16(scales)) +
             f16_to_float(load_u16(scales + 2));
  }
  return 0.0f;
}

}  // namespace fp8kv
