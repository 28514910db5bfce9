#include <algorithm>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "base/digest.h"
#include "base/rng.h"

namespace fp8kv {
namespace {

std::string digest_of(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.hex();
}

// Adds single bytes, so that the C library's code never gets a whole block.
std::string slow_digest_of(std::string_view bytes) {
  Sha256 digest;
  for (size_t i = 0; i < bytes.size(); ++i) digest.add(bytes.substr(i, 1));
  return digest.hex();
}

}  // namespace

// The examples of FIPS 180-4.
TEST_CASE("digest: gives what the standard says") {
  CHECK(digest_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(digest_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(digest_of(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("digest: is the same in whatever parts the bytes come") {
  Rng random(3);
  std::string bytes(5000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  for (size_t size = 0; size < 400; ++size) {
    const std::string_view part(bytes.data(), size);
    CHECK(digest_of(part) == slow_digest_of(part));
  }
  const std::string expected = slow_digest_of(bytes);
  for (int round = 0; round < 200; ++round) {
    Sha256 digest;
    for (size_t at = 0; at < bytes.size();) {
      const size_t n = std::min<size_t>(random.next() % 700, bytes.size() - at);
      digest.add(std::string_view(bytes).substr(at, n));
      at += n;
    }
    CHECK(digest.hex() == expected);
  }
}

}  // namespace fp8kv
