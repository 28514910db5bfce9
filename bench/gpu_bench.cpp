#include "gpu_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <span>

#include "base/error.h"
#include "base/rng.h"
#include "core/numbers/fp8.h"
#include "core/numbers/half.h"

namespace fp8kv::bench {
namespace {

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

Tensor ints(const Bench& bench, const std::vector<int32_t>& values, const Shape& shape) {
  return put(bench, DType::i32, values.data(), shape);
}

}  // namespace

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
  const bool operations = std::strcmp(unit, "TFLOP/s") == 0;
  const double scale = operations ? 1e12 : 1e9;
  std::printf("%-56s %9.1f us %9.3f %-5s %9.1f %-7s", name.c_str(), 1e6 * timing.median,
              amount / scale, operations ? "TFLOP" : "GB", amount / timing.median / scale, unit);
  if (limit > 0) {
    std::printf(" %5.1f %% of %-5s", 100 * amount / timing.median / limit, limit_name);
  } else {
    std::printf("      - of %-5s", limit_name);
  }
  std::printf("  spread -%.0f +%.0f %%\n", 100 * (1 - timing.tenth / timing.median),
              100 * (timing.ninth / timing.median - 1));
  std::fflush(stdout);
}

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

Pool::Pool(const Bench& bench, DType dtype, const Heads& heads, int64_t pages) {
  const Shape shape{pages, heads.kv, kPage, heads.dim};
  k = random_tensor(bench, dtype, shape);
  if (heads.latent == 0) v = random_tensor(bench, dtype, shape);
  const std::vector<float> scales(static_cast<size_t>(heads.kv), 0.01f);
  scale = put(bench, DType::f32, scales.data(), Shape{heads.kv});
  const float* at = fp8_format(dtype) ? scale.view().as<const float>() : nullptr;
  const KvFormat format = kv_format(dtype);
  kv = {k.view().data, v.view().data, at, at, format, format, kPage, heads.kv, heads.dim};
  if (heads.latent == 0) return;
  kv.v_in_k = heads.latent;
  kv.v = k.view().data + static_cast<size_t>(heads.dim - heads.latent) * dtype_bytes(dtype);
}

}  // namespace fp8kv::bench
