// The emulated device: its kernels, memory and faults. runtime.cpp gives it CUDA's entry points.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/machine/thread_pool.h"
#include "kernels/ptx/launch.h"
#include "kernels/ptx/machine/parse.h"
#include "kernels/ptx/settings.h"

namespace fp8kv::ptx {

struct Kernel {
  KernelText text;
  std::optional<Program> program;  // decoded at its first launch
  size_t allowed_shared_bytes = 48 * 1024;
  uint64_t launches = 0;
};

// Limits that a device reports.  CUDA C++ Programming Guide, "Compute Capabilities".
struct Limits {
  int major;
  size_t most_shared_bytes;  // for blocks that ask for it
};

class EmulatedDevice {
 public:
  explicit EmulatedDevice(const Settings& settings);
  // Appends the launched kernels to the file that the settings name.
  ~EmulatedDevice();
  EmulatedDevice(const EmulatedDevice&) = delete;
  EmulatedDevice& operator=(const EmulatedDevice&) = delete;

  using Module = std::map<std::string, Kernel*>;  // by mangled name
  Module* load(const void* container);
  void bind(const void* host_function, Module& module, const std::string& name);
  Kernel* find(const void* host_function);

  // Throws the reason if a GPU would refuse the launch. Faults come when the work runs.
  std::function<void()> prepare(Kernel& kernel, Extent grid, Extent block, size_t shared_bytes,
                                void** arguments);
  void allow_shared_bytes(Kernel& kernel, size_t bytes);

  // Runs the work, or notes it while that stream is recorded. After a fault, nothing runs any more.
  void give(std::function<void()> work, const void* stream);
  using Work = std::vector<std::function<void()>>;
  void begin_recording(const void* stream);
  Work end_recording();
  bool is_recording(const void* stream) const { return recording_ && stream == recorded_; }

  const std::string& fault() const { return fault_; }  // "" for none
  GlobalMemory& memory() { return memory_; }
  Limits limits() const;
  const Settings& settings() const { return settings_; }

 private:
  void run(const std::function<void()>& work);

  Settings settings_;
  GlobalMemory memory_;
  ThreadPool pool_;
  std::recursive_mutex mutex_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::map<const void*, Kernel*> bound_;
  std::optional<Work> recording_;
  const void* recorded_ = nullptr;  // the recorded stream
  std::string fault_;
};

}  // namespace fp8kv::ptx
