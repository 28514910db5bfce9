#include "equalize/equalized_caches.h"

#include "base/error.h"

namespace fp8kv {
namespace {

const EqualizedCache kCaches[] = {
    {"int8", "int8_per_token_head", KvFormat::int8_per_token_head, false},
    {"nvfp4", "nvfp4", KvFormat::nvfp4, true},
};

}  // namespace

std::span<const EqualizedCache> equalized_caches() {
  return kCaches;
}

const EqualizedCache& equalized_cache_at(const std::string& name) {
  std::string known;
  for (const EqualizedCache& each : kCaches) {
    if (name == each.name || name == each.full) return each;
    known += cat(known.empty() ? "" : ", ", each.name);
  }
  throw Error(cat("no model can be equalised for a cache of ", quote(name)),
              cat("caches are: ", known), ErrorKind::usage);
}

}  // namespace fp8kv
