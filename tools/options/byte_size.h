// Sizes of memory as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fp8kv {

// Bytes of "80GiB", "79.6GiB", "80G" (binary, like 80GiB), "80GB" (decimal), "512MiB" or
// "85899345920". The prefixes are K, M, G and T, in either case. nullopt for any other text, for
// zero, and for 2^60 bytes or more.
std::optional<uint64_t> bytes_from_text(std::string_view text);

// The forms that bytes_from_text takes, for error messages.
inline constexpr const char* kByteSizeForms =
    "80GiB, 80G (the same), 80GB (decimal; K, M and T likewise) or a number of bytes";

}  // namespace fp8kv
