#include "base/digest.h"

#include <sys/types.h>

#include <sha2.h>

namespace fp8kv {

struct Sha256::State {
  SHA2_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SHA256Init(&state_->context);
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  SHA256Update(&state_->context, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::string Sha256::hex() {
  uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256Final(digest, &state_->context);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint8_t byte : digest) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace fp8kv
