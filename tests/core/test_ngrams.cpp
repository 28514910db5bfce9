#include <vector>

#include <doctest/doctest.h>

#include "core/model/ngrams.h"

namespace fp8kv {

// Rows that Qwen4ExpTextNGramEmbedding of transformers 5.24 looks up: the third layer of the config
// of the golden qwen4-exp, where token 46 ends texts.
TEST_CASE("ngrams: rows of tables are transformers', and no n-gram reaches over a gap") {
  NgramConfig config{.longest = 3,
                     .heads = 2,
                     .dim = 12,
                     .least_rows = 50,
                     .multiple = 8,
                     .files = 4,
                     .seed = 1234,
                     .vocab_size = 77,
                     .gap = 46,
                     .conv_width = 4,
                     .layers = {2}};
  const NgramTables tables(config, 2);
  CHECK(tables.rows() == 240);
  const std::vector<int32_t> ids = {5, 7, 46, 46, 9, 11, 76, 0};
  std::vector<int64_t> rows;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::vector<int32_t> newest_first;
    for (size_t back = 0; back < 3 && back <= i; ++back) newest_first.push_back(ids[i - back]);
    tables.add_rows(newest_first, rows);
  }
  CHECK(rows == std::vector<int64_t>{50,  59,  136, 203, 48,  69,  116, 233, 52,  66, 169,
                                     234, 19,  84,  130, 226, 28,  90,  151, 188, 36, 65,
                                     150, 207, 32,  100, 130, 208, 7,   59,  147, 236});
}

TEST_CASE("ngrams: each layer has primes and factors of its own") {
  NgramConfig config{.longest = 2,
                     .heads = 2,
                     .dim = 4,
                     .least_rows = 10,
                     .seed = 1,
                     .vocab_size = 100,
                     .layers = {1, 5}};
  const NgramTables first(config, 1), second(config, 5);
  CHECK(first.rows() == 11 + 13);
  CHECK(second.rows() == 17 + 19);
  std::vector<int64_t> rows, others;
  first.add_rows(std::vector<int32_t>{3, 4}, rows);
  second.add_rows(std::vector<int32_t>{3, 4}, others);
  CHECK(rows != others);
}

}  // namespace fp8kv
