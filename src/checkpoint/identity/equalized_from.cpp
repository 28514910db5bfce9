#include "checkpoint/identity/equalized_from.h"

#include "base/text.h"
#include "json/json.h"

namespace fp8kv {

std::optional<EqualizedFrom> equalized_from(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kEqualizeRecord;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Json record = Json::read(path);
  return EqualizedFrom{.model = record.at("model").as_string(),
                       .fingerprint = record.at("fingerprint").as_string(),
                       .format = record.at("format").as_string()};
}

std::string equalized_text(const EqualizedFrom& from) {
  return cat("equalised for ", plain(from.format), " from ", quote(from.model));
}

}  // namespace fp8kv
