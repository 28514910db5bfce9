// Whether this is a build in which everything takes many times as long. Tests that need size for
// what they find in figures keep it elsewhere; what sanitizers look for is there at any size.
#pragma once

namespace fp8kv::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace fp8kv::test
