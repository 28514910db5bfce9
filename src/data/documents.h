// The documents of one file, one after the other: a text, or records. Knows neither their forms nor
// windows.
#pragma once

#include <functional>
#include <string_view>

#include "data/data_source.h"
#include "json/json.h"

namespace fp8kv {

struct DocumentVisitor {
  // Whether another record is wanted; asked where there is one.
  std::function<bool()> more;
  std::function<void(std::string_view text)> text;
  std::function<void(const Json& record)> record;
};

// Throws for a broken line, with its number, and for one JSON document of more than a GiB.
void for_each_document(const DataSource& source, const DocumentVisitor& visit);

}  // namespace fp8kv
