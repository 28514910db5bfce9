// The container in which nvcc puts PTX into an object.
#pragma once

#include <string_view>
#include <vector>

namespace fp8kv::ptx {

struct PtxText {
  int target;  // 90 for sm_90
  std::string_view text;
};

// The PTX texts in the container that __cudaRegisterFatBinary is given. Throws where one is
// compressed: nvcc must be told --no-compress.
std::vector<PtxText> ptx_texts(const void* container);

}  // namespace fp8kv::ptx
