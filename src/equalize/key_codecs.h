// The codecs of K for the search of exponents: the scale of a part first, then single elements, so
// that elements of a part whose scale stays need no new codes. They agree with
// core/cache/kv_rows.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cache/kv_format.h"
#include "core/cache/kv_rows.h"
#include "core/numbers/e2m1.h"
#include "core/numbers/fp8.h"

namespace fp8kv {

// INT8 with one scale for each row.
struct Int8Keys {
  using Scale = float;
  size_t block;  // elements that share a scale: the row

  Scale scale(float amax) const { return kv_rows::int8_of(amax).scale; }

  // Encodes and decodes elements of one part.
  class Part {
   public:
    Part(const Int8Keys& /*keys*/, Scale scale) : codes_{scale, 1.0f / scale} {}
    float value(float x) const { return codes_.code(x) * codes_.scale; }

   private:
    kv_rows::Int8 codes_;
  };
};

// NVFP4: an E4M3 scale for each block, and a stored scale for all of the layer.
struct Nvfp4Keys {
  using Scale = uint8_t;
  size_t block;
  float stored;

  Scale scale(float amax) const { return kv_rows::nvfp4_scale(amax, 6.0f, stored); }

  class Part {
   public:
    Part(const Nvfp4Keys& keys, Scale scale)
        : codes_(kv_rows::nvfp4_of(scale, keys.stored)),
          scale_(fp8_decode<Fp8Format::e4m3fn>(scale)),
          stored_(keys.stored) {}
    float value(float x) const { return e2m1_decode(codes_.code(x)) * scale_ * stored_; }

   private:
    kv_rows::Nvfp4 codes_;
    float scale_, stored_;
  };
};

}  // namespace fp8kv
