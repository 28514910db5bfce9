// Speed of a GPU backend's ops, each beside the limit that the device sets it.
// usage: fp8kv_bench_gpu cuda|hip|sim [quick]
// With "quick" the shapes are tiny and every row runs twice: to see that the program works.
//
// Every row is the median of 50 samples, each of as many calls as take 2 ms, between two waits for
// the device: what a caller gets, launches included. Data is random; calls rotate through as many
// caches or weights as the L2 cannot hold.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "backend/plugin.h"
#include "base/error.h"
#include "base/rng.h"
#include "core/fp8.h"
#include "core/half.h"
#include "gpu_limits.h"

namespace fp8kv::bench {
namespace {

struct Bench {
  Backend& backend;
  GpuLimits limits;
  bool quick;
  double gemm = 0;  // FLOP/s of the backend's own products of many rows
};

struct Timing {
  double median;        // seconds a call
  double tenth, ninth;  // what a tenth of the samples stay below, and above
};

// `call(i)` enqueues the i-th run.
Timing time_calls(const Bench& bench, const std::function<void(size_t)>& call) {
  using Clock = std::chrono::steady_clock;
  const Tensor flag = bench.backend.allocate(DType::i32, Shape{1});
  int32_t value = 0;
  size_t next = 0;
  const auto timed = [&](size_t calls) {
    const auto start = Clock::now();
    for (size_t i = 0; i < calls; ++i) call(next++);
    bench.backend.download(flag.view(), std::as_writable_bytes(std::span(&value, 1)));
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const int samples = bench.quick ? 2 : 50;
  timed(1);
  const double once = timed(bench.quick ? 1 : 8) / (bench.quick ? 1 : 8);
  const auto calls = bench.quick ? 1 : static_cast<size_t>(std::clamp(2e-3 / once, 1.0, 2000.0));
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) times.push_back(timed(calls) / static_cast<double>(calls));
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))];
  };
  return {at(0.5), at(0.1), at(0.9)};
}

void print_row(const std::string& name, const Timing& timing, double amount, const char* unit,
               double limit, const char* limit_name) {
  std::printf("%-56s %9.1f us %9.1f %-7s", name.c_str(), 1e6 * timing.median,
              amount / timing.median / (std::strcmp(unit, "TFLOP/s") == 0 ? 1e12 : 1e9), unit);
  if (limit > 0) {
    std::printf(" %5.1f %% of %-5s", 100 * amount / timing.median / limit, limit_name);
  } else {
    std::printf("      - of %-5s", limit_name);
  }
  std::printf("  spread -%.0f +%.0f %%\n", 100 * (1 - timing.tenth / timing.median),
              100 * (timing.ninth / timing.median - 1));
  std::fflush(stdout);
}

// Bytes that are small, finite values in every type.
std::vector<std::byte> random_bytes(DType dtype, size_t bytes) {
  std::vector<std::byte> block(bytes);
  Rng rng(1);
  const size_t size = dtype_bytes(dtype);
  for (size_t i = 0; i + size <= bytes; i += size) {
    const uint64_t bits = rng.next();
    const float x = static_cast<float>(bits >> 40) * 0x1p-24f - 0.5f;
    const uint16_t half = dtype == DType::f16 ? f16_from_float(x) : bf16_from_float(x);
    const auto code = static_cast<uint8_t>(bits & 0xBBu);
    if (size == 4) std::memcpy(&block[i], &x, 4);
    if (size == 2) std::memcpy(&block[i], &half, 2);
    if (size == 1) std::memcpy(&block[i], &code, 1);
  }
  return block;
}

// One block of random values over and over.
Tensor random_tensor(const Bench& bench, DType dtype, const Shape& shape) {
  constexpr size_t kBlock = size_t{16} << 20;
  Tensor tensor = bench.backend.allocate(dtype, shape);
  const size_t bytes = tensor.view().bytes();
  const std::vector<std::byte> block = random_bytes(dtype, std::min(bytes, kBlock));
  for (size_t at = 0; at < bytes; at += block.size()) {
    const size_t piece = std::min(block.size(), bytes - at);
    const Shape part{static_cast<int64_t>(piece / dtype_bytes(dtype))};
    bench.backend.copy_in({tensor.view().data + at, dtype, part}, {block.data(), dtype, part});
  }
  return tensor;
}

Tensor put(const Bench& bench, DType dtype, const void* values, const Shape& shape) {
  Tensor tensor = bench.backend.allocate(dtype, shape);
  bench.backend.copy_in(tensor.view(), {static_cast<const std::byte*>(values), dtype, shape});
  return tensor;
}

Tensor ints(const Bench& bench, const std::vector<int32_t>& values, const Shape& shape) {
  return put(bench, DType::i32, values.data(), shape);
}

constexpr int32_t kPage = 64;

struct Step {
  Tensor positions, slots, indptr, page_table, context_len;
  Batch batch() const {
    return {positions.view(), slots.view(), indptr.view(), page_table.view(), context_len.view()};
  }
};

struct Pages {
  int64_t first;  // of the pool
  int64_t count;
};

