// Who used which part of an allocation last. Parts are of 256 bytes, the alignment of allocations.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ptx/order/stream_order.h"

namespace fp8kv::ptx {

inline constexpr uint64_t kPartBytes = 256;

// The parts that a running kernel touches. Several threads may touch one at the same time.
class TouchedParts {
 public:
  explicit TouchedParts(uint64_t bytes) : flags_(bytes / kPartBytes + 1) {}

  static constexpr uint8_t kRead = 1, kWritten = 2;
  // `at`: bytes from the allocation's beginning
  void touch(uint64_t at, uint8_t how);
  // Calls work(part, how) for each touched part, and forgets them.
  template <typename Work>
  void take(const Work& work) {
    if (!any_) return;
    any_ = false;
    for (size_t part = 0; part < flags_.size(); ++part) {
      if (flags_[part] != 0) work(part, flags_[part]);
      flags_[part] = 0;
    }
  }

 private:
  std::vector<uint8_t> flags_;
  bool any_ = false;
};

// The name of a piece of work, which lives as long as the program.
using LastingName = const std::string*;
LastingName lasting_name(const std::string& name);

class AccessLog {
 public:
  explicit AccessLog(uint64_t bytes) : parts_(bytes / kPartBytes + 1) {}

  // Notes an access. Returns what is wrong with it, or "".
  std::string note(size_t part, bool writes, const WorkTime& time, LastingName name);

 private:
  struct Use {
    int stream = -1;  // -1: none
    uint64_t number = 0;
    LastingName name = nullptr;
  };
  // More streams never read one part between two writes.
  static constexpr size_t kMostReaders = 6;
  struct Part {
    Use write;
    std::array<Use, kMostReaders> reads;
  };
  std::vector<Part> parts_;
};

}  // namespace fp8kv::ptx
