// Instructions for lanes of a warp, or threads of a block, that work together; and hints.
#include <cstring>

#include "kernels/ptx/operations/operations.h"

namespace fp8kv::ptx {
namespace {

enum class Mode { up, down, bfly, idx };

// The lane that a lane reads from, and whether it is in its segment. `limits` has the end of
// segments in bits 0 to 4 and their mask in bits 8 to 12.  PTX ISA 9.7.9.6.
struct Source {
  int lane;
  bool inside;
};
template <Mode kMode>
Source source_of(int lane, uint32_t by, uint32_t limits) {
  by &= 31;
  const uint32_t own = static_cast<uint32_t>(lane), segment = limits >> 8 & 31, end = limits & 31;
  const uint32_t last = (own & segment) | (end & ~segment);
  const uint32_t first = own & segment;
  uint32_t from = 0;
  bool inside = false;
  if constexpr (kMode == Mode::up) {
    from = own - by;
    inside = static_cast<int>(from) >= static_cast<int>(last);
  } else {
    from = kMode == Mode::down   ? own + by
           : kMode == Mode::bfly ? own ^ by
                                 : first | (by & ~segment);
    inside = from <= last;
  }
  return {inside ? static_cast<int>(from) : lane, inside};
}

// d|p = a of another lane; p is false if there is no such lane.
template <Mode kMode>
void shuffle(Warp& warp, const Instruction& in, uint32_t lanes) {
  uint32_t values[kLanes];
  std::memcpy(values, lanes_of<uint32_t>(warp, in.operand[2]), sizeof values);
  uint32_t* to = lanes_of<uint32_t>(warp, in.operand[0]);
  const uint32_t* by = lanes_of<uint32_t>(warp, in.operand[3]);
  const uint32_t* limits = lanes_of<uint32_t>(warp, in.operand[4]);
  uint32_t inside = 0;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const Source source = source_of<kMode>(lane, by[lane], limits[lane]);
    if (!(lanes >> source.lane & 1)) fault(warp, lane, "reads from a lane that is not there");
    to[lane] = values[source.lane];
    inside |= static_cast<uint32_t>(source.inside) << lane;
  }
  uint32_t& found = *lanes_of<uint32_t>(warp, in.operand[1]);
  found = (found & ~lanes) | inside;
}

// PTX ISA 9.7.13.9.
void ballot(Warp& warp, const Instruction& in, uint32_t lanes) {
  const uint32_t votes = *lanes_of<uint32_t>(warp, in.operand[1]) & lanes;
  uint32_t* to = lanes_of<uint32_t>(warp, in.operand[0]);
  each_lane(lanes, [&](int lane) { to[lane] = votes; });
}

// Lanes run in order here, so fences and barriers of a warp have nothing to do.
void nothing(Warp&, const Instruction&, uint32_t) {}

}  // namespace

void add_warp_operations(Operations& o) {
  o["shfl.sync.up.b32"] = {shuffle<Mode::up>, "4p:4444", Kind::gathers};
  o["shfl.sync.down.b32"] = {shuffle<Mode::down>, "4p:4444", Kind::gathers};
  o["shfl.sync.bfly.b32"] = {shuffle<Mode::bfly>, "4p:4444", Kind::gathers};
  o["shfl.sync.idx.b32"] = {shuffle<Mode::idx>, "4p:4444", Kind::gathers};
  o["vote.sync.ballot.b32"] = {ballot, "4:p4", Kind::gathers};
  o["bar.warp.sync"] = {nothing, ":4", Kind::gathers};  // PTX ISA 9.7.13.2
  o["bar.sync"] = {nothing, ":i", Kind::barrier};       // PTX ISA 9.7.13.1
  o["membar.gl"] = {nothing, ":"};                      // PTX ISA 9.7.13.4
  o["griddepcontrol.wait"] = {nothing, ":"};            // PTX ISA 9.7.13.13
  o["griddepcontrol.launch_dependents"] = {nothing, ":"};
  o["prefetch.global.L2"] = {nothing, ":g"};  // PTX ISA 9.7.9.15
  o["bra"] = {nothing, ":", Kind::branch};    // PTX ISA 9.7.12.2
  o["bra.uni"] = o["bra"];
  o["ret"] = {nothing, ":", Kind::leaves};  // PTX ISA 9.7.12.6
  o["exit"] = o["ret"];
}

}  // namespace fp8kv::ptx
