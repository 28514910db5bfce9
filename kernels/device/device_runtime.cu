// Device on CUDA and HIP.
#include "base/error.h"
#include "kernels/device/device.h"
#include "kernels/device/transfers_runtime.h"

namespace fp8kv::FP8KV_GPU {
namespace {

#if defined(__CUDACC__)
using DeviceProperties = cudaDeviceProp;
using FuncAttributes = cudaFuncAttributes;
#if defined(FP8KV_EMULATED)
constexpr char kName[] = "ptx";
#else
constexpr char kName[] = "cuda";
#endif
constexpr char kRuntime[] = "CUDA";
constexpr char kDriver[] = "NVIDIA driver";
#else
using DeviceProperties = hipDeviceProp_t;
using FuncAttributes = hipFuncAttributes;
constexpr char kName[] = "hip";
constexpr char kRuntime[] = "HIP";
constexpr char kDriver[] = "AMD driver";
#endif

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(cat(kName, ": ", reason), "", ErrorKind::device);
}

// Runtime and driver number versions alike: CUDA as 1000 * major + 10 * minor, HIP with 10000000
// and 100000.
std::string version_text(int version) {
#if defined(__CUDACC__)
  return cat(version / 1000, ".", version % 1000 / 10);
#else
  return cat(version / 10000000, ".", version % 10000000 / 100000);
#endif
}

void require_device() {
  int count = 0;  // 0 stays if the call fails
  const Status status = FP8KV_RUNTIME(GetDeviceCount)(&count);
  if (status == kSuccess && count > 0) return;
  int driver = 0, runtime = 0;
  if (FP8KV_RUNTIME(DriverGetVersion)(&driver) != kSuccess) driver = 0;
  if (FP8KV_RUNTIME(RuntimeGetVersion)(&runtime) != kSuccess) runtime = 0;
  static_cast<void>(FP8KV_RUNTIME(GetLastError)());
  if (status == kSuccess || status == FP8KV_RUNTIME(ErrorNoDevice)) refuse("no device found");
  if (driver == 0) refuse(cat("no ", kDriver, " found"));
#if defined(__CUDACC__)
  if (driver < runtime) {
    refuse(cat("the ", kDriver, " is for CUDA ", version_text(driver), ", at least ",
               version_text(runtime), " is needed"));
  }
#endif
  refuse(status_text(status));
}

__global__ void probe_kernel() {}

// Refuses a module that was built for other devices, or that needs a newer driver to translate it.
// Otherwise the first op would be the one to fail.
void require_code(const char* device) {
  FuncAttributes attributes;
  const Status status =
      FP8KV_RUNTIME(FuncGetAttributes)(&attributes, reinterpret_cast<const void*>(probe_kernel));
  if (status == kSuccess) return;
  static_cast<void>(FP8KV_RUNTIME(GetLastError)());
  refuse(cat(device, " cannot run this module's kernels: ", status_text(status)));
}

}  // namespace

bool has_gemm_library() {
#if defined(FP8KV_EMULATED)
  return false;
#else
  return true;
#endif
}

Device::Device() {
  require_device();
  const std::string prefix = kName;
  check(FP8KV_RUNTIME(SetDevice)(0), prefix);
  DeviceProperties properties;
  check(FP8KV_RUNTIME(GetDeviceProperties)(&properties, 0), prefix);
#if defined(__CUDACC__)
  if (properties.major < 8) {
    refuse(cat(properties.name, " has compute capability ", properties.major, ".", properties.minor,
               ", at least 8.0 is needed"));
  }
#else
  if (properties.warpSize != kWarp) {
    refuse(cat(properties.name, " has waves of ", properties.warpSize, " lanes, ", kWarp,
               " are needed (CDNA)"));
  }
#endif
  require_code(properties.name);
  name_ = cat(kName, ": ", properties.name, ", ", human_bytes(properties.totalGlobalMem));
  multiprocessors_ = properties.multiProcessorCount;
  check(FP8KV_RUNTIME(StreamCreate)(&stream_.handle), prefix);
  stream_.pending = &pending_;
#if defined(__CUDACC__) && CUDART_VERSION >= 12030  // before, such launches cannot be recorded
  stream_.overlaps = properties.major >= 9 && !sync_after_launch();
#endif
  transfers_ = make_transfers(stream_);
  staging_ = std::make_unique<Staging>(*transfers_);
}

