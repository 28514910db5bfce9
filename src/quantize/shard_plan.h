// What the shards of a quantised model hold, and where. Writes nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "quantize/linear_choice.h"
#include "quantize/schemes.h"

namespace fp8kv {

// A tensor on its way: `from` is in the source's shard, the offsets are in the new one.
struct MovedTensor {
  TensorEntry from;          // or the rows of one that are a matrix of their own
  std::string rows_of = {};  // of which; "": it is a whole tensor
  uint64_t to = 0;           // its bytes, or its codes
  bool quantised = false;    // with scales
  uint64_t scales_to = 0;
  Shape scales = {};  // [rows, 1], [blocks of rows, blocks of columns] or [1]
  // Of a scheme with static inputs: the largest magnitude of what the matrix multiplies.
  std::optional<float> input_amax = {};
  uint64_t input_scale_to = 0;  // [1]
};

struct ShardPlan {
  std::string file;  // as in the source
  std::string head;  // what stands before the data
  uint64_t bytes = 0;
  std::vector<MovedTensor> tensors;  // in the source's order
  std::vector<TensorEntry> entries;  // all that it holds, at their new places
};

struct FolderPlan {
  std::vector<ShardPlan> shards;
  uint64_t matrices = 0;        // that are quantised
  uint64_t matrices_bytes = 0;  // of these, in the source
  uint64_t before_bytes = 0;    // of all tensors
  uint64_t after_bytes = 0;
  // Of a scheme with blocks: the first matrix whose rows or columns these do not divide; "".
  std::string uneven;
};

// Shard by shard as the source has them; within a shard as safetensors itself would write it: wide
// dtypes first, then by name. Scales have the dtype of the weights. Throws for a checkpoint that
// has a tensor of a name that a scale is to get. `inputs`: by the name of each matrix, as
// InputRanges has them, or null; of a scheme with static inputs alone, which without them is only
// planned.
FolderPlan plan_shards(const Checkpoint& checkpoint, const LinearChoice& choice,
                       const Fp8Scheme& scheme, const std::map<std::string, float>* inputs);

// The index of the result; nullopt for a model in one file.
std::optional<std::string> index_text(const Checkpoint& checkpoint, const FolderPlan& plan);

}  // namespace fp8kv
