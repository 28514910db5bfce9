// The vendor's matrix products, cublasLt or hipBLASLt, opened at run time. Building needs neither
// library; without one, the project's own kernels compute all products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "kernels/launch_products.h"
#include "kernels/library/gemm_dialect.h"

namespace fp8kv::FP8KV_GPU {

class GemmLibrary {
 public:
  // FP8KV_GEMM decides: unset or empty takes the vendor's library if it is found, "own" takes none,
  // else it is the file to open. Throws a device error if that file cannot be used.
  GemmLibrary();
  ~GemmLibrary();
  GemmLibrary(const GemmLibrary&) = delete;
  GemmLibrary& operator=(const GemmLibrary&) = delete;

  // For example "cublasLt 13.0.2", or "own kernels: libcublasLt.so.13: cannot open shared object
  // file".
  const std::string& describe() const { return description_; }

  // Computes all products, or returns false and computes none: if no library is open, or if it does
  // not take such a product. Chooses an algorithm once per type, matrix and `rows`, the number that
  // the step is computed as. The algorithm adds up a row in the same order whatever other rows
  // there are. REQUIRES matrices, x and results at 16-byte boundaries, in rows of whole 16 bytes.
  bool multiply(Stream stream, DType dtype, const Products& products, int64_t rows);

 private:
  // An algorithm is chosen for each of these.
  struct Shape {
    auto operator<=>(const Shape&) const = default;
    DType dtype;
    int64_t rows;
    int64_t in_dim;
    int64_t out_dim;
    bool bias;
    bool out_f32;
  };
  // The algorithm for a shape, kept as long as the library.
  struct Plan {
    void* operation = nullptr;
    // Room for either library's heuristic result, which begins with the algorithm.
    alignas(16) std::byte algorithm[256] = {};
  };
  struct Layouts;

  void open(const std::string& file);
  void check(int status, const char* what) const;
  std::optional<Plan> choose(const Shape& shape) const;
  const Plan* plan(const Shape& shape);
  void run(Stream stream, const Plan& plan, DType dtype, const Products& products,
           const Product& product) const;

  void* file_ = nullptr;  // from dlopen; never closed
  GemmFunctions functions_ = {};
  void* handle_ = nullptr;
  std::string description_;
  std::map<Shape, std::optional<Plan>> plans_;
};

}  // namespace fp8kv::FP8KV_GPU
