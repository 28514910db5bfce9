// SHA-256 of whole blocks with the processor's SHA instructions, if it has them. They are about
// five times as fast as portable code, which matters for states and data files of many GB.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fp8kv {

// Whether this processor has SHA instructions.
bool has_sha256_instructions();

// Adds blocks of 64 bytes to the state: eight words in the order of FIPS 180-4. REQUIRES
// has_sha256_instructions().
void add_sha256_blocks(uint32_t* state, const uint8_t* blocks, size_t n_blocks);

}  // namespace fp8kv
