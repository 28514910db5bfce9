// How long a text may become in the steps of a tokenizer. Steps that are chained can double it each
// time: forty of them make a terabyte of one character.
#pragma once

#include <cstddef>
#include <string>

namespace fp8kv {

class GrowthLimit {
 public:
  // NFKD followed by ByteLevel makes 22 bytes of each of U+FDFA, the most of all steps that are
  // published with models; Prepend and the like add a few bytes to any text.
  static constexpr size_t kTimes = 32, kAnyText = size_t{1} << 20;

  // `where`: what the steps are read from, "'tokenizer.json' (normalizer)". REQUIRES it to outlive
  // this.
  GrowthLimit(size_t given_bytes, const std::string& where) : where_(where), given_(given_bytes) {}

  void add_given(size_t bytes) { given_ += bytes; }
  // Throws where `bytes` are more than the given ones may become.
  void check(size_t bytes) const {
    if (bytes > kAnyText && (bytes - kAnyText) / kTimes > given_) fail_growth();
  }

 private:
  [[noreturn]] void fail_growth() const;

  const std::string& where_;
  size_t given_;
};

}  // namespace fp8kv
