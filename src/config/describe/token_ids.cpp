#include "config/describe/token_ids.h"

#include "base/error.h"

namespace fp8kv {

int32_t parse_token_id(const Json& id) {
  const int64_t value = id.as_int();
  if (value < 0 || value > INT32_MAX) {
    fail(id.where(), ": is ", id.brief(), ", expected a token id");
  }
  return static_cast<int32_t>(value);
}

std::vector<int32_t> parse_token_ids(const Json& ids) {
  if (!ids.is_array()) return {parse_token_id(ids)};
  std::vector<int32_t> out;
  for (size_t i = 0; i < ids.size(); ++i) out.push_back(parse_token_id(ids[i]));
  return out;
}

}  // namespace fp8kv
