// Messages for a failing device, shared by CUDA, HIP and the simulator.
// A faulting device reports the fault at a later call. So the op at fault is known only if every
// launch is waited for.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace fp8kv {

// Whether every launch is waited for at once (FP8KV_SYNC), so that the faulting op itself reports.
inline bool sync_after_launch() {
  static const bool sync = std::getenv("FP8KV_SYNC") != nullptr;
  return sync;
}

// Work given to a device since the last wait for it: any of it may have caused a fault. Every
// member may be called from several threads.
class Pending {
 public:
  // `name` lives as long as the program.
  void add_launch(const char* name) {
    const std::lock_guard lock(mutex_);
    if (recording_) return;
    ++launches_;
    for (const char* each : names_) {
      if (std::strcmp(each, name) == 0) return;
    }
    names_.push_back(name);
  }

  void add_copy() {
    const std::lock_guard lock(mutex_);
    copied_ = true;
  }

  // A copy on a queue of its own. Waiting for ops does not wait for it.
  void add_copy_beside() {
    const std::lock_guard lock(mutex_);
    copied_beside_ = true;
  }

  // While a step is recorded nothing runs, so nothing is added.
  void set_recording(bool recording) {
    const std::lock_guard lock(mutex_);
    recording_ = recording;
  }

  // Call it when all ops are done.
  void clear() {
    const std::lock_guard lock(mutex_);
    names_.clear();
    launches_ = 0;
    copied_ = false;
  }

  // For example "37 launches (rmsnorm, linear, activate) and copies"; "" if there is no work.
  std::string text() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> parts;
    if (launches_ > 0) {
      std::vector<std::string> names(names_.begin(), names_.end());
      const char* counted = launches_ == 1 ? " launch (" : " launches (";
      parts.push_back(cat(launches_, counted, join(names, ", "), ")"));
    }
    if (copied_ || copied_beside_) parts.push_back("copies");
    return join(parts, " and ");
  }

 private:
  mutable std::mutex mutex_;
  std::vector<const char*> names_;  // each once, in the order in which they came
  uint64_t launches_ = 0;
  bool copied_ = false;
  bool copied_beside_ = false;
  bool recording_ = false;
};

inline constexpr char kFaultHelp[] =
    "the device or this program is at fault: use --device cpu, and report it";

// A fault of the device, or of any work given to it before: which work is unknown.
inline Error fault_error(const std::string& what, const std::string& reason,
                         const Pending& pending) {
  const std::string unknown = pending.text();
  if (unknown.empty()) return Error(cat(what, ": ", reason), kFaultHelp, ErrorKind::device);
  return Error(cat(what, ": ", reason, "; not known to be done: ", unknown),
               "run again with FP8KV_SYNC=1 to have the fault named where it happens",
               ErrorKind::device);
}

inline Error full_error(uint64_t bytes, uint64_t free) {
  return Error::out_of_memory(cat("cannot allocate ", human_bytes(bytes),
                                  " on the device, which has ", human_bytes(free), " left"));
}

}  // namespace fp8kv
