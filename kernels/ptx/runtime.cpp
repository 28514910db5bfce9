// The entry points of the CUDA runtime that the module uses, implemented by the emulated device.
// They replace the runtime's static library at link time. Streams run their work at once.
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#include "base/error.h"
#include "kernels/ptx/device.h"

namespace {

using fp8kv::Error;
using fp8kv::ptx::EmulatedDevice;
using fp8kv::ptx::Extent;
using fp8kv::ptx::Kernel;

EmulatedDevice& device() {
  static EmulatedDevice device(fp8kv::ptx::read_settings(std::getenv("FP8KV_PTX")));
  return device;
}

struct LastError {
  cudaError_t status = cudaSuccess;
  std::string text;  // the reason of a refusal that is not a fault
};
thread_local LastError last;

cudaError_t note(cudaError_t status, const std::string& text = "") {
  if (status != cudaSuccess) last = {status, text};
  return status;
}

cudaError_t fault() {
  return device().fault().empty() ? cudaSuccess : cudaErrorIllegalAddress;
}

// Gives work to the device. Its faults are reported by the next call.
cudaError_t give(std::function<void()> work, cudaStream_t stream) {
  if (fault() != cudaSuccess) return note(fault());
  device().give(std::move(work), stream);
  return cudaSuccess;
}

// Does the work. If it throws, the host was at fault, and the call returns `status`.
template <typename Work>
cudaError_t refuse_or(cudaError_t status, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return note(status, error.what());
  }
}

Extent extent_of(dim3 size) {
  return {size.x, size.y, size.z};
}

struct Call {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};

cudaError_t launch(Kernel* kernel, const Call& given, void** arguments) {
  if (!kernel) return note(cudaErrorInvalidDeviceFunction);
  return refuse_or(cudaErrorInvalidConfiguration, [&] {
    return give(device().prepare(*kernel, extent_of(given.grid), extent_of(given.block),
                                 given.shared_bytes, arguments),
                given.stream);
  });
}

bool on_device(const void* memory, size_t bytes) {
  return bytes == 0 || device().memory().find(reinterpret_cast<uint64_t>(memory), bytes).end != 0;
}

thread_local Call call;

using Work = EmulatedDevice::Work;

// A handle that only has to differ from others.
template <typename Handle>
cudaError_t make_handle(Handle* handle) {
  *handle = reinterpret_cast<Handle>(new char);
  return cudaSuccess;
}
template <typename Handle>
cudaError_t free_handle(Handle handle) {
  delete reinterpret_cast<char*>(handle);
  return cudaSuccess;
}

}  // namespace

extern "C" {

// nvcc puts calls of these into every object. Its headers declare them, but nothing documents them.

void** __cudaRegisterFatBinary(void* wrapper) {
  struct Wrapper {
    int magic, version;
    const void* container;
    void* file;
  };
  return reinterpret_cast<void**>(device().load(static_cast<Wrapper*>(wrapper)->container));
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** module, const char* host_function, char*, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*) {
  device().bind(host_function, *reinterpret_cast<EmulatedDevice::Module*>(module), name);
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream) {
  call = {grid, block, shared_bytes, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  *grid = call.grid;
  *block = call.block;
  *shared_bytes = call.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = call.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  *kernel = reinterpret_cast<cudaKernel_t>(device().find(host_function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return launch(reinterpret_cast<Kernel*>(kernel), {grid, block, shared_bytes, stream}, arguments);
}

// Kernels.

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  return launch(device().find(function), {grid, block, shared_bytes, stream}, arguments);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  const Call given{config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream};
  return launch(device().find(function), given, arguments);
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  Kernel* kernel = device().find(function);
  if (!kernel) return note(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  return refuse_or(cudaErrorInvalidValue, [&] {
    device().allow_shared_bytes(*kernel, static_cast<size_t>(value));
    return cudaSuccess;
  });
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  *attributes = {};
  return device().find(function) ? cudaSuccess : note(cudaErrorInvalidDeviceFunction);
}

// Memory.

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (fault() != cudaSuccess) return note(fault());
  *memory = device().memory().allocate(bytes);
  return *memory ? cudaSuccess : note(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* memory) {
  if (!memory || device().memory().release(memory)) return cudaSuccess;
  return note(cudaErrorInvalidValue, "freed what was never allocated");
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  // Whole pages, like pinned memory: files are read into it directly.
  constexpr size_t kPage = 4096;
  *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  return *memory ? cudaSuccess : note(cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return give(
      [=] {
        if ((to_device && !on_device(to, bytes)) || (from_device && !on_device(from, bytes))) {
          fp8kv::fail("a copy of ", bytes, " bytes, expected them in one allocation of the device");
        }
        std::memcpy(to, from, bytes);
      },
      stream);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return give(
      [=] {
        if (!on_device(to, bytes)) {
          fp8kv::fail("sets ", bytes, " bytes, expected them in one allocation of the device");
        }
        std::memset(to, value, bytes);
      },
      stream);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = device().memory().capacity();
  *free = *total - device().memory().in_use();
  return cudaSuccess;
}

// The device.

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  const std::string name =
      fp8kv::cat("emulator of PTX for sm_", device().settings().target, " on the CPU");
  std::strncpy(properties->name, name.c_str(), sizeof properties->name - 1);
  properties->major = device().limits().major;
  properties->totalGlobalMem = device().memory().capacity();
  properties->warpSize = fp8kv::ptx::kLanes;
  properties->multiProcessorCount = 16;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  const cudaError_t status = fault() != cudaSuccess ? fault() : last.status;
  last.status = cudaSuccess;
  return status;
}
const char* cudaGetErrorString(cudaError_t status) {
  if (status == fault() && status != cudaSuccess) return device().fault().c_str();
  if (!last.text.empty()) return last.text.c_str();
  switch (status) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDeviceFunction:
      return "there is no PTX of this kernel";
    default:
      return "invalid call of the emulated runtime";
  }
}

// Streams, events and graphs.

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return make_handle(stream);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return make_handle(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return free_handle(stream);
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return note(fault());
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return device().is_recording(stream) ? cudaErrorStreamCaptureUnsupported : fault();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return make_handle(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return free_handle(event);
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return note(fault());
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  device().begin_recording(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(new Work(device().end_recording()));
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = reinterpret_cast<cudaGraphExec_t>(new Work(*reinterpret_cast<Work*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Work*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete reinterpret_cast<Work*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  for (const auto& work : *reinterpret_cast<Work*>(graph)) {
    if (const cudaError_t status = give(work, stream); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

}  // extern "C"
