// What this build looks for, where everything takes many times as long as in a release build. Tests
// that need size for what they find in figures keep it there.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "base/error.h"

namespace fp8kv::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Values each of which is a case: all of them, or those `chosen` where ThreadSanitizer looks on. On
// the simulator it makes a kernel some twenty times slower than AddressSanitizer does, and it looks
// at who waits for whom: chosen is one value for every way that the kernels take. REQUIRES that
// `all` has them.
template <typename T>
std::vector<T> few(std::initializer_list<T> all, std::initializer_list<T> chosen) {
  for (const T& each : chosen) {
    FP8KV_ASSERT(std::find(all.begin(), all.end(), each) != all.end());
  }
  return kThreadSanitizer ? chosen : all;
}

}  // namespace fp8kv::test
