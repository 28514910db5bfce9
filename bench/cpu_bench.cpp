#include "cpu_bench.h"

#include <cstdio>
#include <cstring>
#include <numeric>

#include "base/rng.h"
#include "core/numbers/half.h"

namespace fp8kv::bench {

void print_row(const std::string& name, double rate, const char* unit, double limit,
               const char* limit_name) {
  std::printf("%-46s %8.1f %-8s %5.1f %% of %s\n", name.c_str(), rate / 1e9, unit,
              100 * rate / limit, limit_name);
  std::fflush(stdout);
}

Tensor random_tensor(Backend& backend, DType dtype, const Shape& shape) {
  Tensor tensor = backend.allocate(dtype, shape);
  Rng rng(1);
  const int64_t count = shape.elements();
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = rng.next();
    const float x = static_cast<float>(bits >> 40) * 0x1p-24f - 0.5f;
    switch (dtype_bytes(dtype)) {
      case 4:
        tensor.view().as<float>()[i] = x;
        break;
      case 2:
        tensor.view().as<uint16_t>()[i] =
            dtype == DType::f16 ? f16_from_float(x) : bf16_from_float(x);
        break;
      default:
        tensor.view().as<uint8_t>()[i] = static_cast<uint8_t>(bits & 0xBBu);
    }
  }
  return tensor;
}

Tensor int_tensor(Backend& backend, const std::vector<int32_t>& values, const Shape& shape) {
  Tensor tensor = backend.allocate(DType::i32, shape);
  std::memcpy(tensor.view().data, values.data(), values.size() * sizeof(int32_t));
  return tensor;
}

Sequences make_sequences(Backend& backend, int32_t count, int32_t context, int32_t rows) {
  const int32_t pages = (context + kPageSize - 1) / kPageSize;
  std::vector<int32_t> positions, slots, indptr = {0}, table(count * pages), contexts;
  std::iota(table.begin(), table.end(), 0);
  for (int32_t s = 0; s < count; ++s) {
    for (int32_t t = context - rows; t < context; ++t) {
      positions.push_back(t);
      slots.push_back(s * pages * kPageSize + t);
    }
    indptr.push_back((s + 1) * rows);
    contexts.push_back(context);
  }
  const int64_t n = int64_t{count} * rows;
  return {int_tensor(backend, positions, Shape{n}), int_tensor(backend, slots, Shape{n}),
          int_tensor(backend, indptr, Shape{count + 1}),
          int_tensor(backend, table, Shape{count, pages}),
          int_tensor(backend, contexts, Shape{count})};
}

}  // namespace fp8kv::bench
