// ld, st and atom.  PTX ISA 9.7.9.8, 9.7.9.11, 9.7.13.6.
#include <atomic>
#include <cstring>
#include <type_traits>

#include "base/text.h"
#include "kernels/ptx/operations/addresses.h"
#include "kernels/ptx/operations/operations.h"

namespace fp8kv::ptx {
namespace {

enum class Space { global, shared, parameters };

// The address operand follows the registers.
template <Space kSpace, bool kStore>
std::byte* reach(Warp& warp, const Instruction& in, int address, int lane, uint32_t bytes) {
  const Operand& operand = in.operand[address];
  if constexpr (kSpace == Space::shared) {
    const uint32_t at = shared_address(warp, operand, in.offset, lane, bytes);
    note(warp, lane,
         kStore ? warp.shared->note_write(at, bytes, warp.index)
                : warp.shared->note_read(at, bytes, warp.index));
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

// A load writes `n_written` registers; the address is the next operand.
template <Space kSpace, typename Memory, typename Register>
void load(Warp& warp, const Instruction& in, uint32_t lanes) {
  const int count = in.n_written;
  each_lane(lanes, [&](int lane) {
    Memory values[4];
    const auto bytes = static_cast<uint32_t>(sizeof(Memory)) * static_cast<uint32_t>(count);
    std::memcpy(values, reach<kSpace, false>(warp, in, count, lane, bytes), bytes);
    for (int i = 0; i < count; ++i) {
      lanes_of<Register>(warp, in.operand[i])[lane] = static_cast<Register>(values[i]);
    }
  });
}

// A store reads its address, then its registers.
template <Space kSpace, typename Memory, typename Register>
void store(Warp& warp, const Instruction& in, uint32_t lanes) {
  const int count = in.n_operands - 1;
  each_lane(lanes, [&](int lane) {
    Memory values[4];
    const auto bytes = static_cast<uint32_t>(sizeof(Memory)) * static_cast<uint32_t>(count);
    for (int i = 0; i < count; ++i) {
      values[i] = static_cast<Memory>(lanes_of<Register>(warp, in.operand[1 + i])[lane]);
    }
    std::memcpy(reach<kSpace, true>(warp, in, 0, lane, bytes), values, bytes);
  });
}

template <Space kSpace, typename Memory>
Run access(bool to_memory, int register_bytes) {
  using Wide = std::conditional_t<std::is_signed_v<Memory>, int64_t, uint64_t>;
  if (register_bytes == 8) {
    return to_memory ? store<kSpace, Memory, Wide> : load<kSpace, Memory, Wide>;
  }
  if constexpr (sizeof(Memory) <= 4) {
    if (register_bytes == 4) {
      return to_memory ? store<kSpace, Memory, uint32_t> : load<kSpace, Memory, uint32_t>;
    }
  }
  if constexpr (sizeof(Memory) <= 2) {
    if (register_bytes == 2) {
      return to_memory ? store<kSpace, Memory, uint16_t> : load<kSpace, Memory, uint16_t>;
    }
  }
  return nullptr;
}

template <Space kSpace>
Run access_of(const Access& which) {
  const auto& [space, type, bytes, to_memory] = which;
  if (type == "s8") return access<kSpace, int8_t>(to_memory, bytes);
  if (type == "s16") return access<kSpace, int16_t>(to_memory, bytes);
  if (type == "s32") return access<kSpace, int32_t>(to_memory, bytes);
  switch (type_bytes(type)) {
    case 1:
      return access<kSpace, uint8_t>(to_memory, bytes);
    case 2:
      return access<kSpace, uint16_t>(to_memory, bytes);
    case 4:
      return access<kSpace, uint32_t>(to_memory, bytes);
    case 8:
      return access<kSpace, uint64_t>(to_memory, bytes);
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
      note(warp, lane, warp.shared->note_atomic(at, sizeof(T), warp.index));
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
