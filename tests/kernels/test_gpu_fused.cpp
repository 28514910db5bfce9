// Fused ops give the bits of the ops that they combine, on every GPU backend. The fused kernel
// leaves the scratch memory untouched, which shows that it ran.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "core/numbers/histogram.h"
#include "support/backends/gpu_backends.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

using test::kComputeTypes;
using test::on_every_backend;
using test::put;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(Backend& backend, const TensorView& view) {
  Bytes bytes(view.bytes());
  backend.download(view, bytes);
  return bytes;
}

// Tensors of one case on a backend. Every maker gives the same tensors for the same calls.
class Maker {
 public:
  Maker(Backend& backend, DType dtype) : backend_(backend), dtype_(dtype) {}

  TensorView values(const Shape& shape, double largest, std::optional<DType> dtype = {}) {
    std::vector<float> all(static_cast<size_t>(shape.elements()));
    for (float& x : all) x = static_cast<float>((rng_.uniform() * 2 - 1) * largest);
    return keep(put(backend_, all, dtype.value_or(dtype_), shape));
  }
  TensorView ints(const std::vector<int32_t>& all) {
    return keep(put(backend_, all, {static_cast<int64_t>(all.size())}));
  }
  TensorView floats(const std::vector<float>& all) {
    return keep(put(backend_, all, DType::f32, {static_cast<int64_t>(all.size())}));
  }
  // Memory filled with a pattern, in which every written byte shows.
  TensorView pattern(DType dtype, const Shape& shape) {
    Tensor tensor = backend_.allocate(dtype, shape);
    const Bytes bytes(tensor.view().bytes(), kPattern);
    backend_.copy_in(tensor.view(), {bytes.data(), dtype, shape});
    return keep(std::move(tensor));
  }
  Linear linear(int64_t out_dim, int64_t in_dim, bool bias) {
    Linear made{values({out_dim, in_dim}, 1.0), {}};
    if (bias) made.bias = values({out_dim}, 2.0);
    return made;
  }

 private:
  static constexpr std::byte kPattern{0x5A};

  TensorView keep(Tensor tensor) {
    kept_.push_back(std::move(tensor));
    return kept_.back().view();
  }

  Backend& backend_;
  DType dtype_;
  Rng rng_{1};
  std::vector<Tensor> kept_;
};

// The two ways to compute that should be equal.
enum class Way { fused, composed };

struct Case {
  DType dtype = DType::bf16;
  int64_t dim = 72;
  bool bias = false;
  int64_t computed_as = 0;
  // The rows of the step; there are five.
  int64_t first_row = 0;
  int64_t rows = 1;
  // For attention.
  DType cache = DType::f8_e4m3;
  DType round_to = DType::bf16;
  int64_t n_heads = 4;
  int64_t n_kv_heads = 2;
  int64_t head_dim = 16;
  int64_t rotary_dim = 0;  // 0: head_dim
  RopePairs pairs = RopePairs::halves;
  bool observed = false;
  // For the feed-forward block.
  int64_t hidden_dim = 35;
  Activation activation = Activation::silu;
  // For the norm.
  NormKind norm = NormKind::rms;
  float weight_offset = 0.0f;
};

struct Outcome {
  bool took_kernel = false;
  std::vector<Bytes> results;
  bool operator==(const Outcome& other) const { return results == other.results; }
};

TensorView rows_of(const TensorView& all, const Case& c) {
  const auto row = static_cast<int64_t>(all.bytes()) / all.shape[0];
  return {all.data + c.first_row * row, all.dtype, {c.rows, all.shape[1]}};
}

struct Normed {
  TensorView x;
  Entry entry;
  Bytes scratch_before;
};

Normed normed(Backend& backend, Maker& make, const Case& c) {
  Normed made;
  made.x = rows_of(make.values({5, c.dim}, 3.0), c);
  made.entry.norm = Norm{.kind = c.norm,
                         .eps = 1e-5f,
                         .weight_offset = c.weight_offset,
                         .weight = make.values({c.dim}, 1.0)};
  made.entry.scratch = make.pattern(c.dtype, {c.rows, c.dim});
  made.scratch_before = bytes_of(backend, made.entry.scratch);
  return made;
}

Outcome outcome(Backend& backend, const Normed& in, const std::vector<TensorView>& results) {
  Outcome made;
  made.took_kernel = bytes_of(backend, in.entry.scratch) == in.scratch_before;
  for (const TensorView& each : results) made.results.push_back(bytes_of(backend, each));
  return made;
}

