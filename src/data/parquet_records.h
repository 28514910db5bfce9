// Rows of a Parquet file as records.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/parquet/parquet.h"
#include "json/json.h"

namespace fp8kv {

class ParquetRecords {
 public:
  // With the columns of the first form of records that the file has, or `column`, and with what
  // chat templates take besides: others are not read. REQUIRES `bytes` to outlive this. Throws,
  // with the names of the columns, where none of a form is there; see ParquetRows for the rest.
  ParquetRecords(std::string_view bytes, const std::string& label, const std::string& column);

  // nullopt at the end.
  std::optional<Json> next();
  void skip(uint64_t records) { rows_.skip(records); }
  uint64_t count() const { return file_.rows(); }
  size_t bytes() const { return rows_.json().size(); }  // of the last one, as JSON
  uint64_t taken() const { return rows_.number(); }     // or gone over

 private:
  ParquetFile file_;
  ParquetRows rows_;
};

}  // namespace fp8kv
