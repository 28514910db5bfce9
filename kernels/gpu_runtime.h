// The host's side of CUDA and HIP, whose runtime calls differ in a prefix.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "base/error.h"

#if defined(__CUDACC__)
#define FP8KV_RUNTIME(name) cuda##name
#else
#define FP8KV_RUNTIME(name) hip##name
#endif

namespace fp8kv::FP8KV_GPU {

using Stream = FP8KV_RUNTIME(Stream_t);
using Status = FP8KV_RUNTIME(Error_t);

inline constexpr Status kSuccess = FP8KV_RUNTIME(Success);

struct Grid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

inline std::string status_text(Status status) {
  return FP8KV_RUNTIME(GetErrorString)(status);
}

// Throws a device error (a resource error when memory ran out) that says what failed in what.
inline void check(Status status, const std::string& what) {
  if (status == kSuccess) return;
  static_cast<void>(FP8KV_RUNTIME(GetLastError)());  // clears it
  const bool memory = status == FP8KV_RUNTIME(ErrorMemoryAllocation);
  throw Error(cat(what, ": ", status_text(status)),
              memory ? "use a smaller batch, a shorter context or fewer cached tokens"
                     : "run again with FP8KV_SYNC=1 to have the fault named where it happens",
              memory ? ErrorKind::resource : ErrorKind::device);
}

// Whether every launch is waited for, so that a fault is reported by the op that made it.
inline bool sync_after_launch() {
  static const bool sync = std::getenv("FP8KV_SYNC") != nullptr;
  return sync;
}

// Blocks of up to this many bytes of shared memory need no permission.
inline constexpr size_t kPlainSharedBytes = 48 * 1024;

template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), Grid grid, int threads,
            size_t shared_bytes, Stream stream, Arguments&&... arguments) {
  if (shared_bytes > kPlainSharedBytes) {
    check(FP8KV_RUNTIME(FuncSetAttribute)(reinterpret_cast<const void*>(kernel),
                                          FP8KV_RUNTIME(FuncAttributeMaxDynamicSharedMemorySize),
                                          static_cast<int>(shared_bytes)),
          name);
  }
  kernel<<<dim3(grid.x, grid.y, grid.z), static_cast<unsigned>(threads), shared_bytes, stream>>>(
      static_cast<Parameters>(arguments)...);
  check(FP8KV_RUNTIME(GetLastError)(), name);
  if (sync_after_launch()) check(FP8KV_RUNTIME(StreamSynchronize)(stream), name);
}

// Work that a library submits to the stream by itself.
template <typename Work>
void submit(const char* name, Stream stream, const Work& work) {
  work();
  check(FP8KV_RUNTIME(GetLastError)(), name);
  if (sync_after_launch()) check(FP8KV_RUNTIME(StreamSynchronize)(stream), name);
}

inline constexpr bool kHasGemmLibrary = true;

}  // namespace fp8kv::FP8KV_GPU
