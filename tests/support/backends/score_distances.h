// Biases of attention's scores for distances, as numbers that every compute type has.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace fp8kv::test {

struct ScoreDistances {
  int64_t dim = 0;  // 0: scores have no such bias
  int64_t extent = 0;
  bool grows = false;  // with the position of a row

  static double state(int64_t sequence, int64_t position, int64_t head, int64_t j) {
    return static_cast<double>((sequence * 7 + position * 3 + head * 5 + j * 11) % 23 - 11) / 16;
  }
  static double bank(int64_t j, int64_t distance) {
    return static_cast<double>((j * 13 + distance * 7) % 29 - 14) / 8;
  }
  double growth(int64_t position) const {
    return grows ? 1 + static_cast<double>(position % 5) / 4 : 1;
  }

  // Returns the bias of token `t` in a head's scores, for the row at `position`.
  double bias(int64_t sequence, int64_t position, int64_t head, int64_t t) const {
    if (position - t >= extent) return 0;
    double sum = 0;
    for (int64_t j = 0; j < dim; ++j) {
      sum += state(sequence, position, head, j) * bank(j, position - t);
    }
    return growth(position) * sum;
  }
  // The most that roundings in f32 may change a bias, in units of f32: of `dim` sums, of the growth
  // and of two additions, each of numbers below dim * 2.5.
  double roundings() const { return static_cast<double>((dim + 3) * dim) * 2.5; }

  // rows: the sequence and the position of each.   [rows, n_heads, dim]
  std::vector<float> states(const std::vector<std::pair<int64_t, int64_t>>& rows,
                            int64_t n_heads) const {
    std::vector<float> all;
    for (const auto& [sequence, position] : rows) {
      for (int64_t head = 0; head < n_heads; ++head) {
        for (int64_t j = 0; j < dim; ++j) {
          all.push_back(static_cast<float>(state(sequence, position, head, j)));
        }
      }
    }
    return all;
  }
  std::vector<float> banks() const {  // [dim, extent]
    std::vector<float> all;
    for (int64_t j = 0; j < dim; ++j) {
      for (int64_t d = 0; d < extent; ++d) all.push_back(static_cast<float>(bank(j, d)));
    }
    return all;
  }
  std::vector<float> growths(int64_t positions) const {
    std::vector<float> all;
    for (int64_t i = 0; i < positions; ++i) all.push_back(static_cast<float>(growth(i)));
    return all;
  }
};

}  // namespace fp8kv::test
