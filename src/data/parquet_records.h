// Rows of a Parquet file as records.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "json/json.h"

namespace fp8kv {

// With the columns of the first form of records that the file has, or `column`, and with what chat
// templates take besides: others are not read. Calls `record` until it returns false. Throws, with
// the names of the columns, where none of a form is there; see ParquetRows for the rest.
void read_parquet(std::string_view bytes, const std::string& label, const std::string& column,
                  const std::function<bool(const Json& record)>& record);

}  // namespace fp8kv
