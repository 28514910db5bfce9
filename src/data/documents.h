// The documents of one file, one after the other: a text, or records. Knows neither their forms nor
// windows.
#pragma once

#include <functional>

#include "data/data_source.h"
#include "data/text_stream.h"
#include "json/json.h"

namespace fp8kv {

struct DocumentVisitor {
  // Whether another record is wanted; asked where there is one.
  std::function<bool()> more;
  std::function<void(TextStream& text)> text;
  std::function<void(const Json& record)> record;
};

// Throws for a broken record, with its number, and for one JSON document of more than a GiB. Where
// the source names a column, records are those of with_column().
void for_each_document(const DataSource& source, const DocumentVisitor& visit);

}  // namespace fp8kv
