// ld, st and atom.  PTX ISA 9.7.9.8, 9.7.9.11, 9.7.13.6.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "base/text.h"
#include "kernels/ptx/operations/addresses.h"
#include "kernels/ptx/operations/operations.h"

namespace fp8kv::ptx {
namespace {

enum class Space { global, shared, parameters };

// The host's address of a lane's bytes, checked. The operand `address` is the lane's address.
template <Space kSpace, bool kStore>
std::byte* reach(Warp& warp, const Instruction& in, int address, int lane, uint32_t bytes) {
  const Operand& operand = in.operand[address];
  if constexpr (kSpace == Space::shared) {
    const uint32_t at = shared_address(warp, operand, in.offset, lane, bytes);
    if (kStore) {
      write_shared(warp, lane, at, bytes);
    } else {
      read_shared(warp, lane, at, bytes);
    }
    return warp.shared->data() + at;
  } else {
    const uint64_t at = lanes_of<uint64_t>(warp, operand)[lane] + static_cast<uint64_t>(in.offset);
    if constexpr (kSpace == Space::global) {
      return global_bytes(warp, lane, at, bytes,
                          kStore ? TouchedParts::kWritten : TouchedParts::kRead);
    }
    if (at % bytes != 0 || !warp.parameters.holds(at, bytes)) {
      fault(warp, lane, "reads beyond the parameters, or at a wrong alignment");
    }
    return reinterpret_cast<std::byte*>(at);
  }
}

bool same_in_all_lanes(Warp& warp, const Operand& address) {
  const uint64_t* at = lanes_of<uint64_t>(warp, address);
  return std::equal(at + 1, at + kLanes, at);
}

// A load writes kCount registers; the address is the next operand.
template <Space kSpace, typename Memory, typename Register, int kCount>
void load(Warp& warp, const Instruction& in, uint32_t lanes) {
  Register* to[kCount];
  for (int i = 0; i < kCount; ++i) to[i] = lanes_of<Register>(warp, in.operand[i]);
  if (kSpace == Space::parameters && same_in_all_lanes(warp, in.operand[kCount])) {
    Memory values[kCount];
    const int lane = std::countr_zero(lanes);
    std::memcpy(values, reach<kSpace, false>(warp, in, kCount, lane, sizeof values), sizeof values);
    each_lane(lanes, [&](int each) {
      for (int i = 0; i < kCount; ++i) to[i][each] = static_cast<Register>(values[i]);
    });
    return;
  }
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    Memory values[kCount];
    std::memcpy(values, reach<kSpace, false>(warp, in, kCount, lane, sizeof values), sizeof values);
    for (int i = 0; i < kCount; ++i) to[i][lane] = static_cast<Register>(values[i]);
  }
}

// A store reads its address, then its registers.
template <Space kSpace, typename Memory, typename Register, int kCount>
void store(Warp& warp, const Instruction& in, uint32_t lanes) {
  const Register* from[kCount];
  for (int i = 0; i < kCount; ++i) from[i] = lanes_of<Register>(warp, in.operand[1 + i]);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    Memory values[kCount];
    for (int i = 0; i < kCount; ++i) values[i] = static_cast<Memory>(from[i][lane]);
    std::memcpy(reach<kSpace, true>(warp, in, 0, lane, sizeof values), values, sizeof values);
  }
}

// An access to one, two or four registers.  PTX ISA 9.7.9.8: .v2, .v4
template <Space kSpace, typename Memory, typename Register>
Run of_registers(const Access& which) {
  switch (which.registers) {
    case 1:
      return which.store ? store<kSpace, Memory, Register, 1> : load<kSpace, Memory, Register, 1>;
    case 2:
      return which.store ? store<kSpace, Memory, Register, 2> : load<kSpace, Memory, Register, 2>;
    case 4:
      return which.store ? store<kSpace, Memory, Register, 4> : load<kSpace, Memory, Register, 4>;
    default:
      return nullptr;
  }
}

template <Space kSpace, typename Memory>
Run of_memory(const Access& which) {
  using Wide = std::conditional_t<std::is_signed_v<Memory>, int64_t, uint64_t>;
  if (which.register_bytes == 8) return of_registers<kSpace, Memory, Wide>(which);
  if constexpr (sizeof(Memory) <= 4) {
    if (which.register_bytes == 4) return of_registers<kSpace, Memory, uint32_t>(which);
  }
  if constexpr (sizeof(Memory) <= 2) {
    if (which.register_bytes == 2) return of_registers<kSpace, Memory, uint16_t>(which);
  }
  return nullptr;
}

template <Space kSpace>
Run access_of(const Access& which) {
  if (which.type == "s8") return of_memory<kSpace, int8_t>(which);
  if (which.type == "s16") return of_memory<kSpace, int16_t>(which);
  if (which.type == "s32") return of_memory<kSpace, int32_t>(which);
  switch (type_bytes(which.type)) {
    case 1:
      return of_memory<kSpace, uint8_t>(which);
    case 2:
      return of_memory<kSpace, uint16_t>(which);
    case 4:
      return of_memory<kSpace, uint32_t>(which);
    case 8:
      return of_memory<kSpace, uint64_t>(which);
    default:
      return nullptr;
  }
}

// The result is the old value in memory.
template <Space kSpace, typename T, typename F>
void exchange(Warp& warp, const Instruction& in, uint32_t lanes) {
  each_lane(lanes, [&](int lane) {
    std::byte* memory = nullptr;
    if constexpr (kSpace == Space::shared) {
      const uint32_t at = shared_address(warp, in.operand[1], in.offset, lane, sizeof(T));
      if (!warp.shared->note_atomic(at, sizeof(T), warp.index)) {
        fault(warp, lane, warp.shared->why_not_atomic(at, sizeof(T), warp.index));
      }
      memory = warp.shared->data() + at;
    } else {
      memory = reach<kSpace, true>(warp, in, 1, lane, sizeof(T));
    }
    std::atomic_ref<T> target(*reinterpret_cast<T*>(memory));
    const T value = lanes_of<T>(warp, in.operand[2])[lane];
    T before = target.load();
    while (!target.compare_exchange_weak(before, F{}(before, value))) {
    }
    lanes_of<T>(warp, in.operand[0])[lane] = before;
  });
}

template <typename T>
void add_atomics(Operations& o, const std::string& type) {
  const auto sum = [](T a, T b) { return static_cast<T>(a + b); };
  const auto most = [](T a, T b) { return a > b ? a : b; };
  const std::string values = {operand_of<T>()};
  o["atom.global.add." + type] = {exchange<Space::global, T, decltype(sum)>,
                                  values + ":g" + values};
  o["atom.global.max." + type] = {exchange<Space::global, T, decltype(most)>,
                                  values + ":g" + values};
  o["atom.shared.add." + type] = {exchange<Space::shared, T, decltype(sum)>,
                                  values + ":s" + values};
  o["atom.shared.max." + type] = {exchange<Space::shared, T, decltype(most)>,
                                  values + ":s" + values};
}

}  // namespace

Run find_access(const Access& which) {
  if (which.space == "shared") return access_of<Space::shared>(which);
  if (which.space == "global") return access_of<Space::global>(which);
  if (which.space == "param" && !which.store) return access_of<Space::parameters>(which);
  return nullptr;
}

void add_atomic_operations(Operations& o) {
  add_atomics<uint32_t>(o, "u32");
  add_atomics<uint64_t>(o, "u64");
}

}  // namespace fp8kv::ptx
