// Sizes of memory as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fp8kv {

// "80GiB", "79.6GiB", "80G" (binary, as in 80GiB), "80GB" (decimal), "512MiB", "85899345920".
// nullopt for anything else, for zero, and from 2^60 on. K, M, G and T, in either case.
std::optional<uint64_t> bytes_from_text(std::string_view text);

// For messages.
inline constexpr const char* kByteSizeForms =
    "80GiB, 80G (the same), 80GB (decimal; K, M and T likewise) or a number of bytes";

}  // namespace fp8kv
