// Rows of Parquet files, as text that JSON readers take: only the columns that are asked for, one
// row after the other. Reads what writers of data sets write; what it does not read, it names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/parquet/footer.h"

namespace fp8kv {

struct ParquetLimits {
  uint64_t page_bytes = uint64_t(1) << 30;
  uint64_t row_bytes = uint64_t(1) << 30;
  uint64_t row_values = uint64_t(1) << 24;  // of a column in one row
};

class ParquetFile {
 public:
  // REQUIRES `bytes` to outlive this. Throws as read_parquet_footer does, behind `label`.
  ParquetFile(std::string_view bytes, std::string label, const ParquetLimits& limits = {});

  const std::string& label() const { return label_; }
  uint64_t rows() const { return footer_.rows; }
  // Names of the columns as people see them: of each tree the root.
  std::vector<std::string> columns() const;

 private:
  friend class ParquetRows;
  std::string_view bytes_;
  std::string label_;
  ParquetLimits limits_;
  ParquetFooter footer_;
};

class ParquetRows {
 public:
  // The columns of these names, in the order of the file. REQUIRES `file` to outlive this.
  ParquetRows(const ParquetFile& file, const std::vector<std::string>& columns);
  ~ParquetRows();

  // False at the end. Throws, with the number of the row from 1 and the column, for what is damaged
  // or not read here.
  bool next();
  // Goes over so many rows, reading as little of them as can be; no further than to the end.
  void skip(uint64_t rows);
  // Of the row: a JSON object with the columns in it. Lists are arrays, groups are objects.
  const std::string& json() const { return json_; }
  uint64_t number() const { return number_; }

 private:
  struct Group;
  void open_group();
  void open_next_group();

  const ParquetFile& file_;
  std::vector<const ParquetNode*> columns_;
  std::unique_ptr<Group> group_;
  size_t next_group_ = 0;
  uint64_t number_ = 0;
  std::string json_;
};

}  // namespace fp8kv
