#include "kernels/blocks/fused.cuh"
#include "kernels/blocks/products.cuh"
#include "kernels/blocks/vec.cuh"
#include "kernels/library/gemm_library.h"

namespace fp8kv::FP8KV_GPU {
namespace {

// With more rows than this, the vendor's library is asked first. One launch of our kernels does q,
// k and v, or gate and up; the library needs a launch for each.
constexpr int64_t kOwnRows = 16;

template <typename T>
bool rows_in_vectors(const Products& products) {
  bool vectors = in_vectors<T>(products.x, products.in_dim);
  for (int i = 0; i < products.count; ++i) {
    vectors = vectors && in_vectors<T>(products.each[i].weight, products.in_dim);
  }
  return vectors;
}

// Checks the biases too: a bias that is a part of a longer tensor may begin anywhere in it.
template <typename T>
bool results_in_vectors(const Products& products) {
  for (int i = 0; i < products.count; ++i) {
    const Product& product = products.each[i];
    if (!in_vectors<T>(product.out, product.out_dim)) return false;
    if (!in_vectors<T>(product.bias, product.out_dim)) return false;  // in_vectors accepts null
  }
  return true;
}

}  // namespace

void linear(Stream stream, GemmLibrary& library, DType dtype, const Products& products,
            int64_t computed_as) {
  const int64_t size = computed_as > 0 ? computed_as : products.n;
  with_compute_type(dtype, [&]<typename T>(T) {
    if (!rows_in_vectors<T>(products)) return linear_any<T>(stream, products);
    if (is_few(products, computed_as)) return linear_rows<T>(stream, products);
    if (size > kOwnRows && results_in_vectors<T>(products) &&
        library.multiply(stream, dtype, products, size)) {
      return;
    }
    if constexpr (sizeof(T) == 2) {
      linear_tensor<T>(stream, products);
    } else {
      linear_any<T>(stream, products);
    }
  });
}

bool takes_fused(DType dtype, const NormedProducts& normed, int64_t computed_as) {
  const Products& products = normed.products;
  if (!is_few(products, computed_as)) return false;
  for (int i = 0; i < products.count; ++i) {
    const Product& product = products.each[i];
    if (product.accumulate || product.out_f32 != (dtype == DType::f32)) return false;
  }
  bool takes = false;
  with_compute_type(dtype, [&]<typename T>(T) {
    takes = rows_in_vectors<T>(products) && in_vectors<T>(normed.x, products.in_dim) &&
            in_vectors<T>(normed.norm.weight, products.in_dim) &&
            fused_shared_bytes<T>(products) <= kMaxFusedSharedBytes;
  });
  return takes;
}

}  // namespace fp8kv::FP8KV_GPU
