#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "core/numbers/fp8.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"

namespace fp8kv {
namespace {

// A batch of sequences over one paged cache, with the cache's values in double.
struct Setup {
  int64_t n_heads = 4;
  int64_t n_kv_heads = 2;
  int64_t head_dim = 64;
  int64_t page_size = 16;
  DType dtype = DType::f32;
  int64_t window = 0;
  int64_t chunk = 0;
  float cap = 0;
  bool bias = false;   // added to scores, up to 5
  bool sinks = false;  // from far below the scores to above all of them
  DType sink_dtype = DType::f32;
  bool exact_scales = false;             // powers of two
  std::optional<DType> rounded_to = {};  // values are first rounded as this fp8 type would
  DType model = DType::f16;              // dtype that Q, K and V were rounded to
  int power = 0;                         // multiplies Q by 2^power; the scale of scores undoes it
  // For each sequence: its tokens in the cache, and how many of the last ones are rows of this
  // step.
  std::vector<std::pair<int64_t, int64_t>> sequences = {{20, 20}};
};

float round_trip(DType dtype, float x, float scale, std::byte* to) {
  switch (dtype) {
    case DType::f16:
      F16Element::store(x, scale, to);
      return F16Element::load(to);
    case DType::bf16:
      Bf16Element::store(x, scale, to);
      return Bf16Element::load(to);
    case DType::f8_e4m3:
      Fp8Element<Fp8Format::e4m3fn>::store(x, scale, to);
      return Fp8Element<Fp8Format::e4m3fn>::load(to);
    case DType::f8_e4m3fnuz:
      Fp8Element<Fp8Format::e4m3fnuz>::store(x, scale, to);
      return Fp8Element<Fp8Format::e4m3fnuz>::load(to);
    case DType::f8_e5m2:
      Fp8Element<Fp8Format::e5m2>::store(x, scale, to);
      return Fp8Element<Fp8Format::e5m2>::load(to);
    case DType::f8_e5m2fnuz:
      Fp8Element<Fp8Format::e5m2fnuz>::store(x, scale, to);
      return Fp8Element<Fp8Format::e5m2fnuz>::load(to);
    default:
      F32Element::store(x, scale, to);
      return x;
  }
}

constexpr int64_t kBiased = 1200;  // positions that have a bias

class Scene {
 public:
  Scene(Backend& backend, const Setup& setup, uint64_t seed) : setup_(setup) {
    Rng rng(seed);
    int64_t max_pages = 1;
    for (const auto& [context, rows] : setup.sequences) {
      max_pages = std::max(max_pages, (context + setup.page_size - 1) / setup.page_size);
      n_rows_ += rows;
    }
    const auto n_sequences = static_cast<int64_t>(setup.sequences.size());
    // Pages are handed out backwards and mixed. One page is NaN, and nobody may read it.
    n_pages_ = max_pages * n_sequences + 1;
    fill_cache(rng, max_pages);
    for (int64_t i = 0; i < setup.n_heads * kBiased; ++i) {
      bias_.push_back(static_cast<float>(i * 13 % 41) / 4 - 5);
    }
    for (int64_t head = 0; head < setup.n_heads; ++head) {
      sinks_.push_back(static_cast<float>(head % 4) * 4 - 6);
    }
    std::vector<int32_t> positions, slots, indptr = {0}, context_len;
    for (int64_t s = 0; s < n_sequences; ++s) {
      const auto [context, rows] = setup.sequences[s];
      for (int64_t t = context - rows; t < context; ++t) {
        positions.push_back(static_cast<int32_t>(t));
        slots.push_back(0);
        row_sequence_.push_back(s);
        // A position has the same query whichever rows are in the step.
        Rng row_rng(seed * 1000003 + static_cast<uint64_t>(s * 65536 + t));
        auto row = test::random_floats(row_rng, setup.n_heads * setup.head_dim);
        for (float& x : row) x = std::ldexp(of_model(x), setup.power);
        q_.insert(q_.end(), row.begin(), row.end());
      }
      indptr.push_back(indptr.back() + static_cast<int32_t>(rows));
      context_len.push_back(static_cast<int32_t>(context));
    }
    positions_ = positions;
    tensors_.push_back(test::tensor_of(backend, positions, Shape{n_rows_}));
    tensors_.push_back(test::tensor_of(backend, slots, Shape{n_rows_}));
    tensors_.push_back(test::tensor_of(backend, indptr, Shape{n_sequences + 1}));
    tensors_.push_back(test::tensor_of(backend, page_table_, Shape{n_sequences, max_pages}));
    tensors_.push_back(test::tensor_of(backend, context_len, Shape{n_sequences}));
  }

