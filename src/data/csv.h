// Records of comma-separated values (RFC 4180), or of values with tabs between them, as JSON
// objects of strings by the names of their columns. Guesses neither separators nor types.
#pragma once

#include <functional>
#include <string>

#include "data/text_stream.h"
#include "json/json.h"

namespace fp8kv {

// The first record names the columns. Quoted fields may hold separators, newlines and, doubled,
// quotes; a line ends with LF or CRLF; empty lines are passed over. Calls `record` until it returns
// false. Throws, with the number of the record from 1 and its line, for a record of more or fewer
// fields, a quote within a field or one that is not closed, and columns of one name.
void read_csv(TextStream& text, char separator, const std::string& label,
              const std::function<bool(const Json& record)>& record);

}  // namespace fp8kv
