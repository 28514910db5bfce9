// Calls that the simulated device refuses, as a real one would.
#include <cstdint>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "support/backends/gpu_backends.h"
#include "support/expect_error.h"

namespace fp8kv {

using test::put;

namespace {

std::vector<int32_t> downloaded(Backend& backend, const Tensor& ids) {
  std::vector<int32_t> values(static_cast<size_t>(ids.view().shape.elements()));
  backend.download(ids.view(), std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

TEST_CASE("gpu recording: what a real device could not repeat is refused") {
  const auto backend = sim32::make_gpu_backend();
  const Tensor ids = put(*backend, std::vector<int32_t>{0}, Shape{1});
  backend->begin_recording();
  const auto refusal = [&](auto work) { return test::error_of(work, ErrorKind::device); };
  CHECK(refusal([&] { backend->allocate(DType::f32, Shape{1}); }) ==
        "memory is allocated while a step is being recorded");
  CHECK(refusal([&] { put(*backend, std::vector<int32_t>{0}, Shape{1}); }) ==
        "memory is allocated while a step is being recorded");
  const int32_t id = 1;
  CHECK(refusal([&] {
          backend->copy_in(ids.view(), {reinterpret_cast<const std::byte*>(&id), DType::i32, {1}});
        }) == "memory is copied to the device while a step is being recorded");
  CHECK(refusal([&] { downloaded(*backend, ids); }) ==
        "memory is copied from the device while a step is being recorded");
  backend->end_recording();
  CHECK(downloaded(*backend, ids) == std::vector<int32_t>{0});
}

TEST_CASE("gpu memory: a device that is full says what it could not hold") {
  const auto backend = sim32::make_gpu_backend();
  const uint64_t free = *backend->memory()->free;
  const Tensor half = backend->allocate(DType::f32, Shape{static_cast<int64_t>(free / 8)});
  CHECK(*backend->memory()->free == free / 2);
  CHECK(
      test::error_of([&] { backend->allocate(DType::f32, Shape{static_cast<int64_t>(free / 4)}); },
                     ErrorKind::resource) ==
      "cannot allocate 1.00 GiB on the device, which has 512.0 MiB left");
}

}  // namespace fp8kv