  std::vector<float> run(Backend& backend) const {
    const Shape shape{n_rows_, setup_.n_heads, setup_.head_dim};
    const Tensor q = test::tensor_of(backend, q_, shape);
    const Tensor out = backend.allocate(DType::f32, shape);
    const Batch batch{tensors_[0].view(), tensors_[1].view(), tensors_[2].view(),
                      tensors_[3].view(), tensors_[4].view()};
    PagedKv kv;
    kv.k = const_cast<std::byte*>(k_bytes_.data());
    kv.v = const_cast<std::byte*>(v_bytes_.data());
    if (fp8_format(setup_.dtype)) {
      kv.k_scale = k_scale_.data();
      kv.v_scale = v_scale_.data();
    }
    kv.k_format = kv.v_format = kv_format(setup_.dtype);
    kv.page_size = static_cast<int32_t>(setup_.page_size);
    kv.n_kv_heads = static_cast<int32_t>(setup_.n_kv_heads);
    kv.head_dim = static_cast<int32_t>(setup_.head_dim);
    AttentionOptions options{scale(), setup_.window, setup_.chunk, setup_.cap};
    const Shape biased{setup_.n_heads, kBiased};
    if (setup_.bias) {
      options.bias = {reinterpret_cast<const std::byte*>(bias_.data()), DType::f32, biased};
    }
    const test::Elements sinks(sinks_, setup_.sink_dtype, {setup_.n_heads});
    if (setup_.sinks) options.sinks = sinks.view();
    options.rounded_to = setup_.model;
    backend.attention(q.view(), kv, batch, options, out.view());
    return test::floats_of(backend, out.view());
  }

  // The definition, computed in double; the same for every instruction set.
  struct Definition {
    std::vector<double> expected, allowed;
  };
  Definition definition() const {
    Definition by_rows;
    for (int64_t row = 0; row < n_rows_; ++row) {
      for (int64_t head = 0; head < setup_.n_heads; ++head) {
        add_row(row, head, by_rows.expected, by_rows.allowed);
      }
    }
    return by_rows;
  }

  float scale() const {
    return std::ldexp(1.0f / std::sqrt(static_cast<float>(setup_.head_dim)), -setup_.power);
  }

 private:
  void fill_cache(Rng& rng, int64_t max_pages) {
    const int64_t page_elements = setup_.n_kv_heads * setup_.page_size * setup_.head_dim;
    const size_t element = dtype_bytes(setup_.dtype);
    k_bytes_.assign(static_cast<size_t>(n_pages_ * page_elements) * element, std::byte{0xFF});
    v_bytes_ = k_bytes_;
    for (int64_t h = 0; h < setup_.n_kv_heads; ++h) {
      k_scale_.push_back(setup_.exact_scales ? 0x1p-7f : 0.01f * static_cast<float>(h + 1));
      v_scale_.push_back(setup_.exact_scales ? 0x1p-9f : 0.003f * static_cast<float>(h + 2));
    }
    const auto n_sequences = static_cast<int64_t>(setup_.sequences.size());
    for (int64_t s = 0; s < n_sequences; ++s) {
      for (int64_t p = 0; p < max_pages; ++p) {
        page_table_.push_back(static_cast<int32_t>(n_pages_ - 1 - (p * n_sequences + s)));
      }
      k_.emplace_back();
      v_.emplace_back();
      for (int64_t t = 0; t < setup_.sequences[s].first; ++t) {
        const int64_t page = page_table_[s * max_pages + t / setup_.page_size];
        for (int64_t h = 0; h < setup_.n_kv_heads; ++h) {
          for (int64_t d = 0; d < setup_.head_dim; ++d) {
            const int64_t at =
                ((page * setup_.n_kv_heads + h) * setup_.page_size + t % setup_.page_size) *
                    setup_.head_dim +
                d;
            k_[s].push_back(put(rng, k_bytes_, at, k_scale_[h], 3));
            v_[s].push_back(put(rng, v_bytes_, at, v_scale_[h], 1));
          }
        }
      }
    }
  }

