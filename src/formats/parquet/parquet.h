// Reads rows of Parquet files as JSON text, one row after the other, from the requested columns
// only. Supports what writers of data sets use, and names anything unsupported.
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
  uint64_t row_values = uint64_t(1) << 24;  // values of one column in one row
};

class ParquetFile {
 public:
  // Throws like read_parquet_footer, with `label` in front. REQUIRES `bytes` to outlive this
  // object.
  ParquetFile(std::string_view bytes, std::string label, const ParquetLimits& limits = {});

  const std::string& label() const { return label_; }
  uint64_t rows() const { return footer_.rows; }
  // The names of the columns as people see them: the root of each tree.
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
  // Selects the columns with these names, in the order of the file. REQUIRES `file` to outlive this
  // object.
  ParquetRows(const ParquetFile& file, const std::vector<std::string>& columns);
  ~ParquetRows();

  // Reads the next row; false at the end. Throws for damaged or unsupported data, with the number
  // of the row (from 1) and the column.
  bool next();
  // Skips this many rows, at most to the end, and reads as little of them as possible.
  void skip(uint64_t rows);
  // The row as a JSON object of its columns. Lists become arrays, and groups become objects.
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
