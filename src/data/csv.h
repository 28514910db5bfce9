// Reads comma-separated values (RFC 4180), or values with tabs between them. Each record becomes a
// JSON object of strings, with the columns' names as keys. Guesses neither separators nor types.
#pragma once

#include <functional>
#include <string>

#include "data/text_stream.h"
#include "json/json.h"

namespace fp8kv {

// The first record names the columns. Quoted fields may hold separators, newlines and doubled
// quotes. Lines end with LF or CRLF; empty lines are skipped. Calls `record` until it returns
// false.
// Throws for a wrong number of fields, for a quote within a field, for an unclosed quote, and for
// two columns of the same name. The message has the record's line, and its number from 1.
void read_csv(TextStream& text, char separator, const std::string& label,
              const std::function<bool(const Json& record)>& record);

}  // namespace fp8kv
