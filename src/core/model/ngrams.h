// Embeddings of n-grams (Qwen 4 Exp): which rows of its tables a token gets.
// Source: Qwen4ExpTextNGramEmbedding in transformers 5.24, and vLLM 0.32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fp8kv {

// Some layers look up the n-grams that end at a token, and add a function of the rows to all
// streams. An n-gram of each length from 2 to `longest` is hashed into `heads` tables.
struct NgramConfig {
  int64_t longest = 0;
  int64_t heads = 0;
  int64_t dim = 0;         // of a token's row: the rows of all tables, one behind the other
  int64_t least_rows = 0;  // of a table: each has another prime number of rows, from this on
  int64_t multiple = 1;  // the rows of a layer's tables together are filled up to a multiple of it
  int64_t files = 1;     // tensors that files have them in, with equal numbers of rows
  int64_t seed = 0;      // of the hashes
  int64_t vocab_size = 0;
  int32_t gap = 0;         // the token that stands before a text; nothing before it is seen
  int64_t conv_width = 0;  // of a convolution over every `longest`-th token
  std::vector<int64_t> layers = {};  // that have such tables, ascending
  std::vector<int64_t> rows = {};    // of the tables of each of these layers: NgramTables::rows

  int64_t tables() const { return (longest - 1) * heads; }  // of a layer
  int64_t row_dim() const { return dim / tables(); }        // of a row of a table
  bool has(int64_t layer) const;
  int64_t rows_of(int64_t layer) const;  // REQUIRES has(layer)
  bool operator==(const NgramConfig&) const = default;
};

// The tables of one layer.
class NgramTables {
 public:
  // REQUIRES config.has(layer); `config` outlives this.
  NgramTables(const NgramConfig& config, int64_t layer);

  int64_t rows() const { return rows_; }  // of all tables, filled up
  std::span<const int64_t> factors() const { return factors_; }
  std::span<const int64_t> sizes() const { return sizes_; }    // the rows of each table
  std::span<const int64_t> begins() const { return begins_; }  // the first row of each table

  // Appends the row of each table, counted over all tables.
  //   newest_first [1 to longest]: the token, then those before it as far as there are any
  void add_rows(std::span<const int32_t> newest_first, std::vector<int64_t>& out) const;

 private:
  const NgramConfig& config_;
  std::vector<int64_t> factors_;  // [longest]: of the token, and of each before it
  std::vector<int64_t> sizes_;    // [tables]
  std::vector<int64_t> begins_;   // [tables]
  int64_t rows_ = 0;
};

}  // namespace fp8kv
