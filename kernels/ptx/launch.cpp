#include "kernels/ptx/launch.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>

#include "base/error.h"

namespace fp8kv::ptx {
namespace {

constexpr uint32_t kMostThreads = 1024;
constexpr uint32_t kMostBlocksX = 0x7FFFFFFF;
constexpr uint32_t kMostBlocksYz = 65535;

uint64_t threads_of(const Extent& block) {
  return uint64_t{block.x} * block.y * block.z;
}

// A running block: its warps and its shared memory. Reused for one block after another.
class Block {
 public:
  Block(const Program& program, const Launch& launch, const GlobalMemory& global);
  uint64_t run(const Extent& index);

 private:
  void begin(Warp& warp, const Extent& index);
  void fill(Warp& warp, const SpecialRegister& which);
  void require_barrier() const;

  const Program& program_;
  const Launch& launch_;
  SharedMemory shared_;
  std::unique_ptr<std::byte[]> registers_;
  std::vector<Warp> warps_;
  std::vector<size_t> order_;
};

Block::Block(const Program& program, const Launch& launch, const GlobalMemory& global)
    : program_(program),
      launch_(launch),
      shared_(launch.shared_bytes),
      warps_((threads_of(launch.block) + kLanes - 1) / kLanes),
      order_(warps_.size()) {
  constexpr size_t kLine = 64;
  const size_t bytes = program.registers.size(), constants = program.first_constant;
  registers_ = std::make_unique_for_overwrite<std::byte[]>(warps_.size() * bytes + kLine);
  std::byte* first = registers_.get();
  first += (kLine - reinterpret_cast<uint64_t>(first) % kLine) % kLine;
  for (size_t i = 0; i < warps_.size(); ++i) {
    warps_[i].program = &program;
    warps_[i].registers = first + i * bytes;
    // No instruction writes to a constant, and every other register is written before it is read.
    std::memcpy(warps_[i].registers + constants, program.registers.data() + constants,
                bytes - constants);
    warps_[i].index = static_cast<int>(i);
    warps_[i].shared = &shared_;
    warps_[i].global = &global;
    const auto parameters = reinterpret_cast<uint64_t>(launch.parameters.data());
    warps_[i].parameters = {parameters, parameters + launch.parameters.size()};
  }
}

void Block::fill(Warp& warp, const SpecialRegister& which) {
  if (which.special == Special::parameters) {
    std::fill_n(lanes_of<uint64_t>(warp, which.operand), kLanes,
                warp.parameters.begin + which.offset);
    return;
  }
  const Extent &block = launch_.block, &grid = launch_.grid, &at = warp.block_index;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t thread = static_cast<uint32_t>(warp.index) * kLanes + lane;
    const uint32_t values[] = {thread % block.x,
                               thread / block.x % block.y,
                               thread / block.x / block.y,
                               at.x,
                               at.y,
                               at.z,
                               grid.x,
                               grid.y,
                               grid.z,
                               block.x,
                               block.y,
                               block.z,
                               lane};
    lanes_of<uint32_t>(warp, which.operand)[lane] = values[static_cast<size_t>(which.special)];
  }
}

void Block::begin(Warp& warp, const Extent& index) {
  warp.defined = program_.defined;
  warp.low = program_.defined;
  const uint64_t left = threads_of(launch_.block) - static_cast<uint64_t>(warp.index) * kLanes;
  warp.live = left >= kLanes ? kAllLanes : (1u << left) - 1;
  warp.waiting = 0;
  warp.at_barrier = false;
  warp.block_index = index;
  warp.copies.clear();
  std::fill(std::begin(warp.pc), std::end(warp.pc), 0u);
  std::fill(std::begin(warp.groups), std::end(warp.groups), 0u);
  for (const SpecialRegister& each : program_.specials) fill(warp, each);
}

// Throws unless every thread of the block has reached the barrier.
void Block::require_barrier() const {
  const auto waits =
      std::find_if(warps_.begin(), warps_.end(), [](const Warp& warp) { return warp.at_barrier; });
  for (const Warp& warp : warps_) {
    if (warp.at_barrier && std::popcount(warp.live) == kLanes) continue;
    const uint64_t before = static_cast<uint64_t>(warp.index) * kLanes;
    const uint64_t there = std::min<uint64_t>(kLanes, threads_of(launch_.block) - before);
    if (warp.at_barrier && std::popcount(warp.live) == static_cast<int>(there)) continue;
    fault(*waits, 0,
          cat("waits for all threads of the block, and some of warp ", warp.index, " have left"));
  }
}

uint64_t Block::run(const Extent& index) {
  shared_.clear();
  for (Warp& warp : warps_) begin(warp, index);
  std::iota(order_.begin(), order_.end(), size_t{0});
  uint64_t random = launch_.seed + index.x + uint64_t{index.y} * launch_.grid.x;
  uint64_t count = 0;
  while (true) {
    if (launch_.seed != 0) {
      for (size_t i = order_.size(); i > 1; --i) {
        // Knuth's MMIX generator.
        random = random * 6364136223846793005u + 1442695040888963407u;
        std::swap(order_[i - 1], order_[(random >> 33) % i]);
      }
    }
    for (const size_t i : order_) count += run_warp(warps_[i]);
    if (std::none_of(warps_.begin(), warps_.end(), [](const Warp& w) { return w.at_barrier; })) {
      return count;
    }
    require_barrier();
    for (Warp& warp : warps_) warp.at_barrier = false;
    shared_.pass_barrier();
  }
}

}  // namespace

