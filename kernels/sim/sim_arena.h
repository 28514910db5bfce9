// The shared memory of a simulated block: pieces between zones that nobody may touch.
// AddressSanitizer guards the zones, or they are checked when the block ends. It knows nothing of
// fibers.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace fp8kv::sim {

// A kernel's wrong use of shared memory.
struct ArenaFault {
  std::string what;
};

class Arena {
 public:
  // For a block launched with `bytes` of shared memory: no piece is taken, and all of it is 0xff
  // (NaN).
  void begin_block(size_t bytes);
  // Piece `index` for `thread`, 16-byte aligned; the first thread that asks creates it. Throws an
  // ArenaFault if there is no room, or if another thread got that piece in another size.
  std::byte* take(size_t index, size_t bytes, int thread);
  // Throws an ArenaFault if a byte beside a piece was written.
  void end_block() const;
  // Call it after the last block of a launch.
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
  size_t bytes_ = 0;     // size of memory_
  size_t launched_ = 0;  // bytes that the block may take
  size_t taken_ = 0;
  size_t end_ = 0;  // end of the last piece and the zone behind it
  std::vector<Piece> pieces_;
  std::vector<Memory> old_;
};

}  // namespace fp8kv::sim
