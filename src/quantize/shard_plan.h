// Plans the contents of a quantised model's shards, and their positions. Writes nothing.
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

// A tensor with its source and destination: `from` is in the source's shard, offsets are in the new
// one.
struct MovedTensor {
  TensorEntry from;          // a tensor, or the rows of one that become a matrix
  std::string rows_of = {};  // the tensor that the rows come from; "": `from` is a whole tensor
  uint64_t to = 0;           // offset of its bytes or codes
  bool quantised = false;    // with scales
  uint64_t scales_to = 0;
  Shape scales = {};  // [rows, 1], [blocks of rows, blocks of columns] or [1]
  // For schemes with static inputs: the amax of the matrix's inputs.
  std::optional<float> input_amax = {};
  uint64_t input_scale_to = 0;  // [1]
};

struct ShardPlan {
  std::string file;  // the same name as in the source
  std::string head;  // the header before the data
  uint64_t bytes = 0;
  std::vector<MovedTensor> tensors;  // in the source's order
  std::vector<TensorEntry> entries;  // everything in the new shard, at the new positions
};

struct FolderPlan {
  std::vector<ShardPlan> shards;
  uint64_t matrices = 0;        // quantised matrices
  uint64_t matrices_bytes = 0;  // bytes of these in the source
  uint64_t before_bytes = 0;    // all tensors in the source
  uint64_t after_bytes = 0;
  // For schemes with blocks: the first matrix whose rows or columns blocks do not divide; "" if
  // none.
  std::string uneven;
};

// Plans shard by shard, as in the source. Within a shard the order is that of safetensors' own
// writer: wide dtypes first, then by name. Scales have the dtype of the weights.
// `inputs`: the amax of each matrix's inputs by name, from InputRanges, or null. Only schemes with
// static inputs use it; without it they can only be planned.
// Throws if the checkpoint already has a tensor with the name of a scale.
FolderPlan plan_shards(const Checkpoint& checkpoint, const LinearChoice& choice,
                       const Fp8Scheme& scheme, const std::map<std::string, float>* inputs);

// The index of the result; nullopt if the model is a single file.
std::optional<std::string> index_text(const Checkpoint& checkpoint, const FolderPlan& plan);

}  // namespace fp8kv
