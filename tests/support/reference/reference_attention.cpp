#include "support/reference/reference_attention.h"

#include <algorithm>
#include <cmath>

#include "support/reference/reference_formulas.h"

namespace fp8kv::test {
namespace {

using Rows = std::vector<std::vector<double>>;
using Vector = std::vector<double>;

Vector attend(const Rows& q, const Rows& k, const Rows& v, size_t position, int64_t window,
              const ModelConfig& config) {
  const auto size = static_cast<size_t>(config.head_dim());
  const auto heads = static_cast<size_t>(config.n_heads);
  const size_t share = heads / static_cast<size_t>(config.n_kv_heads());
  const size_t first = window > 0 && position + 1 > static_cast<size_t>(window)
                           ? position + 1 - static_cast<size_t>(window)
                           : 0;
  Vector out(heads * size, 0.0);
  for (size_t head = 0; head < heads; ++head) {
    const size_t kv = head / share;
    Vector weight;
    for (size_t j = first; j <= position; ++j) {
      double dot = 0;
      for (size_t i = 0; i < size; ++i) dot += q[position][head * size + i] * k[j][kv * size + i];
      const double own = config.block.attention_scale;
      dot *= own == 0 ? 1 / std::sqrt(static_cast<double>(size)) : own;
      weight.push_back(capped(dot, config.block.score_cap));
    }
    const double most = *std::max_element(weight.begin(), weight.end());
    double sum = 0;
    for (double& w : weight) sum += w = std::exp(w - most);
    for (size_t j = first; j <= position; ++j) {
      for (size_t i = 0; i < size; ++i) {
        out[head * size + i] += weight[j - first] / sum * v[j][kv * size + i];
      }
    }
  }
  return out;
}

Rows attend_rows(const Rows& q, const Rows& k, const Rows& v, const ReferenceHeads& heads) {
  Rows attended;
  for (size_t position = 0; position < q.size(); ++position) {
    attended.push_back(attend(q, k, v, position, heads.window, heads.config));
  }
  return attended;
}

// The rows of V with the halves of their heads exchanged.
Rows exchanged(Rows v) {
  for (Vector& row : v) {
    std::rotate(row.begin(), row.begin() + std::ssize(row) / 2, row.end());
  }
  return v;
}

// own, other: what heads make of the V heads that their K heads are with, and of the other half.
Vector difference(const Vector& own, const Vector& other, const ReferenceHeads& heads) {
  const auto size = static_cast<size_t>(heads.config.head_dim());
  const size_t half = own.size() / 2;
  Vector out;
  for (size_t at = 0; at < half; at += size) {
    Vector made(2 * size);
    double squares = 0;
    for (size_t i = 0; i < size; ++i) {
      made[i] = own[at + i] - heads.lambda * other[half + at + i];
      made[size + i] = other[at + i] - heads.lambda * own[half + at + i];
    }
    for (const double value : made) squares += value * value;
    const double mean = squares / static_cast<double>(2 * size);
    for (const double value : made) {
      out.push_back((1 - heads.first_lambda) * value / std::sqrt(mean + heads.config.norm_eps));
    }
  }
  return out;
}

}  // namespace

Rows attend_all(const Rows& q, const Rows& k, const Rows& v, const ReferenceHeads& heads) {
  Rows attended = attend_rows(q, k, v, heads);
  if (!heads.config.block.differential) return attended;
  const Rows others = attend_rows(q, k, exchanged(v), heads);
  for (size_t row = 0; row < attended.size(); ++row) {
    attended[row] = difference(attended[row], others[row], heads);
  }
  return attended;
}

}  // namespace fp8kv::test
