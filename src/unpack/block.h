// One block of bytes whose unpacked size is known: a page of a columnar file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fp8kv {

enum class BlockPacking { none, snappy, gzip, zstd };

// Throws unless it unpacks to exactly `size` bytes; allocates about as much as there is.
std::string unpack_block(BlockPacking packing, std::string_view packed, size_t size);

// The raw format of Snappy, without frames.
std::string unpack_snappy(std::string_view packed, size_t size);

}  // namespace fp8kv
