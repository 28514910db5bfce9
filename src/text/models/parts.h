// Reading the typed parts of a tokenizer.json, such as {"type": "ByteLevel", ...}.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "json/json.h"

namespace fp8kv {

// Throws for a member that is not in `known`, because it could change the meaning of the part.
void check_keys(const Json& part, std::initializer_list<std::string_view> known);

// Throws: the type of `part` is not in `supported`. Lists the supported types.
[[noreturn]] void fail_unsupported(const Json& part, const std::string& type,
                                   std::initializer_list<std::string_view> supported);

// Returns the member `key`. Throws if it is no array.
Json array_at(const Json& part, std::string_view key);

// Returns the string member `key`, which must be a single character.
char32_t character_at(const Json& part, std::string_view key);

// Reads a number like the tokenizers library, which may be off by one unit in the last place. Sums
// that are equal there must be equal here.
double library_double(const Json& number);

}  // namespace fp8kv
