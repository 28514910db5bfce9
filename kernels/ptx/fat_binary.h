// The container that nvcc puts PTX into, inside an object.
#pragma once

#include <string_view>
#include <vector>

namespace fp8kv::ptx {

struct PtxText {
  int target;  // 90 for sm_90
  std::string_view text;
};

// The PTX texts in the container that __cudaRegisterFatBinary gets. Throws if one is compressed:
// nvcc needs --no-compress.
std::vector<PtxText> ptx_texts(const void* container);

}  // namespace fp8kv::ptx
