// Visits the documents of one file in order: one text, or records. Knows nothing of record forms or
// windows.
#pragma once

#include <functional>

#include "data/data_source.h"
#include "data/text_stream.h"
#include "json/json.h"

namespace fp8kv {

struct DocumentVisitor {
  // Whether another record is wanted. Only called if there is one.
  std::function<bool()> more;
  std::function<void(TextStream& text)> text;
  std::function<void(const Json& record)> record;
};

// Throws for a broken record, with its number, and for a JSON document of more than a GiB. If the
// source names a column, records are those of with_column().
void for_each_document(const DataSource& source, const DocumentVisitor& visit);

}  // namespace fp8kv
