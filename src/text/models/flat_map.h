// A hash map from 64-bit keys to small values, filled once and then only read.
#pragma once

#include <cstdint>
#include <vector>

namespace fp8kv {

// Uses open addressing, at most half full. The key ~0 must not be used.
template <typename Value>
class FlatMap {
 public:
  explicit FlatMap(size_t expected = 0) { resize(expected); }

  // The value of `key`; created if it is missing.
  Value& operator[](uint64_t key) {
    if (2 * (size_ + 1) > slots_.size()) resize(2 * (size_ + 1));
    Slot& slot = slots_[index_of(key)];
    if (slot.key == kEmpty) {
      slot.key = key;
      ++size_;
    }
    return slot.value;
  }

  // Returns nullptr if the key is missing.
  const Value* find(uint64_t key) const {
    const Slot& slot = slots_[index_of(key)];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }

  size_t size() const { return size_; }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Slot {
    uint64_t key = kEmpty;
    Value value{};
  };

  size_t index_of(uint64_t key) const {
    const uint64_t mixed = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15u;
    size_t i = static_cast<size_t>(mixed >> shift_);
    while (slots_[i].key != key && slots_[i].key != kEmpty) i = (i + 1) & (slots_.size() - 1);
    return i;
  }

  void resize(size_t expected) {
    size_t capacity = 16;
    int bits = 4;
    while (capacity < 2 * expected) {
      capacity *= 2;
      ++bits;
    }
    std::vector<Slot> old(capacity);
    old.swap(slots_);
    shift_ = 64 - bits;
    for (const Slot& slot : old) {
      if (slot.key != kEmpty) slots_[index_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
  int shift_ = 60;
};

}  // namespace fp8kv
