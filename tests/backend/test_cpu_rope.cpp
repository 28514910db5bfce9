#include <algorithm>
#include <array>
#include <string>

#include <doctest/doctest.h>

#include "core/numbers/histogram.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"

namespace fp8kv {
namespace {

// Five tokens in scattered slots of three pages of four.
struct Scene {
  int64_t n = 5;
  int64_t n_heads = 4;
  int64_t n_kv_heads = 2;
  int64_t head_dim = 6;
  DType round_to = DType::f32;
  DType cache = DType::f32;
  bool observe = true;
  int64_t pages = 3;
  std::vector<int32_t> positions = {0, 1, 7, 3, 2};
  std::vector<int32_t> slots = {11, 0, 5, 6, 3};
  static constexpr int32_t kPageSize = 4;
  static constexpr int32_t kMaxPositions = 8;
  std::vector<float> k_scale = {0.013f, 0.3f};
  std::vector<float> v_scale = {0.07f, 0.0021f};
  std::vector<float> q, k, v;
  int64_t rotary_dim = 0;  // 0: head_dim
  RopePairs pairs = RopePairs::halves;

  Scene() = default;
  int64_t rotated() const { return rotary_dim > 0 ? rotary_dim : head_dim; }
  void randomise(uint64_t seed) {
    Rng rng(seed);
    q = test::random_floats(rng, n * n_heads * head_dim);
    k = test::random_floats(rng, n * n_kv_heads * head_dim);
    v = test::random_floats(rng, n * n_kv_heads * head_dim);
  }
};

std::vector<float> rope_table(int64_t head_dim) {
  std::vector<float> table;
  for (int64_t position = 0; position < Scene::kMaxPositions; ++position) {
    for (const bool cosine : {true, false}) {
      for (int64_t i = 0; i < head_dim / 2; ++i) {
        const double angle = static_cast<double>(position) * std::pow(0.3, static_cast<double>(i));
        table.push_back(static_cast<float>(cosine ? std::cos(angle) : std::sin(angle)));
      }
    }
  }
  return table;
}

struct Outcome {
  std::vector<float> q, k, v;
  std::vector<std::byte> k_cache, v_cache;
  std::vector<uint64_t> magnitudes;
  bool operator==(const Outcome&) const = default;
};

Outcome run(Backend& backend, const Scene& s) {
  const Tensor q = test::tensor_of(backend, s.q, Shape{s.n, s.n_heads, s.head_dim});
  const Tensor k = test::tensor_of(backend, s.k, Shape{s.n, s.n_kv_heads, s.head_dim});
  const Tensor v = test::tensor_of(backend, s.v, Shape{s.n, s.n_kv_heads, s.head_dim});
  const Tensor rope =
      test::tensor_of(backend, rope_table(s.rotated()), Shape{Scene::kMaxPositions, s.rotated()});
  const Tensor positions = test::tensor_of(backend, s.positions, Shape{s.n});
  const Tensor slots = test::tensor_of(backend, s.slots, Shape{s.n});
  const Tensor magnitudes =
      backend.allocate(DType::u64, Shape{3, s.n_kv_heads, int64_t{kMagnitudeWords}});
  const size_t cache_bytes =
      static_cast<size_t>(s.pages * s.n_kv_heads * Scene::kPageSize * s.head_dim) *
      dtype_bytes(s.cache);
  Outcome out;
  out.k_cache.resize(cache_bytes);
  out.v_cache.resize(cache_bytes);
  RopeAppend args{q.view(), k.view(), v.view(), rope.view(), {}, {}, s.round_to, {}, s.pairs};
  args.batch.positions = positions.view();
  args.batch.slots = slots.view();
  args.kv = {out.k_cache.data(),
             out.v_cache.data(),
             nullptr,
             nullptr,
             kv_format(s.cache),
             kv_format(s.cache),
             Scene::kPageSize,
             static_cast<int32_t>(s.n_kv_heads),
             static_cast<int32_t>(s.head_dim)};
  if (fp8_format(s.cache)) {
    args.kv.k_scale = s.k_scale.data();
    args.kv.v_scale = s.v_scale.data();
  }
  if (s.observe) args.magnitudes = magnitudes.view();
  backend.rope_append(args);
  out.q = test::floats_of(backend, q.view());
  out.k = test::floats_of(backend, k.view());
  out.v = test::floats_of(backend, v.view());
  out.magnitudes.resize(static_cast<size_t>(3 * s.n_kv_heads * kMagnitudeWords));
  backend.download(magnitudes.view(), std::as_writable_bytes(std::span(out.magnitudes)));
  return out;
}

float rounded(float x, DType dtype) {
  if (dtype == DType::f16) return f16_to_float(f16_from_float(x));
  if (dtype == DType::bf16) return bf16_to_float(bf16_from_float(x));
  return x;
}

// The rotation, with every operation rounded to f32.
std::vector<float> rotated(const Scene& s, const std::vector<float>& x, int64_t heads) {
  const std::vector<float> table = rope_table(s.rotated());
  std::vector<float> out;
  for (const float value : x) out.push_back(rounded(value, s.round_to));
  const int64_t half = s.rotated() / 2;
  const bool halves = s.pairs == RopePairs::halves;
  for (int64_t row = 0; row < s.n; ++row) {
    const float* rope = table.data() + s.positions[row] * s.rotated();
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t at = (row * heads + head) * s.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const int64_t first = at + (halves ? i : 2 * i);
        const int64_t second = at + (halves ? i + half : 2 * i + 1);
        const float a = x[first], b = x[second];
        out[first] = rounded(a * rope[i] - b * rope[half + i], s.round_to);
        out[second] = rounded(b * rope[i] + a * rope[half + i], s.round_to);
      }
    }
  }
  return out;
}

