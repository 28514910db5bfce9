// The residual stream on the CPU, where all of it stays in memory. model/test_streaming.cpp tests
// how a device moves it.
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "calib/windows/residual.h"
#include "core/numbers/host_view.h"

namespace fp8kv {
namespace {

constexpr int64_t kDim = 3;

// Three batches, with more rows than are read at once.
WindowPlan three_batches() {
  return plan_windows(
      {std::vector<int32_t>(1500), std::vector<int32_t>(1400), std::vector<int32_t>(200)}, {},
      1500);
}

std::vector<float> numbered(int64_t rows) {
  std::vector<float> values(static_cast<size_t>(rows * kDim));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return values;
}

std::vector<float> read_all(ResidualStream& stream) {
  std::vector<float> all;
  stream.read([&](std::span<const std::byte> part) {
    const size_t before = all.size();
    all.resize(before + part.size() / sizeof(float));
    std::memcpy(all.data() + before, part.data(), part.size());
  });
  return all;
}

}  // namespace

TEST_CASE("residual: rows that were filled in are those of the batches, and are read in order") {
  const auto backend = make_cpu_backend(1);
  const WindowPlan plan = three_batches();
  REQUIRE(plan.batches.size() == 3);
  ResidualStream stream(*backend, plan, kDim, DType::f32, true);
  const std::vector<float> values = numbered(plan.total_rows);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  const size_t row_bytes = kDim * sizeof(float);
  stream.fill(0, bytes.first(1000 * row_bytes));
  stream.fill(1000, bytes.subspan(1000 * row_bytes));
  for (size_t i = 0; i < 3; ++i) {
    const TensorView rows = stream.begin(i);
    const WindowBatch& batch = plan.batches[i];
    CHECK(rows.shape == Shape{batch.rows, kDim});
    std::vector<float> found(static_cast<size_t>(batch.rows * kDim));
    backend->download(rows, std::as_writable_bytes(std::span(found)));
    CHECK(found.front() == static_cast<float>(batch.first_row * kDim));
    CHECK(found.back() == static_cast<float>((batch.first_row + batch.rows) * kDim - 1));
    stream.end();
  }
  CHECK(read_all(stream) == values);
}

TEST_CASE("residual: what ops write into a batch stays there") {
  const auto backend = make_cpu_backend(1);
  const WindowPlan plan = three_batches();
  ResidualStream stream(*backend, plan, kDim, DType::f32, true);
  std::vector<float> expected(static_cast<size_t>(plan.total_rows * kDim));
  for (size_t i = 0; i < 3; ++i) {
    const WindowBatch& batch = plan.batches[i];
    const std::vector<float> written(static_cast<size_t>(batch.rows * kDim),
                                     static_cast<float>(i + 1));
    const TensorView rows = stream.begin(i);
    backend->copy_in(rows, host_view(written, rows.shape));
    stream.end();
    std::copy(written.begin(), written.end(),
              expected.begin() + static_cast<ptrdiff_t>(batch.first_row * kDim));
  }
  CHECK(read_all(stream) == expected);
}

TEST_CASE("residual: a device holds all rows, or two batches") {
  const WindowPlan plan = three_batches();
  CHECK(ResidualStream::device_bytes(plan, kDim, DType::f32, true) == 3100 * 3 * 4);
  CHECK(ResidualStream::device_bytes(plan, kDim, DType::bf16, false) == 2 * 1500 * 3 * 2);
}

}  // namespace fp8kv
