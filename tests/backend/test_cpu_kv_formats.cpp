// Caches of every format on the CPU: their stored bytes, and attention over them.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/cache/kv_rows.h"
#include "core/numbers/hadamard.h"
#include "support/backends/compare.h"
#include "support/backends/format_scene.h"

namespace fp8kv {
namespace {

using test::FormatScene;

std::vector<float> row_of(const FormatScene& s, const std::vector<float>& all, int64_t heads,
                          int64_t token, int64_t head) {
  const int64_t dim = std::ssize(all) / (s.tokens * heads);
  const auto begin = all.begin() + (token * heads + head) * dim;
  return {begin, begin + dim};
}

// The bytes of a row, by core/cache/kv_rows.h and the codecs of elements.
std::vector<uint8_t> stored(const KvRow& row, std::vector<float> x, float scale) {
  if (kv_spec(row.format).rotated) hadamard(x.data(), row.dim, false);
  std::vector<uint8_t> bytes(static_cast<size_t>(row.bytes()));
  if (!kv_spec(row.format).in_elements()) {
    const auto value = [&](int32_t i) { return x[static_cast<size_t>(i)]; };
    for (int32_t part = 0; part < row.parts(); ++part) {
      encode_part(row, part, value, scale, bytes.data());
    }
    return bytes;
  }
  for (int32_t i = 0; i < row.dim; ++i) {
    const float value = x[static_cast<size_t>(i)];
    if (row.format == KvFormat::f32) store_f32(value, &bytes[static_cast<size_t>(4 * i)]);
    if (row.format == KvFormat::f16) store_u16(f16_from_float(value), &bytes[2 * size_t(i)]);
    if (row.format == KvFormat::bf16) store_u16(bf16_from_float(value), &bytes[2 * size_t(i)]);
    uint8_t& code = bytes[static_cast<size_t>(i)];
    if (row.format == KvFormat::e4m3fn) code = fp8_encode<Fp8Format::e4m3fn>(value / scale);
    if (row.format == KvFormat::e4m3fnuz) code = fp8_encode<Fp8Format::e4m3fnuz>(value / scale);
    if (row.format == KvFormat::e5m2) code = fp8_encode<Fp8Format::e5m2>(value / scale);
  }
  return bytes;
}

// The values of a cache row, in double.
std::vector<double> worth(const KvRow& row, const std::vector<uint8_t>& bytes, double scale) {
  std::vector<float> values;
  for (int32_t i = 0; i < row.dim; ++i) values.push_back(row_value(row, bytes.data(), i));
  double factor = kv_spec(row.format).stored_scale ? scale : 1.0;
  if (kv_spec(row.format).rotated) {
    hadamard(values.data(), row.dim, true);
    factor /= hadamard_block(row.dim);
  }
  std::vector<double> all;
  for (const float value : values) all.push_back(double{value} * factor);
  return all;
}

struct Rows {
  std::vector<std::vector<std::vector<double>>> k, v;  // [kv head][token]
};

Rows rows_of(const FormatScene& s) {
  const KvRow k_row{s.cache.k, static_cast<int32_t>(s.head_dim), 0};
  const KvRow v_row{s.cache.v, static_cast<int32_t>(s.v_dim()), 0};
  Rows rows{std::vector<std::vector<std::vector<double>>>(2), {}};
  rows.v = rows.k;
  const std::vector<float> k = s.k(), v = s.v();
  for (size_t head = 0; head < 2; ++head) {
    for (int64_t token = 0; token < s.tokens; ++token) {
      const auto at = static_cast<int64_t>(head);
      const auto of_k = stored(k_row, row_of(s, k, 2, token, at), s.kKScale);
      const auto of_v = stored(v_row, row_of(s, v, 2, token, at), s.kVScale);
      rows.k[head].push_back(worth(k_row, of_k, s.kKScale));
      rows.v[head].push_back(worth(v_row, of_v, s.kVScale));
    }
  }
  return rows;
}

// Attention in double over the rows' values.
std::vector<double> attention_over(const FormatScene& s, const Rows& rows) {
  const std::vector<float> q = s.q();
  std::vector<double> out;
  for (int64_t token = 0; token < s.tokens; ++token) {
    for (int64_t head = 0; head < s.n_heads; ++head) {
      const auto kv_head = static_cast<size_t>(head * s.n_kv_heads / s.n_heads);
      const std::vector<float> query = row_of(s, q, s.n_heads, token, head);
      const int64_t first = s.window > 0 ? std::max<int64_t>(0, token + 1 - s.window) : 0;
      std::vector<double> weights, sums(static_cast<size_t>(s.v_dim()));
      double most = -INFINITY, total = 0;
      for (int64_t t = first; t <= token; ++t) {
        double score = 0;
        const std::vector<double>& key = rows.k[kv_head][static_cast<size_t>(t)];
        for (size_t d = 0; d < key.size(); ++d) score += double{query[d]} * key[d];
        weights.push_back(score * double{s.kScoreScale});
        most = std::max(most, weights.back());
      }
      for (double& weight : weights) total += weight = std::exp(weight - most);
      for (int64_t t = first; t <= token; ++t) {
        const double weight = weights[static_cast<size_t>(t - first)] / total;
        const std::vector<double>& value = rows.v[kv_head][static_cast<size_t>(t)];
        for (size_t d = 0; d < value.size(); ++d) sums[d] += weight * value[d];
      }
      out.insert(out.end(), sums.begin(), sums.end());
    }
  }
  return out;
}

}  // namespace

TEST_CASE("cpu kv formats: pools hold the rows of the format, in their pages") {
  const auto backend = make_cpu_backend(2);
  for (const CacheType& cache : test::made_caches()) {
    const FormatScene s{.cache = cache, .own_v_dim = 16};
    CAPTURE(format_name(cache.k));
    CAPTURE(format_name(cache.v));
    const test::FormatOutcome found = run_format(*backend, s);
    for (int64_t token = 0; token < s.tokens; ++token) {
      for (int64_t head = 0; head < s.n_kv_heads; ++head) {
        const int64_t place =
            (s.page(token / s.kPageSize) * s.n_kv_heads + head) * s.kPageSize + token % s.kPageSize;
        const auto row = [&](const std::vector<uint8_t>& pool, const std::vector<uint8_t>& like) {
          const auto begin = pool.begin() + place * std::ssize(like);
          return std::vector<uint8_t>(begin, begin + std::ssize(like));
        };
        const auto k = stored({cache.k, 32, 0}, row_of(s, s.k(), 2, token, head), s.kKScale);
        const auto v = stored({cache.v, 16, 0}, row_of(s, s.v(), 2, token, head), s.kVScale);
        REQUIRE(row(found.k, k) == k);
        REQUIRE(row(found.v, v) == v);
      }
    }
  }
}

TEST_CASE("cpu kv formats: attention equals that over the rows' values in double precision") {
  for (const CpuIsa isa : test::available_isas()) {
    const auto backend = make_cpu_backend(2, isa);
    for (const CacheType& cache : test::made_caches()) {
      for (const int64_t head_dim : {32, 48}) {
        const bool odd = head_dim == 48;  // a window, and V narrower than K
        const FormatScene s{
            .cache = cache, .head_dim = head_dim, .own_v_dim = odd ? 32 : 0, .window = odd ? 9 : 0};
        CAPTURE(std::string(cpu_isa_name(isa)));
        CAPTURE(format_name(cache.k));
        CAPTURE(format_name(cache.v));
        CAPTURE(head_dim);
        const std::vector<double> expected = attention_over(s, rows_of(s));
        test::expect_close(run_format(*backend, s).attended, expected,
                           std::vector<double>(expected.size(), s.allowed_error()));
      }
    }
  }
}

TEST_CASE("cpu kv formats: the same bits for any number of threads") {
  const FormatScene s{.cache = KvFormat::int4_per_token_head, .tokens = 600};
  const test::FormatOutcome one = run_format(*make_cpu_backend(1), s);
  CHECK(run_format(*make_cpu_backend(3), s).attended == one.attended);
}

}  // namespace fp8kv
