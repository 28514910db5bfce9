#include "core/model/model_identity.h"

#include "base/digest.h"
#include "base/text.h"

namespace fp8kv {

std::string fingerprint_of(const ModelIdentity& identity) {
  Sha256 digest;
  for (const ConfigNumber& number : identity.config) {
    digest.add(cat(number.key, "=", number.value, "\n"));
  }
  digest.add(cat("embedding ", identity.embedding.digest, "\n"));
  for (const WeightsIdentity& layer : identity.layers)
    digest.add(cat("layer ", layer.digest, "\n"));
  return kIdentityFingerprint + digest.hex();
}

}  // namespace fp8kv