  float of_model(float x) const {
    std::byte bytes[4];
    return round_trip(setup_.model, x, 1.0f, bytes);
  }

  double put(Rng& rng, std::vector<std::byte>& bytes, int64_t at, float scale, double range) {
    float x = of_model(static_cast<float>(test::random_value(rng) * range));
    std::byte code;
    if (setup_.rounded_to) x = round_trip(*setup_.rounded_to, x, scale, &code) * scale;
    const float used = fp8_format(setup_.dtype) ? scale : 1.0f;
    return double{round_trip(setup_.dtype, x, used,
                             bytes.data() + at * static_cast<int64_t>(dtype_bytes(setup_.dtype)))} *
           double{used};
  }

  void add_row(int64_t row, int64_t head, std::vector<double>& expected,
               std::vector<double>& allowed) const {
    const int64_t s = row_sequence_[row];
    const int64_t h = head / (setup_.n_heads / setup_.n_kv_heads);
    const int64_t end = positions_[row] + 1;
    const int64_t begin = setup_.chunk > 0    ? (end - 1) / setup_.chunk * setup_.chunk
                          : setup_.window > 0 ? std::max<int64_t>(0, end - setup_.window)
                                              : 0;
    std::vector<double> weights;
    double max = -INFINITY, score_error = 0;
    for (int64_t t = begin; t < end; ++t) {
      double dot = 0, magnitudes = 0;
      for (int64_t d = 0; d < setup_.head_dim; ++d) {
        const double product = double{q_[(row * setup_.n_heads + head) * setup_.head_dim + d]} *
                               k_[s][(t * setup_.n_kv_heads + h) * setup_.head_dim + d];
        dot += product;
        magnitudes += std::abs(product);
      }
      weights.push_back(dot * double{scale()});
      if (setup_.cap > 0) weights.back() = setup_.cap * std::tanh(weights.back() / setup_.cap);
      if (setup_.bias) weights.back() += double{bias_[static_cast<size_t>(head * kBiased + t)]};
      max = std::max(max, weights.back());
      // head_dim additions, and three roundings of the scale and its product.
      score_error = std::max(score_error, static_cast<double>(setup_.head_dim + 4) *
                                              test::kUnitF32 * magnitudes * double{scale()});
    }
    if (setup_.bias) score_error += test::kUnitF32 * 5;
    // tanh passes that error on, and adds a few roundings of its own.
    score_error += 8 * test::kUnitF32 * double{setup_.cap};
    const double sink = setup_.sinks ? double{sinks_[static_cast<size_t>(head)]} : -INFINITY;
    max = std::max(max, sink);
    double sum = std::exp(sink - max);
    for (double& weight : weights) sum += weight = std::exp(weight - max);
    for (int64_t d = 0; d < setup_.head_dim; ++d) {
      double value = 0, magnitudes = 0;
      for (int64_t t = begin; t < end; ++t) {
        const double term =
            weights[t - begin] / sum * v_[s][(t * setup_.n_kv_heads + h) * setup_.head_dim + d];
        value += term;
        magnitudes += std::abs(term);
      }
      // An error e of the scores changes every weight by a factor within exp(2e). The rest is exp
      // (2 units each) and the sums: of weights in 16 lanes, of values in blocks of 256 tokens.
      const double roundings = 8 + 256 + 2.0 * static_cast<double>(end - begin) / 256.0;
      expected.push_back(value);
      allowed.push_back((2 * score_error + roundings * test::kUnitF32) * magnitudes + 1e-30);
    }
  }

