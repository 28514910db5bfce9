// Products with the matrices of Llama 3 8B: by the vendor's library, if there is one, and by the
// project's own kernels.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backend/open/plugin.h"
#include "base/text.h"
#include "gpu_bench.h"

namespace fp8kv::bench {
namespace {

// Matrices that share their input.
struct Shapes {
  const char* name;
  int64_t in;
  std::vector<int64_t> out;
};

std::vector<Shapes> shapes_of(bool quick) {
  if (quick) return {{"q k v", 128, {128, 64, 64}}, {"down", 192, {128}}};
  return {{"q k v", 4096, {4096, 1024, 1024}},
          {"o", 4096, {4096}},
          {"gate and up", 4096, {14336, 14336}},
          {"down", 14336, {4096}}};
}

int64_t columns_of(const Shapes& shapes) {
  int64_t columns = 0;
  for (const int64_t out : shapes.out) columns += out;
  return columns;
}

class Products {
 public:
  Products(const Bench& bench, const Shapes& shapes) : bench_(bench), shapes_(shapes) {
    const int64_t set_bytes = columns_of(shapes) * shapes.in * 2;
    const auto cached = static_cast<int64_t>(bench.limits.l2_bytes);
    sets_ = std::clamp<int64_t>(3 * cached / set_bytes + 1, 2, 16);
    for (int64_t i = 0; i < sets_; ++i) {
      for (const int64_t out : shapes.out) {
        weights_.push_back(random_tensor(bench, DType::bf16, Shape{out, shapes.in}));
      }
    }
  }

  Timing time(int64_t rows) const {
    const Tensor x = random_tensor(bench_, DType::bf16, Shape{rows, shapes_.in});
    std::vector<Tensor> outs;
    for (const int64_t out : shapes_.out) {
      outs.push_back(bench_.backend.allocate(DType::bf16, Shape{rows, out}));
    }
    return time_calls(bench_, [&](size_t i) {
      std::vector<Projection> projections;
      const size_t first = i % static_cast<size_t>(sets_) * outs.size();
      for (size_t j = 0; j < outs.size(); ++j) {
        projections.push_back({weights_[first + j].view(), {}, outs[j].view()});
      }
      bench_.backend.linear(x.view(), projections);
    });
  }

 private:
  const Bench& bench_;
  const Shapes& shapes_;
  int64_t sets_ = 0;
  std::vector<Tensor> weights_;
};

// Returns the most FLOP/s that many rows reached.
double bench_backend(const Bench& bench, const std::string& by, const std::vector<int64_t>& few) {
  double most = 0;
  for (const Shapes& shapes : shapes_of(bench.quick)) {
    const Products products(bench, shapes);
    const auto elements = static_cast<double>(columns_of(shapes) * shapes.in);
    const auto name = [&](int64_t rows) {
      return cat(shapes.name, " ", columns_of(shapes), " x ", shapes.in, ", ", rows, " rows, ", by);
    };
    const int64_t many = bench.quick ? 130 : 16384;
    const Timing timing = products.time(many);
    const double flop = 2 * elements * static_cast<double>(many);
    print_row(name(many), timing, flop, "TFLOP/s", 0, "peak");
    most = std::max(most, flop / timing.median);
    for (const int64_t rows : few) {
      print_row(name(rows), products.time(rows), 2 * elements, "GB/s", bench.limits.read, "read");
    }
  }
  return most;
}

std::string gemm_of(const Backend& backend) {
  for (const auto& [name, text] : backend.details()) {
    if (name == "gemm") return text;
  }
  return "";
}

}  // namespace

double bench_linear(const Bench& bench, const std::string& device) {
  double most = 0;
  const std::string gemm = gemm_of(bench.backend);
  if (!gemm.starts_with("own")) most = bench_backend(bench, gemm, {64});
  ::setenv("FP8KV_GEMM", "own", 1);
  const std::unique_ptr<Backend> own = load_plugin(device);
  return std::max(most, bench_backend({*own, bench.limits, bench.quick}, "own", {1, 4, 16, 64}));
}

}  // namespace fp8kv::bench
