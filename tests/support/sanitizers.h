// What this build looks for, where everything takes many times as long as in a release build. Tests
// that need size for what they find in figures keep it there.
#pragma once

#include <initializer_list>
#include <vector>

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

// Values each of which is a case: under ThreadSanitizer the first, the one in the middle and the
// last, elsewhere all. On the simulator, ThreadSanitizer makes a kernel some twenty times slower
// than AddressSanitizer does; it looks at who waits for whom, which numbers and types do not
// change.
template <typename T>
std::vector<T> few(std::initializer_list<T> all) {
  if (!kThreadSanitizer || all.size() <= 3) return all;
  return {*all.begin(), all.begin()[all.size() / 2], *(all.end() - 1)};
}

}  // namespace fp8kv::test
