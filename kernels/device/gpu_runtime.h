// The host's side of CUDA and HIP, whose runtime calls differ in a prefix.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "kernels/device/faults.h"

#if defined(__CUDACC__)
#define FP8KV_RUNTIME(name) cuda##name
#else
#define FP8KV_RUNTIME(name) hip##name
#endif

namespace fp8kv::FP8KV_GPU {

using StreamHandle = FP8KV_RUNTIME(Stream_t);
using Status = FP8KV_RUNTIME(Error_t);

inline constexpr Status kSuccess = FP8KV_RUNTIME(Success);

// The queue of ops, and what is known of its work; see Device.
struct Stream {
  StreamHandle handle{};
  Pending* pending = nullptr;
  bool overlaps = false;  // kernels start while the one before still runs: see after_previous
};

struct Grid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

inline std::string status_text(Status status) {
  return FP8KV_RUNTIME(GetErrorString)(status);
}

// Throws a device error with the failed call and its reason; a resource error if memory ran out.
inline void check(Status status, const std::string& what) {
  if (status == kSuccess) return;
  static_cast<void>(FP8KV_RUNTIME(GetLastError)());  // clears it
  const std::string message = cat(what, ": ", status_text(status));
  if (status == FP8KV_RUNTIME(ErrorMemoryAllocation)) throw Error::out_of_memory(message);
  throw Error(message, "", ErrorKind::device);
}

// Checks the status of a call that gives work to the device. The status may be a failure of the
// call itself, such as a launch that is too large; it is reported once. Or it is a fault of earlier
// work, which every later call reports again.
inline void check_given(Status status, const std::string& what, const Stream& stream) {
  if (status == kSuccess) return;
  static_cast<void>(FP8KV_RUNTIME(GetLastError)());
  const bool lasts = FP8KV_RUNTIME(StreamQuery)(stream.handle) == status;
  if (lasts) throw fault_error(what, status_text(status), *stream.pending);
  check(status, what);
}

// Checks the status of a call that waits for the device.
inline void check_waited(Status status, const std::string& what, const Stream& stream) {
  if (status == kSuccess) return;
  static_cast<void>(FP8KV_RUNTIME(GetLastError)());
  throw fault_error(what, status_text(status), *stream.pending);
}

// Waits for all ops. Messages about faults begin with `what`.
inline void wait_for_ops(const Stream& stream, const std::string& what) {
  check_waited(FP8KV_RUNTIME(StreamSynchronize)(stream.handle), what, stream);
  stream.pending->clear();
}

inline std::string launching(const char* name) {
  return cat("launching ", name);
}

inline void check_launch(Status status, const char* name, const Stream& stream) {
  if (status != kSuccess) check_given(status, launching(name), stream);
}

// Call it after a launch.
inline void wait_or_note(const Stream& stream, const char* name) {
  if (sync_after_launch()) {
    wait_for_ops(stream, name);
  } else {
    stream.pending->add_launch(name);
  }
}

// Call it when a library could not launch. Throws if a fault of the device is the cause. While a
// step is recorded the cause is unknown, and nothing is thrown.
inline void check_sound(const char* name, const Stream& stream) {
  const Status status = FP8KV_RUNTIME(StreamQuery)(stream.handle);
  if (status == kSuccess || status == FP8KV_RUNTIME(ErrorNotReady) ||
      status == FP8KV_RUNTIME(ErrorStreamCaptureUnsupported)) {
    return;
  }
  check_waited(status, launching(name), stream);
}

// Blocks of up to this many bytes of shared memory need no permission.
inline constexpr size_t kPlainSharedBytes = 48 * 1024;

template <typename... Parameters, typename... Arguments>
Status start(void (*kernel)(Parameters...), Grid grid, int threads, size_t shared_bytes,
             const Stream& stream, Arguments&&... arguments) {
  const dim3 blocks(grid.x, grid.y, grid.z), block(static_cast<unsigned>(threads));
#if defined(__CUDACC__)
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream.handle;
  config.attrs = &overlap;
  config.numAttrs = stream.overlaps ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
#else
  hipLaunchKernelGGL(kernel, blocks, block, static_cast<uint32_t>(shared_bytes), stream.handle,
                     static_cast<Parameters>(arguments)...);
  return hipGetLastError();
#endif
}

template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), Grid grid, int threads,
            size_t shared_bytes, Stream stream, Arguments&&... arguments) {
  if (shared_bytes > kPlainSharedBytes) {
    check_launch(
        FP8KV_RUNTIME(FuncSetAttribute)(reinterpret_cast<const void*>(kernel),
                                        FP8KV_RUNTIME(FuncAttributeMaxDynamicSharedMemorySize),
                                        static_cast<int>(shared_bytes)),
        name, stream);
  }
  check_launch(start(kernel, grid, threads, shared_bytes, stream, arguments...), name, stream);
  wait_or_note(stream, name);
}

// Work that a library submits to the stream itself; it reports failures in its own way.
template <typename Work>
void submit(const char* name, Stream stream, const Work& work) {
  try {
    work();
  } catch (const Error&) {
    check_sound(name, stream);
    throw;
  }
  check_launch(FP8KV_RUNTIME(GetLastError)(), name, stream);
  wait_or_note(stream, name);
}

// Whether the device may have a library of matrix products. An emulated one runs only this
// project's kernels.
bool has_gemm_library();

}  // namespace fp8kv::FP8KV_GPU
