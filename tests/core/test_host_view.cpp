// Values on the host as views of tensors.
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "core/numbers/host_view.h"

namespace fp8kv {
namespace {

TEST_CASE("host view: the type of the values is the dtype") {
  CHECK(host_view(std::vector<float>{1.0f}).dtype == DType::f32);
  CHECK(host_view(std::vector<int32_t>{1}).dtype == DType::i32);
  CHECK(host_view(std::vector<uint64_t>{1}).dtype == DType::u64);
}

TEST_CASE("host view: it has the memory of the values, in one dimension or in the given shape") {
  const std::vector<int32_t> values = {1, 2, 3, 4, 5, 6};
  const ConstTensorView row = host_view(std::span(values).subspan(2, 3));
  CHECK(row.as<int32_t>() == values.data() + 2);
  CHECK(row.shape == Shape{3});
  const ConstTensorView matrix = host_view(values, Shape{2, 3});
  CHECK(matrix.as<int32_t>() == values.data());
  CHECK(matrix.shape == Shape{2, 3});
}

TEST_CASE("host view: no values are a view of no elements") {
  CHECK(host_view(std::vector<float>()).shape == Shape{0});
}

}  // namespace
}  // namespace fp8kv
