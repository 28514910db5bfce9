// Fused ops give the bits of the ops that they combine, on every GPU backend.
#include <cstdint>

#include <doctest/doctest.h>

#include "support/backends/fused_ops.h"
#include "support/backends/gpu_backends.h"

namespace fp8kv {
namespace {

using test::check_same;
using test::hidden;
using test::kComputeTypes;
using test::on_every_backend;
using test::project_append;
using Bytes = test::Bytes;
using Case = test::FusedCase;
using Op = test::FusedOp;
using Outcome = test::FusedOutcome;
using Way = test::FusedWay;

}  // namespace

TEST_CASE("gpu project_append: has the bits of its parts in Q, K, V and the whole cache") {
  constexpr int64_t kQueriesPerHead[] = {1, 2, 4, 7};
  on_every_backend([&](Backend& backend) {
    for (const DType dtype : kComputeTypes) {
      int64_t number = 0;
      for (const DType cache : test::cache_types()) {
        for (int64_t rows = 1; rows <= 4; ++rows, ++number) {
          Case c{.dtype = dtype, .rows = rows, .cache = cache, .round_to = dtype};
          c.bias = number % 3 == 0;
          c.n_kv_heads = 1 + number % 2;
          c.n_heads = c.n_kv_heads * kQueriesPerHead[(number + number / 4) % 4];
          c.head_dim = number % 5 == 0 ? 6 : number % 11 == 1 ? 512 : 16;
          c.dim = number % 7 == 0 ? 8 : number % 7 == 1 ? 264 : 72;
          check_same(project_append, backend, c, true);
        }
      }
    }
  });
}

TEST_CASE("gpu hidden: has the bits of its parts") {
  on_every_backend([&](Backend& backend) {
    for (const DType dtype : kComputeTypes) {
      for (const int64_t rows : {1, 2, 3, 4}) {
        for (const int64_t hidden_dim : {1, 35, 45}) {
          for (const int64_t dim : {8, 72, 264}) {
            Case c{.dtype = dtype, .dim = dim, .rows = rows, .hidden_dim = hidden_dim};
            c.bias = (rows + hidden_dim / 7 + dim / 8) % 2 == 0;
            c.weight_offset = hidden_dim == 35 ? 1.0f : 0.0f;
            // Both activations meet every type, number of rows and size, but not every combination
            // of these.
            const bool gelu = (rows / 2 + dim / 72) % 2 == 0;
            c.activation = gelu ? Activation::gelu_tanh : Activation::silu;
            check_same(hidden, backend, c, true);
          }
        }
      }
    }
  });
}

TEST_CASE(
    "gpu project_append: rotates a part of a head, and neighbours, with the bits of its parts") {
  on_every_backend([](Backend& backend) {
    for (const int64_t rotary_dim : {2, 8, 16}) {
      for (const RopePairs pairs : {RopePairs::halves, RopePairs::neighbours}) {
        const Case c{.rows = 3, .rotary_dim = rotary_dim, .pairs = pairs};
        check_same(project_append, backend, c, true);
      }
    }
  });
}

TEST_CASE("gpu project_append: rounds once to a type that is not the activations'") {
  on_every_backend([](Backend& backend) {
    for (const DType cache : {DType::f32, DType::f8_e4m3}) {
      const Case c{.dtype = DType::f32, .rows = 3, .cache = cache, .round_to = DType::bf16};
      check_same(project_append, backend, c, true);
    }
  });
}

TEST_CASE("gpu fused ops: give the same bits in any order of threads, warps and blocks") {
  on_every_backend([](Backend& backend) {
    const Case c{.bias = true, .rows = 3, .hidden_dim = 45};
    for (const Op op : {project_append, hidden}) {
      const Outcome expected = op(backend, c, Way::composed);
      for (uint64_t seed = 1; seed < 5u; ++seed) {
        CAPTURE(seed);
        test::set_order(seed);
        const Outcome actual = op(backend, c, Way::fused);
        test::set_order(0);
        CHECK(actual.took_kernel);
        CHECK((actual == expected));
      }
    }
  });
}

// Row by row, in the fused kernel and for sizes that fall back to the parts.
TEST_CASE("gpu fused ops: a row has the same bits in a step of any size that is computed as one") {
  on_every_backend([](Backend& backend) {
    for (const int64_t computed_as : {4, 16}) {
      const Case all{.computed_as = computed_as, .rows = 4};
      const Bytes gates = hidden(backend, all, Way::fused).results[0];
      const Bytes queries = project_append(backend, all, Way::fused).results[2];
      Bytes single_gates, single_queries;
      for (int64_t row = 0; row < all.rows; ++row) {
        const Case one{.computed_as = computed_as, .first_row = row, .rows = 1};
        const Bytes gate = hidden(backend, one, Way::fused).results[0];
        const Bytes query = project_append(backend, one, Way::fused).results[2];
        single_gates.insert(single_gates.end(), gate.begin(), gate.end());
        single_queries.insert(single_queries.end(), query.begin(), query.end());
      }
      CHECK((single_gates == gates));
      CHECK((single_queries == queries));
    }
  });
}

}  // namespace fp8kv
