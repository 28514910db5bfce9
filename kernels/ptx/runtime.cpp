// The entry points of the CUDA runtime that the module uses, implemented by the emulated device.
// They replace the runtime's static library at link time. Streams run their work at once; what an
// order of calls does not guarantee is noted and found (kernels/ptx/order).
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#include "base/error.h"
#include "kernels/ptx/device.h"

namespace {

using fp8kv::Error;
using fp8kv::ptx::Clock;
using fp8kv::ptx::EmulatedDevice;
using fp8kv::ptx::Extent;
using fp8kv::ptx::Kernel;
using fp8kv::ptx::WorkTime;
using Work = EmulatedDevice::Work;

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

// The stream that a handle stands for; 0 is the stream without a handle.
int number_of(cudaStream_t stream) {
  if (stream) return *reinterpret_cast<const int*>(stream);
  static const int legacy = device().order().add_stream();
  return legacy;
}

// Gives work to the device. Its faults are reported by the next call.
cudaError_t give(const Work& work, cudaStream_t stream) {
  if (fault() != cudaSuccess) return note(fault());
  device().give(work, number_of(stream));
  return cudaSuccess;
}

// The host has waited for this much.
cudaError_t wait_here(const Clock& clock) {
  device().order().wait_here(clock);
  device().after_wait();
  return note(fault());
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
  const auto found = device().memory().find(reinterpret_cast<uint64_t>(memory), bytes);
  return bytes == 0 || found.range.end != 0;
}

thread_local Call call;

uint64_t address_of(const void* memory) {
  return reinterpret_cast<uint64_t>(memory);
}

// Faults unless one allocation holds these bytes, or if other work may use them at the same time.
void use(const void* memory, size_t bytes, bool writes, const WorkTime& time, const char* name) {
  if (!on_device(memory, bytes)) {
    fp8kv::fail(name, " of ", bytes, " bytes: ",
                device().memory().was_released(address_of(memory))
                    ? "their memory was given back"
                    : "expected them in one allocation of the device");
  }
  const std::string wrong = device().memory().note({address_of(memory), address_of(memory) + bytes},
                                                   writes, time, fp8kv::ptx::lasting_name(name));
  if (!wrong.empty()) fp8kv::fail(wrong);
}

using Graph = std::vector<Work>;

// An event: it is reached when this much is done. Host threads share it.
class Event {
 public:
  void record(const Clock& clock) {
    const std::lock_guard lock(mutex_);
    clock_ = clock;
  }
  Clock clock() const {
    const std::lock_guard lock(mutex_);
    return clock_;
  }

 private:
  mutable std::mutex mutex_;
  Clock clock_;
};

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
// It waits for the device.  CUDA C++ Programming Guide, "Stream Ordered Memory Allocator".
cudaError_t cudaFree(void* memory) {
  device().order().wait_for_all();
  device().after_wait();
  if (!memory || device().memory().release(memory)) return cudaSuccess;
  return note(cudaErrorInvalidValue, "freed what was never allocated");
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  // Whole pages, like pinned memory: files are read into it directly.
  constexpr size_t kPage = 4096;
  *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (!*memory) return note(cudaErrorMemoryAllocation);
  device().host_copies().add_pinned(*memory, bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const std::string wrong = device().host_copies().release_pinned(memory);
  if (!wrong.empty()) device().set_fault("pinned memory " + wrong);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return give(
      [=](const WorkTime& time) {
        if (from_device) use(from, bytes, false, time, "a copy from the device");
        if (to_device) use(to, bytes, true, time, "a copy to the device");
        std::string wrong;
        if (to_device) {
          if (!from_device) wrong = device().host_copies().note_source(from, bytes, time);
          std::memcpy(to, from, bytes);
        } else {
          wrong = device().host_copies().deliver(to, from, bytes, time);
        }
        if (!wrong.empty()) fp8kv::fail(wrong);
      },
      stream);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return give(
      [=](const WorkTime& time) {
        use(to, bytes, true, time, "a memset");
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
  *stream = reinterpret_cast<cudaStream_t>(new int(device().order().add_stream()));
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  device().order().remove_stream(number_of(stream));
  delete reinterpret_cast<int*>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return wait_here(device().order().now(number_of(stream)));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (device().is_recording(number_of(stream))) return cudaErrorStreamCaptureUnsupported;
  return cudaStreamSynchronize(stream);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  device().order().wait(number_of(stream), reinterpret_cast<const Event*>(event)->clock());
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  reinterpret_cast<Event*>(event)->record(device().order().now(number_of(stream)));
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return wait_here(reinterpret_cast<const Event*>(event)->clock());
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  device().begin_recording(number_of(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(new Graph(device().end_recording()));
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  for (const Work& work : *reinterpret_cast<Graph*>(graph)) {
    if (const cudaError_t status = give(work, stream); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

}  // extern "C"