std::string why_not(const Program& program, const Launch& launch) {
  const uint64_t threads = threads_of(launch.block);
  const Extent& grid = launch.grid;
  std::string what;
  if (threads == 0 || threads > kMostThreads) {
    what = cat("a block of ", threads, " threads, from 1 to ", kMostThreads, " are possible");
  } else if (program.most_threads != 0 && threads > program.most_threads) {
    what = cat("a block of ", threads, " threads, its launch bounds allow ", program.most_threads);
  } else if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    what = "a grid without a block";
  } else if (grid.x > kMostBlocksX || grid.y > kMostBlocksYz || grid.z > kMostBlocksYz) {
    what = cat("a grid of ", grid.x, " x ", grid.y, " x ", grid.z, " blocks, ", kMostBlocksX, " x ",
               kMostBlocksYz, " x ", kMostBlocksYz, " are possible");
  } else if (launch.shared_bytes > launch.allowed_shared_bytes) {
    what = cat(launch.shared_bytes, " bytes of shared memory, the kernel was given ",
               launch.allowed_shared_bytes);
  } else if (launch.parameters.size() != program.parameter_bytes) {
    what =
        cat(launch.parameters.size(), " bytes of parameters, expected ", program.parameter_bytes);
  }
  return what.empty() ? what : cat(program.name, ": ", what);
}

uint64_t run_grid(const Program& program, const Launch& launch, const GlobalMemory& global,
                  ThreadPool& pool) {
  const Extent& grid = launch.grid;
  const int64_t blocks = int64_t{grid.x} * grid.y * grid.z;
  std::atomic<int64_t> next = 0;
  std::atomic<uint64_t> count = 0;
  // A Block is large, so each thread makes one and runs blocks of the grid in it.
  pool.run(std::min<int64_t>(blocks, pool.threads()), [&](int64_t, int) {
    Block block(program, launch, global);
    for (int64_t i = next++; i < blocks; i = next++) {
      const auto at = static_cast<uint64_t>(i);
      count += block.run({static_cast<uint32_t>(at % grid.x),
                          static_cast<uint32_t>(at / grid.x % grid.y),
                          static_cast<uint32_t>(at / grid.x / grid.y)});
    }
  });
  return count;
}

}  // namespace fp8kv::ptx
