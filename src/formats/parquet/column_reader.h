// The entries of one column of a group of rows, one after the other. Holds a page and the
// dictionary.
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
  // `leaf` outlives this; `largest_page`: bytes of a page, unpacked. Throws for what is not read
  // here: other files, encryption, codecs by their name, types without a form as text or number.
  ColumnReader(std::string_view file, const ParquetChunk& chunk, const ParquetNode& leaf,
               uint64_t largest_page);
  ColumnReader(const ColumnReader&) = delete;
  ColumnReader& operator=(const ColumnReader&) = delete;

  const ParquetNode& leaf() const { return leaf_; }

  // False at the end. All below REQUIRE that there is an entry.
  bool has_entry();
  int rep() const { return rep_; }
  int def() const { return def_; }
  bool has_value() const { return def_ == leaf_.max_def; }
  // Of the entry; call once. Valid until the next entry is asked for.
  ParquetValue value() { return values_.next(); }
  // Goes to the next entry. REQUIRES the value of this one to be read, where it has one.
  void pop() { has_entry_ = false; }
  // Goes over so many rows. Where a row has one entry, pages that hold nothing else are not
  // unpacked.
  void skip_rows(uint64_t rows);

 private:
  struct PageHeader;
  PageHeader read_header();
  // Of a data page with at most `skip` entries nothing is read but how many they are.
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
  uint64_t left_;  // entries in pages to come
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
