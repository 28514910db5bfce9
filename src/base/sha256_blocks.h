// SHA-256 of whole blocks by the processor's own instructions for it, where it has them: some five
// times as fast as portable code, which a state or a data file of many GB feels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fp8kv {

// Whether this processor has them.
bool has_sha256_instructions();

// Adds blocks of 64 bytes to the state, eight words as FIPS 180-4 numbers them.
// REQUIRES has_sha256_instructions().
void add_sha256_blocks(uint32_t* state, const uint8_t* blocks, size_t n_blocks);

}  // namespace fp8kv
