// Copies from the host to a device through pinned slots, which are filled one after another.
// Without them the source could change before it is copied: a runtime may read it later, or let the
// device read it. A slot's contents stay until they are copied.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>

#include "backend/transfers.h"

namespace fp8kv {

class Staging {
 public:
  // Small copies share a slot. A large copy uses all slots in turn: while one is filled, the
  // earlier ones are copied.
  static constexpr size_t kSlotBytes = size_t{2} << 20;
  static constexpr size_t kSlots = 4;

  explicit Staging(Transfers& transfers)
      : transfers_(transfers), memory_(transfers.allocate_pinned(kSlots * kSlotBytes)) {
    for (int& mark : emptied_) mark = transfers.make_mark();
  }

  // Calls copy(to, from, bytes) for each piece; it must queue the copy with the ops and return.
  // Afterwards `host` may change.
  template <typename Copy>
  void copy_in(std::byte* to, const std::byte* host, size_t bytes, const Copy& copy) {
    while (bytes > 0) {
      if (used_ == kSlotBytes) turn();
      const size_t piece = std::min(bytes, kSlotBytes - used_);
      std::byte* from = memory_.get() + slot_ * kSlotBytes + used_;
      std::memcpy(from, host, piece);
      copy(to, from, piece);
      used_ = std::min((used_ + piece + kAlignment - 1) / kAlignment * kAlignment, kSlotBytes);
      to += piece;
      host += piece;
      bytes -= piece;
    }
  }

 private:
  static constexpr size_t kAlignment = 256;  // copies prefer it

  // Goes to the next slot, once its contents have been copied.
  void turn() {
    transfers_.record(emptied_[slot_], kOpsQueue);
    slot_ = (slot_ + 1) % kSlots;
    transfers_.wait_here(emptied_[slot_]);
    used_ = 0;
  }

  Transfers& transfers_;
  const std::shared_ptr<std::byte> memory_;
  std::array<int, kSlots> emptied_{};  // marks behind a slot's last copy
  size_t slot_ = 0;
  size_t used_ = 0;  // bytes of the slot
};

}  // namespace fp8kv
