// UTF-8 decoding byte by byte. Surrogates and overlong forms are not accepted.
#pragma once

#include <cstddef>
#include <string_view>

namespace fp8kv {

// The length of the well-formed sequence at the front of `s`, or 0. REQUIRES `s` not to be empty.
size_t utf8_length(std::string_view s);

}  // namespace fp8kv