  Setup setup_;
  int64_t n_rows_ = 0;
  int64_t n_pages_ = 0;
  std::vector<int32_t> page_table_;
  std::vector<int32_t> positions_;
  std::vector<int64_t> row_sequence_;
  std::vector<std::byte> k_bytes_, v_bytes_;
  std::vector<float> k_scale_, v_scale_, q_, bias_, sinks_;
  std::vector<std::vector<double>> k_, v_;  // per sequence [tokens, n_kv_heads, head_dim]
  std::vector<Tensor> tensors_;
};

void check_everywhere(Setup setup) {
  for (const DType model : {DType::f16, DType::bf16, DType::f32}) {
    CAPTURE(std::string(dtype_name(model)));
    setup.model = model;
    const auto memory = make_cpu_backend(1);
    const Scene scene(*memory, setup, 11);
    const Scene::Definition definition = scene.definition();
    for (const CpuIsa isa : test::available_isas()) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      const auto backend = make_cpu_backend(3, isa);
      test::expect_close(scene.run(*backend), definition.expected, definition.allowed);
    }
  }
}

// The rows of a long prompt. 60 are several tiles too, and take a sanitizer less long.
constexpr int64_t many(int64_t rows) {
  return test::kSlow ? std::min<int64_t>(rows, 60) : rows;
}

constexpr DType kCacheTypes[] = {DType::f32,        DType::f16,         DType::bf16,
                                 DType::f8_e4m3,    DType::f8_e4m3fnuz, DType::f8_e5m2,
                                 DType::f8_e5m2fnuz};

}  // namespace

TEST_CASE("attention: equals the definition in double for every type of cache") {
  for (const DType dtype : kCacheTypes) {
    CAPTURE(std::string(dtype_name(dtype)));
    check_everywhere({.dtype = dtype, .sequences = {{37, 37}, {50, 1}}});
  }
}

// A power of two changes no bit of a score, so no bit may be lost at either end of a range.
TEST_CASE("attention: has the same bits with larger and smaller queries") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType dtype : kCacheTypes) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(std::string(dtype_name(dtype)));
      const auto backend = make_cpu_backend(2, isa);
      Setup setup{.dtype = dtype, .sequences = {{37, 37}, {50, 1}}};
      const std::vector<float> expected = Scene(*backend, setup, 12).run(*backend);
      for (const int power : {-40, -12, 20, 40}) {
        setup.power = power;
        CAPTURE(power);
        CHECK(Scene(*backend, setup, 12).run(*backend) == expected);
      }
    }
  }
}

TEST_CASE("attention: takes any ratio of query heads to KV heads") {
  for (const int64_t group : {1, 2, 4, 7, 8}) {
    CAPTURE(group);
    check_everywhere({.n_heads = 2 * group, .sequences = {{33, 33}, {20, 1}}});
  }
  check_everywhere({.n_heads = 8, .n_kv_heads = 1});
  check_everywhere({.n_heads = 3, .n_kv_heads = 3});
}

TEST_CASE("attention: takes any even head size") {
  for (const int64_t head_dim : {2, 6, 32, 48, 80, 128, 300}) {
    CAPTURE(head_dim);
    check_everywhere({.head_dim = head_dim, .dtype = DType::f8_e4m3, .sequences = {{19, 5}}});
  }
}

