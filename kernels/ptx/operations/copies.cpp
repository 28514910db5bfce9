// Asynchronous copies to shared memory. They arrive only when they are waited for: as late as a
// device may let them.  PTX ISA 9.7.9.25.3.
#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "kernels/ptx/operations/addresses.h"
#include "kernels/ptx/operations/operations.h"

namespace fp8kv::ptx {
namespace {

// cp.async [shared], [global], size, valid: the bytes after `valid` become zero.
void copy(Warp& warp, const Instruction& in, uint32_t lanes) {
  const auto bytes = static_cast<uint32_t>(in.immediate);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const uint32_t to = shared_address(warp, in.operand[0], 0, lane, bytes);
    const uint64_t from =
        lanes_of<uint64_t>(warp, in.operand[1])[lane] + static_cast<uint64_t>(in.offset);
    const uint32_t valid = lanes_of<uint32_t>(warp, in.operand[2])[lane];
    if (valid > bytes) fault(warp, lane, cat("copies ", valid, " of ", bytes, " bytes"));
    if (from % bytes != 0) fault(warp, lane, cat("expected an address that ", bytes, " divides"));
    // The bytes that become zero are not read.
    constexpr uint8_t kRead = TouchedParts::kRead;
    if (valid != 0) global_bytes(warp, lane, from, valid == bytes ? bytes : 1, kRead);
    if (valid != 0) global_bytes(warp, lane, from + valid - 1, 1, kRead);
    if (!warp.shared->note_copy(to, bytes, warp.index)) {
      fault(warp, lane, warp.shared->why_not_write(to, bytes, warp.index));
    }
    warp.copies.push_back(
        {lane, warp.groups[lane], to, reinterpret_cast<const std::byte*>(from), bytes, valid});
  }
}

void commit(Warp& warp, const Instruction&, uint32_t lanes) {
  each_lane(lanes, [&](int lane) { ++warp.groups[lane]; });
}

void arrive(Warp& warp, const Copy& copy) {
  write_shared(warp, copy.lane, copy.to, copy.bytes);
  std::byte* to = warp.shared->data() + copy.to;
  std::memcpy(to, copy.from, copy.valid);
  std::memset(to + copy.valid, 0, copy.bytes - copy.valid);
}

// Lets all groups but the newest ones arrive.
void wait(Warp& warp, const Instruction& in, uint32_t lanes) {
  const auto left = static_cast<uint32_t>(in.immediate);
  const auto pending = [&](const Copy& each) {
    return !(lanes >> each.lane & 1) || each.group + left >= warp.groups[each.lane];
  };
  for (const Copy& each : warp.copies) {
    if (!pending(each)) arrive(warp, each);
  }
  std::erase_if(warp.copies, [&](const Copy& each) { return !pending(each); });
}

}  // namespace

void add_copy_operations(Operations& o) {
  o["cp.async.ca.shared.global"] = {copy, ":sgi4"};
  o["cp.async.cg.shared.global"] = {copy, ":sgi4"};
  o["cp.async.cg.shared.global.L2::128B"] = {copy, ":sgi4"};
  o["cp.async.commit_group"] = {commit, ":"};
  o["cp.async.wait_group"] = {wait, ":i"};
}

}  // namespace fp8kv::ptx
