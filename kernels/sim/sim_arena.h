// The shared memory of a block that the simulator runs: pieces between zones that nobody may touch,
// which AddressSanitizer guards, or a look at them when the block ends. Knows no fibers.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace fp8kv::sim {

// Of a kernel, in its use of shared memory.
struct ArenaFault {
  std::string what;
};

class Arena {
 public:
  // For a block launched with `bytes` of it: no piece is taken, and all of it is 0xff (NaN).
  void begin_block(size_t bytes);
  // Piece `index` for `thread`, made for whoever asks first, 16-byte aligned. Throws an ArenaFault
  // when there is no room, and when another thread was given a piece of another size.
  std::byte* take(size_t index, size_t bytes, int thread);
  // Throws an ArenaFault when a byte beside a piece was written.
  void end_block() const;
  // After the last block of a launch.
  void end_launch() { old_.clear(); }

 private:
  struct FreeDeleter {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte, FreeDeleter>;
  struct Piece {
    size_t offset;
    size_t bytes;
  };

  Memory memory_;
  size_t bytes_ = 0;     // of memory_
  size_t launched_ = 0;  // that the block may take
  size_t taken_ = 0;
  size_t end_ = 0;  // of the last piece and the zone behind it
  std::vector<Piece> pieces_;
  std::vector<Memory> old_;
};

}  // namespace fp8kv::sim