std::vector<float> all_rounded(std::vector<float> x, DType dtype) {
  for (float& value : x) value = rounded(value, dtype);
  return x;
}

template <Fp8Format F>
std::byte encode(float x, float scale) {
  return static_cast<std::byte>(fp8_encode<F>(x / scale));
}

std::byte encoded(DType dtype, float x, float scale) {
  switch (dtype) {
    case DType::f8_e4m3:
      return encode<Fp8Format::e4m3fn>(x, scale);
    case DType::f8_e4m3fnuz:
      return encode<Fp8Format::e4m3fnuz>(x, scale);
    case DType::f8_e5m2:
      return encode<Fp8Format::e5m2>(x, scale);
    default:
      return encode<Fp8Format::e5m2fnuz>(x, scale);
  }
}

// Checks that exactly the batch's slots hold `values`, and that everything else is still zero.
void check_cache(const Scene& s, const std::vector<std::byte>& cache,
                 const std::vector<float>& values, const std::vector<float>& scales) {
  const size_t element = dtype_bytes(s.cache);
  std::vector<std::byte> expected(cache.size());
  for (int64_t row = 0; row < s.n; ++row) {
    const int64_t page = s.slots[row] / Scene::kPageSize, in_page = s.slots[row] % Scene::kPageSize;
    for (int64_t head = 0; head < s.n_kv_heads; ++head) {
      for (int64_t d = 0; d < s.head_dim; ++d) {
        const float x = values[(row * s.n_kv_heads + head) * s.head_dim + d];
        std::byte* to =
            expected.data() +
            static_cast<size_t>(
                ((page * s.n_kv_heads + head) * Scene::kPageSize + in_page) * s.head_dim + d) *
                element;
        if (s.cache == DType::f32) F32Element::store(x, 1, to);
        if (s.cache == DType::f16) F16Element::store(x, 1, to);
        if (s.cache == DType::bf16) Bf16Element::store(x, 1, to);
        if (fp8_format(s.cache)) *to = encoded(s.cache, x, scales[head]);
      }
    }
  }
  CHECK(cache == expected);
}

// One head's statistics, counted the plain way.
std::vector<uint64_t> counted(const std::vector<float>& values) {
  std::vector<uint64_t> words(kMagnitudeWords);
  for (const float x : values) {
    if (!std::isfinite(x)) {
      ++words[kMagnitudeNonfinite];
      continue;
    }
    const uint32_t bits = float_bits(std::abs(x));
    words[kMagnitudeAmax] = std::max<uint64_t>(words[kMagnitudeAmax], bits);
    ++words[kMagnitudeFirstBin + magnitude_bin(bits)];
  }
  return words;
}

std::vector<float> values_of(const Scene& s, const std::vector<float>& x, int64_t heads,
                             int64_t kv_head) {
  std::vector<float> values;
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t head = i / s.head_dim % heads;
    if (head / (heads / s.n_kv_heads) == kv_head) values.push_back(x[i]);
  }
  return values;
}

void check_magnitudes(const Scene& s, const Outcome& out) {
  std::vector<uint64_t> expected;
  const std::vector<float>* parts[] = {&out.q, &out.k, &out.v};
  for (int part = 0; part < 3; ++part) {
    for (int64_t head = 0; head < s.n_kv_heads; ++head) {
      const std::vector<uint64_t> words =
          counted(values_of(s, *parts[part], part == 0 ? s.n_heads : s.n_kv_heads, head));
      expected.insert(expected.end(), words.begin(), words.end());
    }
  }
  CHECK(out.magnitudes == expected);
}

}  // namespace

