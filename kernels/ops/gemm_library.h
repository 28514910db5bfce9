// The vendor's matrix products, cublasLt or hipBLASLt, opened at run time: nothing here needs them
// to build, and where they are absent the project's own kernels do all products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "kernels/launch.h"
#include "kernels/ops/gemm_dialect.h"

namespace fp8kv::FP8KV_GPU {

class GemmLibrary {
 public:
  // FP8KV_GEMM decides: unset or empty for the vendor's library where it is found, "own" for none,
  // else the file to open. Throws a device error when a file named there cannot be used.
  GemmLibrary();
  ~GemmLibrary();
  GemmLibrary(const GemmLibrary&) = delete;
  GemmLibrary& operator=(const GemmLibrary&) = delete;

  // "cublasLt 13.0.2", "own kernels: libcublasLt.so.13: cannot open shared object file".
  const std::string& describe() const { return description_; }

  // Computes all products, or none and returns false: where no library is open, or it does not take
  // such a product. The algorithm is chosen once for a type, a matrix and `rows`, the number that
  // the step is computed as; it adds up a row in the same order whatever other rows there are.
  // REQUIRES matrices, x and results at 16-byte boundaries, in rows of whole 16 bytes.
  bool multiply(Stream stream, DType dtype, const Products& products, int64_t rows);

 private:
  // What an algorithm is chosen for.
  struct Shape {
    auto operator<=>(const Shape&) const = default;
    DType dtype;
    int64_t rows;
    int64_t in_dim;
    int64_t out_dim;
    bool bias;
    bool out_f32;
  };
  // Of a shape, kept as long as the library.
  struct Plan {
    void* operation = nullptr;
    // Room for what either library gives as a heuristic's result; the algorithm comes first in it.
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
