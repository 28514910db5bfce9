// Reading the typed parts of a tokenizer.json, such as {"type": "ByteLevel", ...}.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "json/json.h"

namespace fp8kv {

// Throws for a member that is not among `known`: it could change what the part means.
void check_keys(const Json& part, std::initializer_list<std::string_view> known);

// Throws that the type of `part` is not among `supported`, and lists them.
[[noreturn]] void fail_unsupported(const Json& part, const std::string& type,
                                   std::initializer_list<std::string_view> supported);

// The member `key`, which must be an array.
Json array_at(const Json& part, std::string_view key);

// The one character that the string member `key` is.
char32_t character_at(const Json& part, std::string_view key);

// A number as the tokenizers library reads it, which may be one unit in the last place from the
// nearest double: sums that are equal there have to be equal here.
double library_double(const Json& number);

}  // namespace fp8kv
