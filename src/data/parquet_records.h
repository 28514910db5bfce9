// Reads the rows of a Parquet file as records.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/parquet/parquet.h"
#include "json/json.h"

namespace fp8kv {

class ParquetRecords {
 public:
  // Reads only `column`, or the columns of the first matching record form, and those that chat
  // templates take besides. REQUIRES `bytes` to outlive this object. Throws, with the names of the
  // columns, if no form matches. ParquetRows says what else is thrown.
  ParquetRecords(std::string_view bytes, const std::string& label, const std::string& column);

  // Returns nullopt at the end.
  std::optional<Json> next();
  void skip(uint64_t records) { rows_.skip(records); }
  uint64_t count() const { return file_.rows(); }
  size_t bytes() const { return rows_.json().size(); }  // of the last record, as JSON
  uint64_t taken() const { return rows_.number(); }     // records returned or skipped

 private:
  ParquetFile file_;
  ParquetRows rows_;
};

}  // namespace fp8kv
