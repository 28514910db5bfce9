// Parts of a tokenizer.json that can appear as several kinds of steps.
#pragma once

#include "json/json.h"

namespace fp8kv {

// A Metaspace, which can be a pre-tokenizer or a decoder.
struct MetaspaceOptions {
  enum class Prepend { always, first, never };
  char32_t replacement;
  Prepend prepend;
  bool split;
};
MetaspaceOptions metaspace_from(const Json& part);

// Throws unless `part` is a ByteLevel with known keys. It can be a pre-tokenizer, a post-processor
// or a decoder.
void check_byte_level(const Json& part);

}  // namespace fp8kv