// Sequences of these lengths, of which the last `rows` tokens each are in the step (all of them for
// 0). Pages are taken from `pages` in a random order, as they lie in a cache that has been in use.
Step make_step(const Bench& bench, const std::vector<int32_t>& lengths, int32_t rows,
               const Pages& pages) {
  std::vector<int32_t> free(static_cast<size_t>(pages.count));
  std::iota(free.begin(), free.end(), static_cast<int32_t>(pages.first));
  Rng rng(2);
  for (size_t i = free.size(); i > 1; --i) std::swap(free[i - 1], free[rng.next() % i]);
  const int32_t longest = *std::max_element(lengths.begin(), lengths.end());
  const int32_t width = (longest + kPage - 1) / kPage;
  std::vector<int32_t> positions, slots, indptr = {0};
  std::vector<int32_t> table(lengths.size() * static_cast<size_t>(width));
  size_t taken = 0;
  for (size_t s = 0; s < lengths.size(); ++s) {
    int32_t* own = table.data() + s * static_cast<size_t>(width);
    for (int32_t page = 0; page * kPage < lengths[s]; ++page) own[page] = free.at(taken++);
    for (int32_t t = rows == 0 ? 0 : lengths[s] - rows; t < lengths[s]; ++t) {
      positions.push_back(t);
      slots.push_back(own[t / kPage] * kPage + t % kPage);
    }
    indptr.push_back(static_cast<int32_t>(positions.size()));
  }
  const auto n = static_cast<int64_t>(positions.size());
  const auto n_sequences = static_cast<int64_t>(lengths.size());
  return {ints(bench, positions, Shape{n}), ints(bench, slots, Shape{n}),
          ints(bench, indptr, Shape{n_sequences + 1}),
          ints(bench, table, Shape{n_sequences, width}), ints(bench, lengths, Shape{n_sequences})};
}

int64_t pages_of(const std::vector<int32_t>& lengths) {
  int64_t pages = 0;
  for (const int32_t length : lengths) pages += (length + kPage - 1) / kPage;
  return pages;
}

struct Heads {
  int64_t q;
  int32_t kv;
  int32_t dim;
};

// A cache of one layer with random contents.
struct Pool {
  Tensor k, v, scale;
  PagedKv kv;
  Pool(const Bench& bench, DType dtype, const Heads& heads, int64_t pages) {
    const Shape shape{pages, heads.kv, kPage, heads.dim};
    k = random_tensor(bench, dtype, shape);
    v = random_tensor(bench, dtype, shape);
    const std::vector<float> scales(static_cast<size_t>(heads.kv), 0.01f);
    scale = put(bench, DType::f32, scales.data(), Shape{heads.kv});
    const float* at = fp8_format(dtype) ? scale.view().as<const float>() : nullptr;
    kv = {k.view().data, v.view().data, at, at, dtype, kPage, heads.kv, heads.dim};
  }
};

double softmax_scale(const Heads& heads) {
  return 1 / std::sqrt(static_cast<double>(heads.dim));
}

