// Reads the entries of one column in a row group, one after the other. Keeps one page and the
// dictionary in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/parquet/footer.h"
#include "formats/parquet/levels.h"
#include "formats/parquet/values.h"

namespace fp8kv {

class ColumnReader {
 public:
  // `leaf` must outlive this reader. `largest_page` is the limit for an unpacked page in bytes.
  // Throws for columns in other files, encryption, unsupported codecs (by name), and types that are
  // not text or plain numbers.
  ColumnReader(std::string_view file, const ParquetChunk& chunk, const ParquetNode& leaf,
               uint64_t largest_page);
  ColumnReader(const ColumnReader&) = delete;
  ColumnReader& operator=(const ColumnReader&) = delete;

  const ParquetNode& leaf() const { return leaf_; }

  // False at the end of the column. The functions below REQUIRE an entry.
  bool has_entry();
  int rep() const { return rep_; }
  int def() const { return def_; }
  bool has_value() const { return def_ == leaf_.max_def; }
  // The value of the entry. Call it once; it is valid until the next entry is read.
  ParquetValue value() { return values_.next(); }
  // Moves to the next entry. REQUIRES that the value of this one was read, if it has one.
  void pop() { has_entry_ = false; }
  // Skips this many rows. If every row has one entry, pages that are skipped whole are not
  // unpacked.
  void skip_rows(uint64_t rows);

 private:
  struct PageHeader;
  PageHeader read_header();
  // Reads the next page and returns 0. A data page with at most `skip` entries is not unpacked:
  // then returns their number.
  uint64_t read_page(uint64_t skip);
  void read_dictionary(const PageHeader& header, std::string_view packed);
  void read_data(const PageHeader& header, std::string_view packed);
  void read_data_2(const PageHeader& header, std::string_view packed);
  void start_values(int64_t encoding, std::string_view bytes);
  std::string unpack(std::string_view packed, uint64_t size) const;

  std::string_view file_;
  const ParquetChunk& chunk_;
  const ParquetNode& leaf_;
  uint64_t largest_page_;
  uint64_t at_;    // of the next page
  uint64_t left_;  // entries in later pages
  uint64_t page_left_ = 0;
  bool has_entry_ = false;
  int rep_ = 0, def_ = 0;
  std::string page_;
  std::string dictionary_bytes_;
  ParquetDictionary dictionary_;
  bool has_dictionary_ = false;
  RunReader reps_, defs_;
  ValueReader values_;
};

}  // namespace fp8kv
