#include "kernels/ptx/machine/warp.h"

#include "base/error.h"

namespace fp8kv::ptx {
namespace {

// The lanes at the lowest address, and the next address that has lanes. Running the lowest first
// brings lanes together again after a branch.
struct Group {
  uint32_t pc = ~0u;
  uint32_t lanes = 0;
  uint32_t next = ~0u;
};

Group lowest_group(const Warp& warp, uint32_t lanes) {
  Group group;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const uint32_t pc = warp.pc[lane];
    if (pc < group.pc) {
      group = {pc, 1u << lane, group.pc};
    } else if (pc == group.pc) {
      group.lanes |= 1u << lane;
    } else if (pc < group.next) {
      group.next = pc;
    }
  }
  return group;
}

void send(Warp& warp, uint32_t lanes, uint32_t pc) {
  for (; lanes != 0; lanes &= lanes - 1) warp.pc[std::countr_zero(lanes)] = pc;
}

[[noreturn]] void fault_undefined(const Warp& warp, const Operand& operand, uint32_t lanes) {
  fault(warp, std::countr_zero(lanes & ~warp.defined[operand.index]),
        "reads a register that nothing was written to");
}

void require_defined(const Warp& warp, const Instruction& instruction, uint32_t lanes) {
  for (int i = instruction.n_written; i < instruction.n_operands; ++i) {
    const Operand& operand = instruction.operand[i];
    if (lanes & ~warp.defined[operand.index]) fault_undefined(warp, operand, lanes);
  }
}

void define(Warp& warp, const Operand& operand, uint32_t lanes, uint32_t as, uint32_t low) {
  uint32_t& defined = warp.defined[operand.index];
  defined = (defined & ~lanes) | (as & lanes);
  uint32_t& lower = warp.low[operand.index];
  lower = (lower & ~lanes) | (low & lanes);
}

void define(Warp& warp, const Operand& operand, uint32_t lanes, uint32_t as) {
  define(warp, operand, lanes, as, as);
}

// Moves and packs pass on whether their sources were written to. Compilers copy registers that are
// never used, and build words of which only the lower half is read.
bool hands_on(Warp& warp, const Instruction& instruction, uint32_t lanes) {
  const Operand* operand = instruction.operand;
  const auto defined = [&](int i) { return warp.defined[operand[i].index]; };
  const auto low = [&](int i) { return warp.low[operand[i].index]; };
  if (instruction.kind == Kind::moves) {
    const uint32_t as = defined(1), lower = low(1);
    instruction.run(warp, instruction, lanes);
    define(warp, operand[0], lanes, as, lower);
  } else if (instruction.kind == Kind::packs) {
    const uint32_t as = defined(1) & defined(2), lower = defined(1);
    instruction.run(warp, instruction, lanes);
    define(warp, operand[0], lanes, as, lower);
  } else if (instruction.kind == Kind::unpacks) {
    const uint32_t as = defined(2), lower = low(2);
    instruction.run(warp, instruction, lanes);
    define(warp, operand[0], lanes, lower);
    define(warp, operand[1], lanes, as);
  } else {
    return false;
  }
  return true;
}

void run_one(Warp& warp, const Instruction& instruction, uint32_t lanes) {
  const Operand* operand = instruction.operand;
  if (hands_on(warp, instruction, lanes)) return;
  if (instruction.kind == Kind::chooses) {
    const Operand& by = operand[3];
    if (lanes & ~warp.defined[by.index]) fault_undefined(warp, by, lanes);
    const uint32_t first = *lanes_of<uint32_t>(warp, by);
    const uint32_t as =
        (warp.defined[operand[1].index] & first) | (warp.defined[operand[2].index] & ~first);
    instruction.run(warp, instruction, lanes);
    return define(warp, operand[0], lanes, as);
  }
  if (instruction.kind != Kind::narrows) {
    require_defined(warp, instruction, lanes);
  } else if (lanes & ~warp.low[operand[1].index]) {
    fault(warp, std::countr_zero(lanes & ~warp.low[operand[1].index]),
          "reads a register that nothing was written to");
  }
  instruction.run(warp, instruction, lanes);
  for (int i = 0; i < instruction.n_written; ++i) define(warp, operand[i], lanes, lanes);
}

// The lanes that a joint instruction waits for; lanes that left do not count.
uint32_t wanted_by(Warp& warp, const Instruction& instruction, uint32_t lanes) {
  if (instruction.kind == Kind::whole && warp.live != kAllLanes) {
    fault(warp, std::countr_zero(lanes), "needs all 32 lanes of the warp, and some have left");
  }
  if (instruction.kind != Kind::gathers) return warp.live;
  const Operand& mask = instruction.operand[instruction.n_operands - 1];
  if (lanes & ~warp.defined[mask.index]) fault_undefined(warp, mask, lanes);
  const int first = std::countr_zero(lanes);
  const uint32_t named = lanes_of<uint32_t>(warp, mask)[first];
  if ((lanes & named) != lanes) fault(warp, first, "a lane is not in the mask that it gives");
  return named & warp.live;
}

[[noreturn]] void fault_apart(Warp& warp) {
  const int lane = std::countr_zero(warp.waiting);
  warp.at = warp.pc[lane];
  fault(warp, lane, "waits for lanes of its warp that have gone elsewhere (divergence)");
}

// Lets waiting lanes go on once all the lanes that they need have arrived.
bool has_gathered(Warp& warp) {
  const Group group = lowest_group(warp, warp.waiting);
  warp.at = group.pc;
  const uint32_t wanted = wanted_by(warp, warp.program->code[group.pc], group.lanes);
  return (wanted & ~group.lanes) == 0;
}

struct Step {
  Group group;
  bool parted = false;  // lanes may stand at different places now
};

// A conditional branch sends some lanes elsewhere.  PTX ISA 9.7.12.2.
void run_branch(Warp& warp, const Instruction& instruction, uint32_t lanes, Step& step) {
  if (lanes == step.group.lanes) {
    step.group.pc = instruction.target;
  } else if (lanes == 0) {
    ++step.group.pc;
  } else {
    send(warp, step.group.lanes & ~lanes, step.group.pc + 1);
    send(warp, lanes, instruction.target);
    step.parted = true;
  }
}

void leave(Warp& warp, uint32_t lanes, Step& step) {
  warp.live &= ~lanes;
  send(warp, step.group.lanes, step.group.pc + 1);
  step.parted = true;
}

// Instructions that need several lanes at once.  PTX ISA 9.7.9.6, 9.7.13.1, 9.7.14.
void run_together(Warp& warp, const Instruction& instruction, uint32_t lanes, Step& step) {
  if (lanes != step.group.lanes) {
    fault(warp, std::countr_zero(step.group.lanes), "only some lanes execute it (divergence)");
  }
  const uint32_t wanted = wanted_by(warp, instruction, lanes);
  if (wanted & ~lanes) {
    send(warp, lanes, step.group.pc);
    warp.waiting |= lanes;
    step.parted = true;
    return;
  }
  if (instruction.kind == Kind::barrier) {
    warp.at_barrier = true;
    send(warp, lanes, step.group.pc + 1);
    step.parted = true;
    return;
  }
  run_one(warp, instruction, lanes);
  ++step.group.pc;
}

uint32_t guarded(Warp& warp, const Instruction& instruction, uint32_t lanes) {
  if (!instruction.guarded) return lanes;
  if (lanes & ~warp.defined[instruction.guard.index]) {
    fault_undefined(warp, instruction.guard, lanes);
  }
  const uint32_t holds = *lanes_of<uint32_t>(warp, instruction.guard);
  return lanes & (instruction.negated ? ~holds : holds);
}

// Runs one group until it splits, or reaches a place where other lanes are.
uint64_t run_group(Warp& warp, Step step) {
  uint64_t count = 0;
  while (!step.parted) {
    if (step.group.pc >= step.group.next) {
      send(warp, step.group.lanes, step.group.pc);
      break;
    }
    const Instruction& instruction = warp.program->code[step.group.pc];
    warp.at = step.group.pc;
    const uint32_t lanes = guarded(warp, instruction, step.group.lanes);
    count += static_cast<uint64_t>(std::popcount(lanes));
    if (instruction.kind <= Kind::chooses) {
      if (lanes != 0) run_one(warp, instruction, lanes);
      ++step.group.pc;
    } else if (instruction.kind == Kind::branch) {
      run_branch(warp, instruction, lanes, step);
    } else if (instruction.kind == Kind::leaves) {
      leave(warp, lanes, step);
    } else {
      run_together(warp, instruction, lanes, step);
    }
  }
  return count;
}

}  // namespace

void fault(const Warp& warp, int lane, const std::string& what) {
  const Extent& block = warp.block_index;
  throw Error(
      cat(warp.program->name, ": '", warp.program->text[warp.at], "', block (", block.x, ", ",
          block.y, ", ", block.z, "), thread ", warp.index * kLanes + lane, ": ", what),
      "", ErrorKind::device);
}

uint64_t run_warp(Warp& warp) {
  uint64_t count = 0;
  while (warp.live != 0 && !warp.at_barrier) {
    uint32_t free = warp.live & ~warp.waiting;
    if (free == 0) {
      if (!has_gathered(warp)) fault_apart(warp);
      free = lowest_group(warp, warp.waiting).lanes;
      warp.waiting &= ~free;
    }
    count += run_group(warp, {lowest_group(warp, free)});
  }
  return count;
}

}  // namespace fp8kv::ptx