// Bytes/s of the cache that one decode step reads.
double bench_decode(const Bench& bench, const std::string& name, const Heads& heads, DType dtype,
                    const std::vector<int32_t>& lengths) {
  const int64_t pages = pages_of(lengths);
  const double tokens = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  const double bytes =
      tokens * 2.0 * heads.kv * heads.dim * static_cast<double>(dtype_bytes(dtype));
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
  const Tensor out = bench.backend.allocate(DType::bf16, shape);
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
  const Case full[] = {{"decode D1, 32/8 heads, 1 x 1024", {32, 8, 128}, 1, 1024},
                       {"decode D2, 32/8 heads, 1 x 32768", {32, 8, 128}, 1, 32768},
                       {"decode D3, 32/8 heads, 16 x 4096", {32, 8, 128}, 16, 4096},
                       {"decode D4, 32/8 heads, 64 x 4096", {32, 8, 128}, 64, 4096},
                       {"decode D5, 32/32 heads, 16 x 4096", {32, 32, 128}, 16, 4096},
                       {"decode D6, 64/8 heads, 32 x 8192", {64, 8, 128}, 32, 8192}};
  const Case tiny[] = {{"decode, 4/2 heads, 2 x 100", {4, 2, 64}, 2, 100}};
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

void bench_prefill(const Bench& bench) {
  const Heads heads = bench.quick ? Heads{4, 2, 64} : Heads{32, 8, 128};
  const std::vector<int32_t> lengths(bench.quick ? 2 : 8, bench.quick ? 40 : 2048);
  const double length = lengths[0];
  const double flop = 4.0 * heads.dim * static_cast<double>(heads.q) *
                      static_cast<double>(lengths.size()) * length * (length + 1) / 2;
  for (const DType dtype : {DType::f16, DType::f8_e4m3}) {
    const Pool pool(bench, dtype, heads, pages_of(lengths));
    const Step step = make_step(bench, lengths, 0, {0, pages_of(lengths)});
    const Shape shape{static_cast<int64_t>(lengths.size()) * lengths[0], heads.q, heads.dim};
    const Tensor q = random_tensor(bench, DType::f16, shape);
    const Tensor out = bench.backend.allocate(DType::f16, shape);
    const auto scale = static_cast<float>(softmax_scale(heads));
    const Timing timing = time_calls(bench, [&](size_t) {
      bench.backend.attention(q.view(), pool.kv, step.batch(), {scale, 0}, out.view());
    });
    print_row(cat("prefill P1, ", heads.q, "/", heads.kv, " heads, ", lengths.size(), " x ",
                  lengths[0], ", ", dtype_name(dtype)),
              timing, flop, "TFLOP/s", bench.gemm, "GEMM");
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
    // Q, K and V are read, Q and K written back, both cached as a byte an element.
    const auto bytes = static_cast<double>(2 * q.view().bytes() + 2 * k.view().bytes() +
                                           v.view().bytes() + k.view().bytes());
    print_row(cat("rope and append Q1, ", n, " rows", observe ? ", observed" : ""), timing, bytes,
              "GB/s", bench.limits.copy, "copy");
  }
}

struct Weights {
  int64_t in, out;
  std::vector<Tensor> sets;  // more than the L2 holds
};

Weights make_weights(const Bench& bench) {
  Weights weights{bench.quick ? 128 : 4096, bench.quick ? 192 : 14336, {}};
  for (int set = 0; set < (bench.quick ? 2 : 3); ++set) {
    weights.sets.push_back(random_tensor(bench, DType::bf16, Shape{weights.out, weights.in}));
  }
  return weights;
}

Timing time_linear(const Bench& bench, const Weights& weights, int64_t rows) {
  const Tensor x = random_tensor(bench, DType::bf16, Shape{rows, weights.in});
  const Tensor out = bench.backend.allocate(DType::bf16, Shape{rows, weights.out});
  return time_calls(bench, [&](size_t i) {
    const Projection projection{weights.sets[i % weights.sets.size()].view(), {}, out.view()};
    bench.backend.linear(x.view(), std::span(&projection, 1));
  });
}

std::string linear_name(const Weights& weights, int64_t rows) {
  return cat("linear bf16 ", weights.out, " x ", weights.in, ", ", rows, " rows");
}

// What many rows reach is the limit for attention over prompts; nothing here knows a higher one.
double bench_gemm(const Bench& bench, const Weights& weights) {
  const int64_t rows = bench.quick ? 130 : 16384;
  const Timing timing = time_linear(bench, weights, rows);
  const double flop = 2.0 * static_cast<double>(rows * weights.in * weights.out);
  print_row(linear_name(weights, rows), timing, flop, "TFLOP/s", 0, "peak");
  return flop / timing.median;
}

void bench_few_rows(const Bench& bench, const Weights& weights) {
  for (const int64_t rows : {1, 4, 16, 64}) {
    const auto bytes = static_cast<double>(weights.sets[0].view().bytes());
    print_row(linear_name(weights, rows), time_linear(bench, weights, rows), bytes, "GB/s",
              bench.limits.read, "read");
  }
}

void bench_elementwise(const Bench& bench) {
  const int64_t rows = bench.quick ? 20 : 16384, dim = bench.quick ? 128 : 4096;
  const Tensor x = random_tensor(bench, DType::bf16, Shape{rows, dim});
  const Tensor out = bench.backend.allocate(DType::bf16, Shape{rows, dim});
  const Tensor weight = random_tensor(bench, DType::bf16, Shape{dim});
  const auto bytes = static_cast<double>(x.view().bytes());
  print_row(cat("rmsnorm, ", rows, " x ", dim),
            time_calls(
                bench,
                [&](size_t) { bench.backend.rmsnorm(x.view(), weight.view(), 1e-5f, out.view()); }),
            2 * bytes, "GB/s", bench.limits.copy, "copy");
  print_row(cat("silu and gate, ", rows, " x ", dim),
            time_calls(bench, [&](size_t) { bench.backend.gate(out.view(), x.view()); }), 3 * bytes,
            "GB/s", bench.limits.copy, "copy");
}

void run(const std::string& device, bool quick) {
  const auto backend = load_plugin(device);
  std::printf("%s\n", backend->describe().c_str());
  // The simulator has none, whatever GPU this was built to measure.
  Bench bench{*backend, device == "sim" ? GpuLimits{} : measure_gpu_limits(), quick};
  if (bench.limits.read > 0) {
    std::printf("read %.0f GB/s, copy %.0f GB/s (read and written), pinned to device %.1f GB/s\n",
                bench.limits.read / 1e9, bench.limits.copy / 1e9, bench.limits.to_device / 1e9);
  }
  std::printf("\n");
  const Weights weights = make_weights(bench);
  bench.gemm = bench_gemm(bench, weights);
  bench_few_rows(bench, weights);
  bench_all_decode(bench);
  bench_rope(bench);
  bench_prefill(bench);
  bench_elementwise(bench);
}

}  // namespace
}  // namespace fp8kv::bench

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cuda";
  const bool quick = argc > 2 && std::string(argv[2]) == "quick";
  try {
    fp8kv::bench::run(device, quick);
    return 0;
  } catch (const fp8kv::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
