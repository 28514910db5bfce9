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
#include "kernels/ptx/order/host_copies.h"
#include "kernels/ptx/order/stream_order.h"
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

  // A piece of a stream's work. It throws its faults.
  using Work = std::function<void(const WorkTime& time)>;
  // Throws the reason if a GPU would refuse the launch. Faults come when the work runs.
  Work prepare(Kernel& kernel, Extent grid, Extent block, size_t shared_bytes, void** arguments);
  void allow_shared_bytes(Kernel& kernel, size_t bytes);

  // Runs the work, or notes it while that stream is recorded. After a fault, nothing runs any more.
  //   stream: its number in order()
  void give(const Work& work, int stream);
  void begin_recording(int stream);
  std::vector<Work> end_recording();
  bool is_recording(int stream) const { return recording_ && stream == recorded_; }

  // The host has waited: copies end that are known to be done.
  void after_wait();

  const std::string& fault() const { return fault_; }  // "" for none
  void set_fault(const std::string& text);
  GlobalMemory& memory() { return memory_; }
  StreamOrder& order() { return order_; }
  HostCopies& host_copies() { return host_copies_; }
  Limits limits() const;
  const Settings& settings() const { return settings_; }

 private:
  Settings settings_;
  GlobalMemory memory_;
  ThreadPool pool_;
  std::recursive_mutex mutex_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::map<const void*, Kernel*> bound_;
  StreamOrder order_;
  HostCopies host_copies_;
  std::optional<std::vector<Work>> recording_;
  int recorded_ = 0;  // the recorded stream
  std::string fault_;
};

}  // namespace fp8kv::ptx