Outcome hidden(Backend& backend, const Case& c, Way way) {
  Maker make(backend, c.dtype);
  const Normed in = normed(backend, make, c);
  const auto project = [&] {
    const Linear linear = make.linear(c.hidden_dim, c.dim, c.bias);
    return Projection{linear.weight, linear.bias, make.pattern(c.dtype, {c.rows, c.hidden_dim})};
  };
  const Projection gate = project(), up = project();
  const HiddenProducts products{gate, up, c.activation};
  backend.compute_as({.rows = c.computed_as});
  if (way == Way::fused) backend.hidden(in.x, in.entry, products);
  if (way == Way::composed) backend.Backend::hidden(in.x, in.entry, products);
  return outcome(backend, in, {gate.out});
}

// A cache of three pages of four tokens. The rows go into the last page, backwards.
PagedKv paged(Maker& make, const Case& c, std::vector<TensorView>& pools) {
  constexpr int32_t kPages = 3, kPageSize = 4;
  PagedKv kv;
  kv.k_format = kv.v_format = kv_format(c.cache);
  kv.page_size = kPageSize;
  kv.n_kv_heads = static_cast<int32_t>(c.n_kv_heads);
  kv.head_dim = static_cast<int32_t>(c.head_dim);
  for (void** pool : {&kv.k, &kv.v}) {
    pools.push_back(make.pattern(c.cache, {kPages, c.n_kv_heads, kPageSize, c.head_dim}));
    *pool = pools.back().data;
  }
  if (fp8_format(c.cache)) {
    // The second scale of K and the first of V make values saturate.
    kv.k_scale = make.floats({0.07f, 0.002f}).as<const float>();
    kv.v_scale = make.floats({0.001f, 0.3f}).as<const float>();
  }
  return kv;
}

Outcome project_append(Backend& backend, const Case& c, Way way) {
  Maker make(backend, c.dtype);
  const Normed in = normed(backend, make, c);
  const int64_t q_dim = c.n_heads * c.head_dim, kv_dim = c.n_kv_heads * c.head_dim;
  const AttentionWeights weights{make.linear(q_dim, c.dim, c.bias),
                                 make.linear(kv_dim, c.dim, c.bias),
                                 make.linear(kv_dim, c.dim, c.bias)};
  std::vector<TensorView> results;
  RopeAppend args;
  args.kv = paged(make, c, results);
  args.q = make.pattern(c.dtype, {c.rows, c.n_heads, c.head_dim});
  args.k = make.pattern(c.dtype, {c.rows, c.n_kv_heads, c.head_dim});
  args.v = make.pattern(c.dtype, {c.rows, c.n_kv_heads, c.head_dim});
  args.rope = make.values({8, c.rotary_dim > 0 ? c.rotary_dim : c.head_dim}, 1.0, DType::f32);
  args.pairs = c.pairs;
  args.round_to = c.round_to;
  std::vector<int32_t> positions, slots;
  for (int64_t row = c.first_row; row < c.first_row + c.rows; ++row) {
    positions.push_back(static_cast<int32_t>(7 - row * 3 % 8));
    slots.push_back(static_cast<int32_t>(11 - row));
  }
  args.batch.positions = make.ints(positions);
  args.batch.slots = make.ints(slots);
  args.batch.indptr = make.ints({0, static_cast<int32_t>(c.rows)});
  args.batch.page_table = reshaped(make.ints({2}), {1, 1});
  backend.compute_as({.rows = c.computed_as});
  if (c.observed) args.magnitudes = make.pattern(DType::u64, {3, c.n_kv_heads, kMagnitudeWords});
  if (way == Way::fused) backend.project_append(in.x, in.entry, weights, args);
  if (way == Way::composed) backend.Backend::project_append(in.x, in.entry, weights, args);
  results.insert(results.end(), {args.q, args.k, args.v});
  if (c.observed) results.push_back(*args.magnitudes);
  return outcome(backend, in, results);
}

using Op = Outcome (*)(Backend&, const Case&, Way);

void check_same(Op op, Backend& backend, const Case& c, bool takes_kernel) {
  CAPTURE(std::string(dtype_name(c.dtype)));
  CAPTURE(std::string(dtype_name(c.cache)));
  CAPTURE(c.rows);
  CAPTURE(c.dim);
  CAPTURE(c.bias);
  CAPTURE(c.n_heads);
  const Outcome fused = op(backend, c, Way::fused);
  CHECK(fused.took_kernel == takes_kernel);
  const bool same = fused == op(backend, c, Way::composed);
  CHECK(same);
}

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
