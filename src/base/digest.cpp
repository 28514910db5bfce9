#include "base/digest.h"

#include <sys/types.h>

#include <sha2.h>

#include "base/sha256_blocks.h"

namespace fp8kv {
namespace {

constexpr size_t kBlockBytes = 64;

}  // namespace

struct Sha256::State {
  SHA2_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SHA256Init(&state_->context);
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  SHA2_CTX& context = state_->context;
  const auto add_slowly = [&](size_t n) {
    SHA256Update(&context, reinterpret_cast<const uint8_t*>(bytes.data()), n);
    bytes.remove_prefix(n);
  };
  const size_t begun = context.bitcount[0] / 8 % kBlockBytes;
  if (!has_sha256_instructions() || bytes.size() < 2 * kBlockBytes) {
    return add_slowly(bytes.size());
  }
  if (begun > 0) add_slowly(kBlockBytes - begun);
  const size_t n_blocks = bytes.size() / kBlockBytes;
  add_sha256_blocks(context.state.st32, reinterpret_cast<const uint8_t*>(bytes.data()), n_blocks);
  context.bitcount[0] += uint64_t{n_blocks} * kBlockBytes * 8;
  bytes.remove_prefix(n_blocks * kBlockBytes);
  add_slowly(bytes.size());
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
