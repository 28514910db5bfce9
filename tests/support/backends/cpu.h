// Helpers for tests of the CPU backend: every instruction set of this machine, buffers of an exact
// size at any alignment, and random values.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa/common/cpu_elements.h"
#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/isa/cpu_isa.h"
#include "base/rng.h"
#include "core/numbers/dtype.h"
#include "core/numbers/host_view.h"
#include "core/numbers/tensor.h"
#include "support/sanitizers.h"

namespace fp8kv::test {

// With ThreadSanitizer only the last set is tested: threads share only the code above the sets.
inline std::vector<CpuIsa> available_isas() {
  std::vector<CpuIsa> isas;
  for (const CpuIsaRow& row : cpu_isas()) {
    if (row.is_here()) isas.push_back(row.isa);
  }
  if (kThreadSanitizer) isas.erase(isas.begin(), isas.end() - 1);
  return isas;
}

// The error of a product of `dtype` besides its additions, as a share of the magnitudes that it
// sums up. For f16 weights, a bf16 matrix unit keeps 16 bits of the activations, and omits the
// product of the lesser parts. A unit that multiplies f16 keeps 22 bits, except for experts.
inline double parted_error(CpuIsa isa, DType dtype) {
  const bool parted = dtype == DType::f16 && cpu_kernels(isa).matrix_unit != nullptr;
  return parted ? 0x1p-17 + 0x1p-18 : 0.0;
}

// The set whose products with decoded weights have the bits of products with codes, for a step of
// `rows` rows. AMX multiplies few rows of its own numbers by tiles, but few rows of codes like
// AVX-512 BF16.
inline CpuIsa isa_like_codes(CpuIsa isa, DType dtype, int64_t rows) {
  const bool by_tiles = (isa >= CpuIsa::amx && dtype == DType::bf16) ||
                        (isa == CpuIsa::amx_fp16 && dtype == DType::f16);
  return by_tiles && rows <= 16 ? CpuIsa::avx512_bf16 : isa;
}

inline double random_value(Rng& rng) {
  return rng.uniform() * 2 - 1;
}

inline std::vector<float> random_floats(Rng& rng, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random_value(rng));
  return values;
}

// Values as elements of `dtype`, `offset` bytes into a block that ends right after them.
class Elements {
 public:
  Elements(const std::vector<float>& values, DType dtype, const Shape& shape, size_t offset = 0)
      : dtype_(dtype), shape_(shape), offset_(offset) {
    const size_t bytes = values.size() * dtype_bytes(dtype);
    block_ = std::make_unique<std::byte[]>(offset + bytes);
    for (size_t i = 0; i < values.size(); ++i) {
      store(values[i], block_.get() + offset + i * dtype_bytes(dtype));
    }
  }

  ConstTensorView view() const { return {block_.get() + offset_, dtype_, shape_}; }
  // The value of element i after rounding.
  double operator[](int64_t i) const {
    const std::byte* from = block_.get() + offset_ + i * static_cast<int64_t>(dtype_bytes(dtype_));
    switch (dtype_) {
      case DType::f16:
        return double{F16Element::load(from)};
      case DType::bf16:
        return double{Bf16Element::load(from)};
      default:
        return double{F32Element::load(from)};
    }
  }

 private:
  void store(float value, std::byte* to) const {
    switch (dtype_) {
      case DType::f16:
        return F16Element::store(value, 1, to);
      case DType::bf16:
        return Bf16Element::store(value, 1, to);
      default:
        return F32Element::store(value, 1, to);
    }
  }

  DType dtype_;
  Shape shape_;
  size_t offset_;
  std::unique_ptr<std::byte[]> block_;
};

// An f32 tensor on a backend, filled with `values`.
inline Tensor tensor_of(Backend& backend, const std::vector<float>& values, const Shape& shape) {
  Tensor tensor = backend.allocate(DType::f32, shape);
  backend.copy_in(tensor.view(), host_view(values));
  return tensor;
}

inline Tensor tensor_of(Backend& backend, const std::vector<int32_t>& values, const Shape& shape) {
  Tensor tensor = backend.allocate(DType::i32, shape);
  backend.copy_in(tensor.view(), host_view(values));
  return tensor;
}

inline std::vector<float> floats_of(Backend& backend, const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.shape.elements()));
  backend.download(view, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace fp8kv::test