TEST_CASE("attention: takes contexts that end before, at and after a page and a block") {
  for (const int64_t page_size : {16, 64}) {
    for (const int64_t context : {1, 15, 16, 17, 64, 255, 256, 257, 513}) {
      CAPTURE(page_size);
      CAPTURE(context);
      check_everywhere({.page_size = page_size, .sequences = {{context, 1}, {3, 3}}});
    }
  }
}

TEST_CASE("attention: sees no further back than the window") {
  for (const int64_t window : {1, 5, 16, 300, 5000}) {
    CAPTURE(window);
    check_everywhere({.window = window, .sequences = {{40, 40}, {700, 2}, {1, 1}}});
  }
}

TEST_CASE("attention: sees no further back than the beginning of its chunk") {
  for (const int64_t chunk : {1, 5, 16, 300, 5000}) {
    CAPTURE(chunk);
    check_everywhere({.chunk = chunk, .sequences = {{40, 40}, {700, 2}, {1, 1}}});
  }
}

TEST_CASE("attention: caps scores by tanh") {
  for (const float cap : {0.5f, 2.0f, 30.0f}) {
    CAPTURE(cap);
    check_everywhere({.cap = cap, .sequences = {{40, 40}, {700, 2}, {1, 1}}});
    check_everywhere(
        {.dtype = DType::f8_e4m3, .window = 16, .cap = cap, .sequences = {{300, 1}, {40, 17}}});
  }
}

TEST_CASE("attention: adds the bias of a head and position to scores") {
  check_everywhere({.bias = true, .sequences = {{40, 40}, {700, 2}, {1, 1}}});
  check_everywhere({.dtype = DType::f8_e4m3,
                    .window = 16,
                    .cap = 2,
                    .bias = true,
                    .sequences = {{300, 1}, {40, 17}}});
}

TEST_CASE("attention: a sink of a head takes its part of the softmax, and has no value") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(std::string(dtype_name(dtype)));
    check_everywhere(
        {.sinks = true, .sink_dtype = dtype, .sequences = {{40, 40}, {700, 2}, {1, 1}}});
  }
  check_everywhere({.dtype = DType::f8_e4m3,
                    .window = 16,
                    .cap = 2,
                    .bias = true,
                    .sinks = true,
                    .sequences = {{300, 1}, {40, 17}}});
}

TEST_CASE("attention: a row with a sink has the same bits in a prompt, and for any threads") {
  Setup setup{.dtype = DType::f8_e4m3, .sinks = true, .sequences = {{1100, 600}}};
  const auto one = make_cpu_backend(1);
  const std::vector<float> prompt = Scene(*one, setup, 12).run(*one);
  setup.sequences = {{1100, 1}};
  for (const int threads : {1, 4}) {
    const auto backend = make_cpu_backend(threads);
    const std::vector<float> step = Scene(*backend, setup, 12).run(*backend);
    CHECK(std::vector<float>(prompt.end() - std::ssize(step), prompt.end()) == step);
  }
}

TEST_CASE("attention: takes prompts, continued prompts and single steps in one batch") {
  check_everywhere({.dtype = DType::f8_e4m3,
                    .sequences = {{300, many(300)}, {1, 1}, {620, 1}, {90, 17}, {1100, 1}}});
}

TEST_CASE("attention: a row of a prompt has the same bits as a step of its own") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const int64_t window : {0, 100}) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(window);
      const auto backend = make_cpu_backend(3, isa);
      Setup setup{.dtype = DType::f8_e4m3, .window = window, .sequences = {{530, many(530)}}};
      const std::vector<float> prompt = Scene(*backend, setup, 12).run(*backend);
      setup.sequences = {{530, 1}};
      const std::vector<float> step = Scene(*backend, setup, 12).run(*backend);
      CHECK(std::vector<float>(prompt.end() - step.size(), prompt.end()) == step);
    }
  }
}

