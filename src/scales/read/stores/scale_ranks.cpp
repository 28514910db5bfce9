#include "scales/read/stores/scale_ranks.h"

#include "base/error.h"
#include "scales/scale_tensors.h"

namespace fp8kv {
namespace {

const StoredTensor& tensor_at(const RankFile& rank, const std::string& name) {
  const auto found = rank.tensors.find(name);
  if (found != rank.tensors.end()) return found->second;
  throw Error(cat(quote(name), ": is missing from ", rank.name, ", but another rank has it"),
              "copy the whole folder");
}

std::string shown(const StoredTensor& tensor, const std::string& bytes) {
  const bool number = tensor.shape.elements() == 1 && is_readable_scale(tensor.dtype, tensor.shape);
  return number ? cat(scale_numbers(bytes, tensor.dtype)[0])
                : cat(dtype_name(tensor.dtype), " ", tensor.shape.text());
}

}  // namespace

std::vector<StoredTensor> tensors_of_ranks(const std::vector<RankFile>& ranks) {
  std::map<std::string, StoredTensor> all;
  for (const RankFile& rank : ranks) all.insert(rank.tensors.begin(), rank.tensors.end());
  std::vector<StoredTensor> tensors;
  for (auto& [name, tensor] : all) tensors.push_back(std::move(tensor));
  return tensors;
}

std::string read_in_ranks(const std::vector<RankFile>& ranks, const std::string& tensor) {
  const StoredTensor& first = tensor_at(ranks[0], tensor);
  const std::string bytes = ranks[0].read(tensor);
  for (const RankFile& rank : ranks) {
    const StoredTensor& other = tensor_at(rank, tensor);
    const std::string found = rank.read(tensor);
    if (other.dtype == first.dtype && other.shape == first.shape && found == bytes) continue;
    throw Error(cat(quote(tensor), " is ", shown(first, bytes), " in ", ranks[0].name, " and ",
                    shown(other, found), " in ", rank.name, ", expected the same in every rank"),
                "scales of one tensor-parallel split serve no other: calibrate again");
  }
  return bytes;
}

}  // namespace fp8kv