TEST_CASE("rope_append: rotates, rounds, observes and stores, for every type of cache") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType round_to : {DType::f32, DType::f16, DType::bf16}) {
      for (const DType cache : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3,
                                DType::f8_e4m3fnuz, DType::f8_e5m2, DType::f8_e5m2fnuz}) {
        for (const int64_t head_dim : {2, 6, 64, 150}) {
          CAPTURE(std::string(cpu_isa_name(isa)));
          CAPTURE(std::string(dtype_name(round_to)));
          CAPTURE(std::string(dtype_name(cache)));
          CAPTURE(head_dim);
          Scene s;
          s.head_dim = head_dim;
          s.round_to = round_to;
          s.cache = cache;
          s.randomise(21);
          const auto backend = make_cpu_backend(2, isa);
          const Outcome out = run(*backend, s);
          CHECK(out.q == rotated(s, s.q, s.n_heads));
          CHECK(out.k == rotated(s, s.k, s.n_kv_heads));
          CHECK(out.v == all_rounded(s.v, round_to));
          check_cache(s, out.k_cache, out.k, s.k_scale);
          check_cache(s, out.v_cache, out.v, s.v_scale);
          check_magnitudes(s, out);
        }
      }
    }
  }
}

TEST_CASE("rope_append: rotates a part of a head, and neighbours") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType round_to : {DType::f32, DType::f16}) {
      for (const int64_t rotary_dim : {2, 6, 30, 64}) {
        for (const RopePairs pairs : {RopePairs::halves, RopePairs::neighbours}) {
          CAPTURE(std::string(cpu_isa_name(isa)));
          CAPTURE(rotary_dim);
          Scene s;
          s.head_dim = 64;
          s.rotary_dim = rotary_dim;
          s.pairs = pairs;
          s.round_to = round_to;
          s.randomise(23);
          const Outcome out = run(*make_cpu_backend(2, isa), s);
          CHECK(out.q == rotated(s, s.q, s.n_heads));
          CHECK(out.k == rotated(s, s.k, s.n_kv_heads));
          check_cache(s, out.k_cache, out.k, s.k_scale);
          check_magnitudes(s, out);
        }
      }
    }
  }
}

TEST_CASE("rope_append: counts NaN and infinity apart, and saturates in an fp8 cache") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    Scene s;
    s.cache = DType::f8_e4m3;
    s.randomise(22);
    s.v[1] = NAN;
    s.v[2] = -INFINITY;
    s.v[3] = 1e30f;
    const auto backend = make_cpu_backend(2, isa);
    const Outcome out = run(*backend, s);
    const uint64_t* head = out.magnitudes.data() + 2 * s.n_kv_heads * kMagnitudeWords;
    CHECK(head[kMagnitudeNonfinite] == 2);
    CHECK(head[kMagnitudeAmax] == float_bits(1e30f));
    // Row 0 is in slot 11: page 2, offset 3.
    const std::byte* stored =
        out.v_cache.data() + ((2 * s.n_kv_heads) * Scene::kPageSize + 3) * s.head_dim;
    CHECK(static_cast<int>(stored[1]) == 0x7F);
    CHECK(static_cast<int>(stored[2]) == 0xFE);
    CHECK(static_cast<int>(stored[3]) == 0x7E);
  }
}

TEST_CASE("rope_append: leaves magnitudes alone when none are asked for") {
  Scene s;
  s.observe = false;
  s.randomise(23);
  const Outcome out = run(*make_cpu_backend(2), s);
  CHECK(std::all_of(out.magnitudes.begin(), out.magnitudes.end(),
                    [](uint64_t word) { return word == 0; }));
}

TEST_CASE("rope_append: has the same bits for any number of threads and instruction set") {
  Scene s;
  s.n = 300;
  s.head_dim = 64;
  s.round_to = DType::f16;
  s.positions.assign(300, 0);
  s.slots.assign(300, 0);
  s.pages = 75;
  for (int32_t row = 0; row < 300; ++row) s.positions[row] = row % Scene::kMaxPositions;
  for (int32_t row = 0; row < 300; ++row) s.slots[row] = 299 - row;
  s.randomise(24);
  const Outcome expected = run(*make_cpu_backend(1, CpuIsa::portable), s);
  for (const CpuIsa isa : test::available_isas()) {
    for (const int threads : {1, 2, 3, 4}) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(threads);
      const bool same = run(*make_cpu_backend(threads, isa), s) == expected;
      CHECK(same);
    }
  }
}

}  // namespace fp8kv
