// The "post_processor" of a tokenizer.json: the special tokens before and after a text.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "json/json.h"

namespace fp8kv {

struct Template {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;

  // `end_id`: one past the largest id. Throws for an unsupported kind, for unknown special tokens,
  // and for templates that do not use the text exactly once.
  static Template from_json(const std::optional<Json>& post_processor, int32_t end_id);
};

}  // namespace fp8kv
