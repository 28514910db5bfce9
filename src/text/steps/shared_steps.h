// Parts of a tokenizer.json that can be steps of several kinds.
#pragma once

#include "json/json.h"

namespace fp8kv {

// A Metaspace, which is a pre-tokenizer and a decoder.
struct MetaspaceOptions {
  enum class Prepend { always, first, never };
  char32_t replacement;
  Prepend prepend;
  bool split;
};
MetaspaceOptions metaspace_from(const Json& part);

// Throws unless `part` is a ByteLevel with its known keys, which a pre-tokenizer, a post-processor
// and a decoder can be.
void check_byte_level(const Json& part);

}  // namespace fp8kv
