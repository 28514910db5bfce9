// The sanitizers of this build, and whether an emulator runs it. Tests use less data with them,
// because everything runs many times slower. Tests of statistical figures keep their size.
#pragma once

namespace fp8kv::test {

#if defined(FP8KV_TSAN)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(FP8KV_ASAN) || defined(FP8KV_TSAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

#if defined(FP8KV_EMULATED)
inline constexpr bool kEmulated = true;
#else
inline constexpr bool kEmulated = false;
#endif

inline constexpr bool kSlow = kSanitized || kEmulated;

}  // namespace fp8kv::test
