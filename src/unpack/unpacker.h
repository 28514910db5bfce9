// Unpacks bytes that lie in memory, or are mapped, part by part: holds no more than a window of the
// format, whatever they unpack to. Knows nothing of what they are.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "unpack/packing.h"

namespace fp8kv {

class Unpacker {
 public:
  // Several members of gzip and several frames of Zstandard are read as one; zeros behind gzip's
  // are padding. REQUIRES `packing` other than none, and `packed` to outlive this.
  Unpacker(Packing packing, std::string_view packed);
  ~Unpacker();
  Unpacker(Unpacker&&) noexcept;

  // Appends some more bytes, about `wanted`; false where the data is at its end and nothing was
  // appended. Throws for damaged data, and for data that ends too early.
  bool more(std::string& out, size_t wanted);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fp8kv