TEST_CASE("attention: has the same bits for any size of page") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const auto backend = make_cpu_backend(2, isa);
    Setup setup{.page_size = 16, .dtype = DType::bf16, .sequences = {{300, many(300)}, {70, 1}}};
    const std::vector<float> paged = Scene(*backend, setup, 14).run(*backend);
    setup.page_size = 300;  // each sequence fits one page
    CHECK(Scene(*backend, setup, 14).run(*backend) == paged);
  }
}

TEST_CASE("attention: an fp8 cache has the bits of an f32 cache of its values, scales exact") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType dtype : {DType::f8_e4m3, DType::f8_e4m3fnuz, DType::f8_e5m2}) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(std::string(dtype_name(dtype)));
      const auto backend = make_cpu_backend(2, isa);
      Setup setup{.dtype = dtype, .exact_scales = true, .sequences = {{300, many(300)}, {90, 1}}};
      const std::vector<float> narrow = Scene(*backend, setup, 15).run(*backend);
      setup.rounded_to = dtype;
      setup.dtype = DType::f32;
      CHECK(Scene(*backend, setup, 15).run(*backend) == narrow);
    }
  }
}

TEST_CASE("attention: a query that matches one key gives that token's value") {
  // Keys are one-hot, and each query picks one far above the rest, so the answer is obvious.
  constexpr int64_t kTokens = 8;
  std::vector<float> k(kTokens * kTokens), v(kTokens * kTokens), q(kTokens * kTokens);
  for (int64_t t = 0; t < kTokens; ++t) {
    k[t * kTokens + t] = 1;
    for (int64_t d = 0; d < kTokens; ++d) v[t * kTokens + d] = static_cast<float>(10 * t + d);
  }
  const int64_t wanted[kTokens] = {0, 1, 0, 2, 3, 5, 1, 7};
  for (int64_t row = 0; row < kTokens; ++row) q[row * kTokens + wanted[row]] = 200;
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    const auto backend = make_cpu_backend(2, isa);
    const Tensor queries = test::tensor_of(*backend, q, Shape{kTokens, 1, kTokens});
    const Tensor out = backend->allocate(DType::f32, Shape{kTokens, 1, kTokens});
    const Tensor positions =
        test::tensor_of(*backend, std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}, Shape{kTokens});
    const Tensor indptr = test::tensor_of(*backend, std::vector<int32_t>{0, 8}, Shape{2});
    const Tensor pages = test::tensor_of(*backend, std::vector<int32_t>{0}, Shape{1, 1});
    const Tensor context = test::tensor_of(*backend, std::vector<int32_t>{8}, Shape{1});
    const PagedKv kv{k.data(), v.data(), nullptr, nullptr, KvFormat::f32, KvFormat::f32, 8, 1, 8};
    backend->attention(
        queries.view(), kv,
        {positions.view(), positions.view(), indptr.view(), pages.view(), context.view()},
        {1.0f, 0}, out.view());
    const std::vector<float> values = test::floats_of(*backend, out.view());
    for (int64_t row = 0; row < kTokens; ++row) {
      for (int64_t d = 0; d < kTokens; ++d) {
        CHECK(values[row * kTokens + d] == static_cast<float>(10 * wanted[row] + d));
      }
    }
  }
}

TEST_CASE("attention: has the same bits for any number of threads") {
  for (const auto& sequences :
       {std::vector<std::pair<int64_t, int64_t>>{{1500, 1}}, {{200, 200}, {1300, 2}, {5, 1}}}) {
    const Setup setup{.dtype = DType::f16, .sequences = sequences};
    const auto single = make_cpu_backend(1);
    const std::vector<float> expected = Scene(*single, setup, 13).run(*single);
    for (const int threads : {2, 3, 4}) {
      const auto backend = make_cpu_backend(threads);
      const Scene scene(*backend, setup, 13);
      CHECK(scene.run(*backend) == expected);
      CHECK(scene.run(*backend) == expected);
    }
  }
}

}  // namespace fp8kv
