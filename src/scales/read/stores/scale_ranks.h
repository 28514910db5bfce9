// One checkpoint with a file per tensor-parallel rank. All ranks have the same KV scales.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "scales/read/stores/scale_store.h"

namespace fp8kv {

inline constexpr int64_t kMostTpRanks = 4096;

struct RankFile {
  std::string name;  // "rank0.safetensors"
  std::map<std::string, StoredTensor> tensors;
  std::function<std::string(const std::string&)> read;
};

// The tensors of all ranks, by name.
std::vector<StoredTensor> tensors_of_ranks(const std::vector<RankFile>& ranks);

// The bytes of a tensor, equal in every rank. Throws, showing both values, if two ranks differ.
std::string read_in_ranks(const std::vector<RankFile>& ranks, const std::string& tensor);

}  // namespace fp8kv
