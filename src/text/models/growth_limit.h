// Limits how long a text may become in the steps of a tokenizer. Chained steps can double it each
// time: forty of them turn one character into a terabyte.
#pragma once

#include <cstddef>
#include <string>

namespace fp8kv {

class GrowthLimit {
 public:
  // NFKD followed by ByteLevel makes 22 bytes from each byte of U+FDFA, the most of all steps
  // published with models. Prepend and similar steps add a few bytes to any text.
  static constexpr size_t kTimes = 32, kAnyText = size_t{1} << 20;

  // `where`: the origin of the steps, "'tokenizer.json' (normalizer)". REQUIRES it to outlive this
  // object.
  GrowthLimit(size_t given_bytes, const std::string& where) : where_(where), given_(given_bytes) {}

  void add_given(size_t bytes) { given_ += bytes; }
  // Throws if `bytes` exceeds the limit for the given text.
  void check(size_t bytes) const {
    if (bytes > kAnyText && (bytes - kAnyText) / kTimes > given_) fail_growth();
  }

 private:
  [[noreturn]] void fail_growth() const;

  const std::string& where_;
  size_t given_;
};

}  // namespace fp8kv