Device::~Device() {
  static_cast<void>(FP8KV_RUNTIME(StreamSynchronize)(stream_.handle));  // copies out of staging_
  staging_ = nullptr;
  transfers_ = nullptr;
  static_cast<void>(FP8KV_RUNTIME(StreamDestroy)(stream_.handle));
}

std::string Device::describe() const {
  return name_;
}

std::string Device::driver() const {
  int driver = 0, runtime = 0;
  check(FP8KV_RUNTIME(DriverGetVersion)(&driver), "asking for the driver's version");
  check(FP8KV_RUNTIME(RuntimeGetVersion)(&runtime), "asking for the runtime's version");
  return cat(kRuntime, " ", version_text(driver), ", the module is built with ",
             version_text(runtime));
}

std::shared_ptr<std::byte> Device::allocate(size_t bytes) {
  void* memory = nullptr;
  const Status status = FP8KV_RUNTIME(Malloc)(&memory, bytes == 0 ? 1 : bytes);
  if (status == FP8KV_RUNTIME(ErrorMemoryAllocation)) {
    static_cast<void>(FP8KV_RUNTIME(GetLastError)());  // clears it
    throw full_error(bytes, *Device::memory().free);
  }
  check_given(status, cat("allocating ", human_bytes(bytes), " on the device"), stream_);
  count_->add(bytes);
  std::shared_ptr<std::byte> owner(static_cast<std::byte*>(memory),
                                   [bytes, count = count_](std::byte* block) {
                                     static_cast<void>(FP8KV_RUNTIME(Free)(block));
                                     count->in_use -= bytes;
                                   });
  check_given(FP8KV_RUNTIME(MemsetAsync)(memory, 0, bytes, stream_.handle), "clearing memory",
              stream_);
  return owner;
}

bool Device::can_record() const {
  return !sync_after_launch();
}

void Device::begin_recording() {
  check_given(FP8KV_RUNTIME(StreamBeginCapture)(stream_.handle,
                                                FP8KV_RUNTIME(StreamCaptureModeThreadLocal)),
              "recording a step", stream_);
  pending_.set_recording(true);
}

std::shared_ptr<void> Device::end_recording() {
  pending_.set_recording(false);
  FP8KV_RUNTIME(Graph_t) graph{};
  check_given(FP8KV_RUNTIME(StreamEndCapture)(stream_.handle, &graph), "recording a step", stream_);
  FP8KV_RUNTIME(GraphExec_t) recorded{};
#if defined(__CUDACC__)
  const Status status = cudaGraphInstantiate(&recorded, graph, 0);
#else
  const Status status = hipGraphInstantiate(&recorded, graph, nullptr, nullptr, 0);
#endif
  static_cast<void>(FP8KV_RUNTIME(GraphDestroy)(graph));
  check_given(status, "recording a step", stream_);
  return {static_cast<void*>(recorded), [](void* of) {
            static_cast<void>(
                FP8KV_RUNTIME(GraphExecDestroy)(static_cast<FP8KV_RUNTIME(GraphExec_t)>(of)));
          }};
}

void Device::replay(const std::shared_ptr<void>& recording) {
  check_given(FP8KV_RUNTIME(GraphLaunch)(static_cast<FP8KV_RUNTIME(GraphExec_t)>(recording.get()),
                                         stream_.handle),
              "running a recorded step", stream_);
  pending_.add_launch("a recorded step");
}

void Device::copy_in(std::byte* to, const std::byte* host, size_t bytes) {
  const char* what = "copying to the device";
  staging_->copy_in(to, host, bytes, [&](std::byte* piece, const std::byte* from, size_t length) {
    check_given(FP8KV_RUNTIME(MemcpyAsync)(piece, from, length, FP8KV_RUNTIME(MemcpyHostToDevice),
                                           stream_.handle),
                what, stream_);
  });
  if (sync_after_launch()) {
    wait_for_ops(stream_, what);
  } else {
    pending_.add_copy();
  }
}

void Device::copy_out(std::byte* host, const std::byte* from, size_t bytes) {
  const char* what = "copying from the device";
  check_given(FP8KV_RUNTIME(MemcpyAsync)(host, from, bytes, FP8KV_RUNTIME(MemcpyDeviceToHost),
                                         stream_.handle),
              what, stream_);
  pending_.add_copy();
  wait_for_ops(stream_, what);
}

DeviceMemory Device::memory() const {
  size_t free = 0, total = 0;
  check_given(FP8KV_RUNTIME(MemGetInfo)(&free, &total), "asking for free memory", stream_);
  return {count_->in_use, count_->peak, free};
}

}  // namespace fp8kv::FP8KV_GPU
