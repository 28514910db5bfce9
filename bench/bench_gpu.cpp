// Speed of a GPU backend's ops, each beside the limit of the device.
// usage: fp8kv_bench_gpu cuda|hip|ptx|sim [quick] [PART...]
// With "quick" the shapes are tiny and every row runs twice: to see that the program works. PART is
// linear, fused, decode, rope, prefill or elementwise; without one, all are measured.
//
// Every row is the median of 50 samples. A sample is as many calls as take 2 ms, between two waits
// for the device: what a caller gets, launches included. Data is random. Calls rotate through more
// caches or weights than the L2 cache holds.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/open/plugin.h"
#include "base/error.h"
#include "base/rng.h"
#include "core/numbers/fp8.h"
#include "core/numbers/histogram.h"
#include "gpu_bench.h"

namespace fp8kv::bench {
namespace {

double softmax_scale(const Heads& heads) {
  return 1 / std::sqrt(static_cast<double>(heads.dim));
}

// Bytes/s of the cache that one decode step reads.
double bench_decode(const Bench& bench, const std::string& name, const Heads& heads, DType dtype,
                    const std::vector<int32_t>& lengths) {
  const int64_t pages = pages_of(lengths);
  const double tokens = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  const double bytes = tokens * heads.kv * heads.stored() * static_cast<double>(dtype_bytes(dtype));
  const auto sets =
      bench.quick ? int64_t{2}
                  : std::max<int64_t>(
                        2, std::llround(3.0 * static_cast<double>(bench.limits.l2_bytes) / bytes));
  const Pool pool(bench, dtype, heads, pages * sets);
  std::vector<Step> steps;
  for (int64_t set = 0; set < sets; ++set) {
    steps.push_back(make_step(bench, lengths, 1, {set * pages, pages}));
  }
  const Shape shape{static_cast<int64_t>(lengths.size()), heads.q, heads.dim};
  const Tensor q = random_tensor(bench, DType::bf16, shape);
  const Tensor out = bench.backend.allocate(DType::bf16, Shape{shape[0], heads.q, heads.v_dim()});
  const auto scale = static_cast<float>(softmax_scale(heads));
  const Timing timing = time_calls(bench, [&](size_t i) {
    bench.backend.attention(q.view(), pool.kv, steps[i % steps.size()].batch(), {scale, 0},
                            out.view());
  });
  print_row(cat(name, ", ", dtype_name(dtype)), timing, bytes, "GB/s", bench.limits.read, "read");
  return bytes / timing.median;
}

// From the shortest to the longest in equal ratios, shuffled.
std::vector<int32_t> ragged(int32_t shortest, int32_t longest, int32_t count) {
  const double ratio = static_cast<double>(longest) / shortest;
  std::vector<int32_t> lengths;
  for (int32_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(i) / (count - 1);
    lengths.push_back(static_cast<int32_t>(shortest * std::pow(ratio, share)));
  }
  Rng rng(3);
  for (size_t i = lengths.size(); i > 1; --i) std::swap(lengths[i - 1], lengths[rng.next() % i]);
  return lengths;
}

void bench_all_decode(const Bench& bench) {
  struct Case {
    const char* name;
    Heads heads;
    int32_t batch, context;
  };
  const Case full[] = {
      {"decode D1, 32/8 heads, 1 x 1024", {32, 8, 128}, 1, 1024},
      {"decode D2, 32/8 heads, 1 x 32768", {32, 8, 128}, 1, 32768},
      {"decode D3, 32/8 heads, 16 x 4096", {32, 8, 128}, 16, 4096},
      {"decode D4, 32/8 heads, 64 x 4096", {32, 8, 128}, 64, 4096},
      {"decode D5, 32/32 heads, 16 x 4096", {32, 32, 128}, 16, 4096},
      {"decode D6, 64/8 heads, 32 x 8192", {64, 8, 128}, 32, 8192},
      {"decode D9, 16/2 heads of 512, 16 x 4096", {16, 2, 512}, 16, 4096},
      {"decode D10, 128 heads of latents, 16 x 4096", {128, 1, 576, 512}, 16, 4096}};
  const Case tiny[] = {{"decode, 4/2 heads, 2 x 100", {4, 2, 64}, 2, 100},
                       {"decode, 4 heads of latents, 2 x 100", {4, 1, 64, 48}, 2, 100}};
  const std::span<const Case> cases = bench.quick ? std::span<const Case>(tiny) : full;
  for (const Case& c : cases) {
    const std::vector<int32_t> lengths(static_cast<size_t>(c.batch), c.context);
    const double half = bench_decode(bench, c.name, c.heads, DType::f16, lengths);
    const double fp8 = bench_decode(bench, c.name, c.heads, DType::f8_e4m3, lengths);
    std::printf("%-56s %9.2f times as fast as the f16 cache\n", "  D7", 2 * fp8 / half);
  }
  const Heads heads = bench.quick ? Heads{4, 2, 64} : Heads{32, 8, 128};
  const std::vector<int32_t> lengths = bench.quick ? ragged(3, 150, 4) : ragged(128, 16384, 64);
  const double tokens = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  const auto mean = static_cast<int32_t>(tokens / static_cast<double>(lengths.size()));
  const std::vector<int32_t> uniform(lengths.size(), mean);
  const double even = bench_decode(bench, cat("decode D8, ", lengths.size(), " x ", mean), heads,
                                   DType::f8_e4m3, uniform);
  const double mixed = bench_decode(bench, cat("decode D8, ", lengths.size(), " ragged"), heads,
                                    DType::f8_e4m3, lengths);
  std::printf("%-56s %9.1f %% of the uniform batch's rate\n", "  D8", 100 * mixed / even);
}

void bench_prefill(const Bench& bench, const std::string& name, const Heads& heads) {
  const std::vector<int32_t> lengths(bench.quick ? 2 : 8, bench.quick ? 40 : 2048);
  const double length = lengths[0];
  const double flop = 2.0 * (heads.dim + heads.v_dim()) * static_cast<double>(heads.q) *
                      static_cast<double>(lengths.size()) * length * (length + 1) / 2;
  for (const DType dtype : {DType::f16, DType::f8_e4m3}) {
    const Pool pool(bench, dtype, heads, pages_of(lengths));
    const Step step = make_step(bench, lengths, 0, {0, pages_of(lengths)});
    const int64_t rows = static_cast<int64_t>(lengths.size()) * lengths[0];
    const Tensor q = random_tensor(bench, DType::f16, Shape{rows, heads.q, heads.dim});
    const Tensor out = bench.backend.allocate(DType::f16, Shape{rows, heads.q, heads.v_dim()});
    const auto scale = static_cast<float>(softmax_scale(heads));
    const Timing timing = time_calls(bench, [&](size_t) {
      bench.backend.attention(q.view(), pool.kv, step.batch(), {scale, 0}, out.view());
    });
    print_row(cat(name, ", ", lengths.size(), " x ", lengths[0], ", ", dtype_name(dtype)), timing,
              flop, "TFLOP/s", bench.gemm, "GEMM");
  }
}

void bench_all_prefill(const Bench& bench) {
  if (bench.quick) {
    bench_prefill(bench, "prefill, 4/2 heads", {4, 2, 64});
    bench_prefill(bench, "prefill, 4 heads of latents", {4, 1, 64, 48});
  } else {
    bench_prefill(bench, "prefill P1, 32/8 heads", {32, 8, 128});
    bench_prefill(bench, "prefill P2, 16/2 heads of 512", {16, 2, 512});
    bench_prefill(bench, "prefill P3, 128 heads of latents", {128, 1, 576, 512});
  }
}

void bench_rope(const Bench& bench) {
  const Heads heads = bench.quick ? Heads{4, 2, 64} : Heads{32, 8, 128};
  const std::vector<int32_t> lengths(bench.quick ? 2 : 8, bench.quick ? 40 : 2048);
  const Step step = make_step(bench, lengths, 0, {0, pages_of(lengths)});
  const int64_t n = static_cast<int64_t>(lengths.size()) * lengths[0];
  const Tensor rope = random_tensor(bench, DType::f32, Shape{lengths[0], heads.dim});
  const Tensor q = random_tensor(bench, DType::bf16, Shape{n, heads.q, heads.dim});
  const Tensor k = random_tensor(bench, DType::bf16, Shape{n, heads.kv, heads.dim});
  const Tensor v = random_tensor(bench, DType::bf16, Shape{n, heads.kv, heads.dim});
  const Tensor magnitudes = bench.backend.allocate(DType::u64, Shape{3, heads.kv, kMagnitudeWords});
  const Pool pool(bench, DType::f8_e4m3, heads, pages_of(lengths));
  for (const bool observe : {false, true}) {
    RopeAppend args{q.view(),     k.view(), v.view(),    rope.view(),
                    step.batch(), pool.kv,  DType::bf16, {}};
    if (observe) args.magnitudes = magnitudes.view();
    const Timing timing = time_calls(bench, [&](size_t) { bench.backend.rope_append(args); });
    // Bytes: Q, K and V are read, Q and K are written back, K and V are cached with one byte an
    // element.
    const auto bytes = static_cast<double>(2 * q.view().bytes() + 2 * k.view().bytes() +
                                           v.view().bytes() + k.view().bytes());
    print_row(cat("rope and append Q1, ", n, " rows", observe ? ", observed" : ""), timing, bytes,
              "GB/s", bench.limits.copy, "copy");
  }
}

void bench_elementwise(const Bench& bench) {
  const int64_t rows = bench.quick ? 20 : 16384, dim = bench.quick ? 128 : 4096;
  const Tensor x = random_tensor(bench, DType::bf16, Shape{rows, dim});
  const Tensor out = bench.backend.allocate(DType::bf16, Shape{rows, dim});
  const Tensor weight = random_tensor(bench, DType::bf16, Shape{dim});
  const auto bytes = static_cast<double>(x.view().bytes());
  print_row(cat("rmsnorm, ", rows, " x ", dim),
            time_calls(bench,
                       [&](size_t) {
                         bench.backend.norm(x.view(), {.eps = 1e-5f, .weight = weight.view()},
                                            out.view());
                       }),
            2 * bytes, "GB/s", bench.limits.copy, "copy");
  print_row(
      cat("silu and gate, ", rows, " x ", dim),
      time_calls(bench,
                 [&](size_t) { bench.backend.activate(Activation::silu, out.view(), x.view()); }),
      3 * bytes, "GB/s", bench.limits.copy, "copy");
}

struct Part {
  std::string_view name;
  void (*measure)(Bench& bench, const std::string& device);
};
constexpr Part kParts[] = {
    // The speed of products with many rows is the limit for attention over prompts: no higher one
    // is known here.
    {"linear",
     [](Bench& bench, const std::string& device) { bench.gemm = bench_linear(bench, device); }},
    {"fused", [](Bench& bench, const std::string&) { bench_fused(bench); }},
    {"decode", [](Bench& bench, const std::string&) { bench_all_decode(bench); }},
    {"rope", [](Bench& bench, const std::string&) { bench_rope(bench); }},
    {"prefill", [](Bench& bench, const std::string&) { bench_all_prefill(bench); }},
    {"elementwise", [](Bench& bench, const std::string&) { bench_elementwise(bench); }}};

void run(const std::string& device, bool quick, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (std::ranges::find(kParts, part, &Part::name) == std::end(kParts)) {
      throw Error(cat("no part '", part, "': see the top of bench_gpu.cpp"), "", ErrorKind::usage);
    }
  }
  const auto backend = load_plugin(device);
  std::printf("%s\n", backend->describe().c_str());
  for (const auto& [name, text] : backend->details()) {
    std::printf("%s: %s\n", name.c_str(), text.c_str());
  }
  Bench bench{*backend, gpu_limits(device), quick};
  if (bench.limits.read > 0) {
    std::printf("read %.0f GB/s, copy %.0f GB/s (read and written), pinned to device %.1f GB/s\n",
                bench.limits.read / 1e9, bench.limits.copy / 1e9, bench.limits.to_device / 1e9);
  }
  std::printf("\n");
  for (const Part& part : kParts) {
    if (parts.empty() || std::ranges::find(parts, part.name) != parts.end()) {
      part.measure(bench, device);
    }
  }
}

}  // namespace
}  // namespace fp8kv::bench

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cuda";
  const bool quick = argc > 2 && std::string(argv[2]) == "quick";
  const std::vector<std::string> parts(argv + std::min(argc, quick ? 3 : 2), argv + argc);
  try {
    fp8kv::bench::run(device, quick, parts);
    return 0;
  } catch (const fp8kv::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
