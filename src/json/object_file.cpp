#include "json/object_file.h"

#include "base/error.h"

namespace fp8kv {

std::optional<Json> find_object(const std::filesystem::path& path, JsonNumbers numbers,
                                uint64_t max_bytes) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  Json json = Json::read(path, numbers, max_bytes);
  if (!json.is_object()) fail(json.where(), ": is ", json.brief(), ", expected an object");
  return json;
}

}  // namespace fp8kv
