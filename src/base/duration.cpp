#include "base/duration.h"

#include <cstdint>

#include "base/text.h"

namespace fp8kv {

std::string duration(double seconds) {
  const auto total = static_cast<uint64_t>(seconds + 0.5);
  if (total < 60) return cat(total, " s");
  if (total < 3600) return cat(total / 60, " min ", total % 60, " s");
  return cat(total / 3600, " h ", total / 60 % 60, " min");
}

}  // namespace fp8kv
