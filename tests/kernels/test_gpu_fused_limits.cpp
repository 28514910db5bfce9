// Cases that the kernels of fused ops are not for, and results that fused ops refuse.
#include <array>
#include <optional>

#include <doctest/doctest.h>

#include "support/backends/fused_ops.h"
#include "support/backends/gpu_backends.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

using test::bytes_of;
using test::check_same;
using test::hidden;
using test::kComputeTypes;
using test::normed;
using test::on_every_backend;
using test::project_append;
using Case = test::FusedCase;
using Maker = test::FusedMaker;
using Normed = test::NormedRows;
using Op = test::FusedOp;

}  // namespace

TEST_CASE("gpu fused ops: leave to their parts what the kernel is not for") {
  on_every_backend([&](Backend& backend) {
    for (const DType dtype : kComputeTypes) {
      const Case c{.dtype = dtype, .rows = 4, .round_to = dtype};
      for (const Op op : {project_append, hidden}) {
        Case other = c;
        other.rows = 5;
        check_same(op, backend, other, false);
        other = c;
        other.computed_as = 5;
        check_same(op, backend, other, false);
        other = c;
        other.dim = 70;  // not whole vectors
        check_same(op, backend, other, false);
        other = c;
        other.dim = dtype == DType::f32 ? 3096 : 6168;  // more than fits shared memory
        other.head_dim = 2;
        other.hidden_dim = 3;
        check_same(op, backend, other, false);
        other.rows = 3;
        check_same(op, backend, other, true);
      }
      for (const Op op : {project_append, hidden}) {
        Case layer_norm = c;
        layer_norm.norm = NormKind::layer;
        check_same(op, backend, layer_norm, false);
      }
      for (const Activation activation :
           {Activation::gelu_erf, Activation::relu, Activation::relu_squared}) {
        Case other = c;
        other.activation = activation;
        check_same(hidden, backend, other, false);
      }
      Case observed = c;
      observed.observed = true;
      check_same(project_append, backend, observed, false);
    }
  });
}

// Every device of today takes more than two rounds for as many columns.
TEST_CASE("gpu hidden: leaves many columns to separate launches") {
  on_every_backend([](Backend& backend) {
    const Case c{.dtype = DType::bf16, .dim = 8, .rows = 1, .hidden_dim = 8000};
    check_same(hidden, backend, c, false);
  });
}

TEST_CASE("gpu hidden: refuses results that it could not give") {
  on_every_backend([](Backend& backend) {
    Maker make(backend, DType::bf16);
    const Normed in = normed(backend, make, {});
    const Linear linear = make.linear(8, 72, false);
    const Projection gate{linear.weight, {}, make.pattern(DType::bf16, {1, 8})};
    Projection up{linear.weight, {}, make.pattern(DType::bf16, {1, 8}), true};
    const auto error = [&] {
      return test::error_of(
          [&] {
            backend.hidden(in.x, in.entry, {gate, up, Activation::silu});
          },
          ErrorKind::device);
    };
    CHECK(error() == "hidden: needs new results of one shape");
    up = {make.linear(16, 72, false).weight, {}, make.pattern(DType::bf16, {1, 16})};
    CHECK(error() == "hidden: needs new results of one shape");
  });
}

// Cases without a gate, and cases whose rows enter unnormalised.
TEST_CASE("gpu hidden: without a gate or a norm it is its parts") {
  on_every_backend([](Backend& backend) {
    for (const DType dtype : kComputeTypes) {
      Maker make(backend, dtype);
      const TensorView x = make.values({3, 72}, 2.0), scratch = make.pattern(dtype, {3, 72});
      const Linear linear = make.linear(35, 72, true);
      const Projection up{linear.weight, linear.bias, make.pattern(dtype, {3, 35})};
      backend.hidden(x, {std::nullopt, scratch}, {std::nullopt, up, Activation::relu});
      const Projection again{linear.weight, linear.bias, make.pattern(dtype, {3, 35})};
      backend.linear(x, std::array{again});
      backend.activate(Activation::relu, again.out, std::nullopt);
      CHECK((bytes_of(backend, up.out) == bytes_of(backend, again.out)));
    }
  });
}

}  // namespace fp8kv
