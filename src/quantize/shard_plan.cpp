#include "quantize/shard_plan.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "json/json.h"

namespace fp8kv {
namespace {

int64_t blocks_of(int64_t size, int64_t block) {
  return block == 0 ? 1 : (size + block - 1) / block;
}

Shape scales_shape(const Shape& shape, const Fp8Scheme& scheme) {
  if (scheme.block_rows == 0 && scheme.block_columns == 0) return {1};
  return {blocks_of(shape[0], scheme.block_rows), blocks_of(shape[1], scheme.block_columns)};
}

bool is_uneven(const Shape& shape, const Fp8Scheme& scheme) {
  const auto uneven = [](int64_t size, int64_t block) { return block > 1 && size % block != 0; };
  return uneven(shape[0], scheme.block_rows) || uneven(shape[1], scheme.block_columns);
}

std::string scale_name(const std::string& weight) {
  return weight + "_scale";  // "....weight_scale"
}

// Returns "....input_scale" for "....weight".
std::string input_scale_name(const std::string& weight) {
  return weight.substr(0, weight.rfind('.') + 1) + "input_scale";
}

uint64_t bytes_of(const TensorEntry& entry) {
  return entry.end - entry.begin;
}

TensorEntry entry_of(std::string name, DType dtype, const Shape& shape) {
  const uint64_t bytes = static_cast<uint64_t>(shape.elements()) * dtype_bytes(dtype);
  return {std::move(name), dtype, shape, 0, bytes};
}

// Adds the entries that a tensor has in the new shard: itself, or codes and scales.
void add_entries(const MovedTensor& tensor, std::vector<TensorEntry>& entries) {
  if (!tensor.quantised) {
    entries.push_back(tensor.from);
    return;
  }
  entries.push_back(entry_of(tensor.from.name, DType::f8_e4m3, tensor.from.shape));
  entries.push_back(entry_of(scale_name(tensor.from.name), tensor.from.dtype, tensor.scales));
  if (!tensor.input_amax) return;
  entries.push_back(entry_of(input_scale_name(tensor.from.name), tensor.from.dtype, {1}));
}

void sort_as_written(std::vector<TensorEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return a.dtype == b.dtype ? a.name < b.name : a.dtype > b.dtype;
  });
}

// Without `inputs`, returns a placeholder.
float input_amax_of(const std::string& weight, const std::map<std::string, float>* inputs) {
  return inputs == nullptr ? 0.0f : inputs->at(weight);
}

// The tensor itself, or the matrices that it is split into.
std::vector<MovedTensor> moved(const TensorEntry& entry, const LinearChoice& choice) {
  const auto split = choice.split.find(entry.name);
  if (split == choice.split.end()) return {MovedTensor{.from = entry}};
  std::vector<MovedTensor> all;
  for (const SplitMatrix& rows : split->second) {
    const uint64_t row_bytes = static_cast<uint64_t>(rows.shape[1]) * dtype_bytes(entry.dtype);
    const uint64_t begin = entry.begin + static_cast<uint64_t>(rows.first_row) * row_bytes;
    const uint64_t end = begin + static_cast<uint64_t>(rows.shape[0]) * row_bytes;
    all.push_back(
        {.from = {rows.name, entry.dtype, rows.shape, begin, end}, .rows_of = entry.name});
  }
  return all;
}

ShardPlan plan_shard(const Shard& shard, const LinearChoice& choice, const Fp8Scheme& scheme,
                     const std::map<std::string, float>* inputs) {
  ShardPlan plan;
  plan.file = shard.file;
  for (const TensorEntry& entry : shard.header.tensors) {
    for (MovedTensor& tensor : moved(entry, choice)) {
      const std::string& name = tensor.from.name;
      tensor.quantised = choice.quantised.contains(name);
      if (tensor.quantised) tensor.scales = scales_shape(tensor.from.shape, scheme);
      if (tensor.quantised && scheme.static_inputs) {
        tensor.input_amax = input_amax_of(name, inputs);
      }
      add_entries(tensor, plan.entries);
      plan.tensors.push_back(std::move(tensor));
    }
  }
  sort_as_written(plan.entries);
  plan.head = safetensors_head(plan.entries, shard.header.metadata);
  uint64_t at = plan.head.size();
  std::map<std::string, uint64_t> places;
  for (TensorEntry& entry : plan.entries) {
    const uint64_t bytes = bytes_of(entry);
    entry.begin = at;
    entry.end = at += bytes;
    places[entry.name] = entry.begin;
  }
  plan.bytes = at;
  for (MovedTensor& tensor : plan.tensors) {
    tensor.to = places.at(tensor.from.name);
    if (tensor.quantised) tensor.scales_to = places.at(scale_name(tensor.from.name));
    if (tensor.input_amax) tensor.input_scale_to = places.at(input_scale_name(tensor.from.name));
  }
  return plan;
}

void count(const ShardPlan& shard, const Fp8Scheme& scheme, FolderPlan& plan) {
  for (const MovedTensor& tensor : shard.tensors) {
    plan.before_bytes += bytes_of(tensor.from);
    if (!tensor.quantised) continue;
    ++plan.matrices;
    plan.matrices_bytes += bytes_of(tensor.from);
    if (plan.uneven.empty() && is_uneven(tensor.from.shape, scheme)) {
      plan.uneven = cat(quote(tensor.from.name), " ", tensor.from.shape.text());
    }
  }
  for (const TensorEntry& entry : shard.entries) plan.after_bytes += bytes_of(entry);
}

}  // namespace

FolderPlan plan_shards(const Checkpoint& checkpoint, const LinearChoice& choice,
                       const Fp8Scheme& scheme, const std::map<std::string, float>* inputs) {
  for (const std::string& weight : choice.quantised) {
    for (const std::string& name : {scale_name(weight), input_scale_name(weight)}) {
      if (checkpoint.find(name) == nullptr) continue;
      fail(quote(checkpoint.folder().string()), ": tensor ", quote(name),
           ": is there already, though ", quote(weight), " is not quantised");
    }
  }
  FolderPlan plan;
  for (const Shard& shard : checkpoint.shards()) {
    plan.shards.push_back(plan_shard(shard, choice, scheme, inputs));
    count(plan.shards.back(), scheme, plan);
  }
  return plan;
}

std::optional<std::string> index_text(const Checkpoint& checkpoint, const FolderPlan& plan) {
  const std::optional<Json>& old = checkpoint.index();
  if (!old) return std::nullopt;
  JsonWriter out;
  out.begin_object().key("metadata").begin_object();
  if (const auto metadata = old->find("metadata"); metadata && metadata->is_object()) {
    for (size_t i = 0; i < metadata->size(); ++i) {
      if (metadata->key(i) != "total_size") out.member(metadata->key(i), metadata->value(i));
    }
  }
  out.member("total_size", plan.after_bytes).end_object();
  std::map<std::string, std::string> files;
  for (const ShardPlan& shard : plan.shards) {
    for (const TensorEntry& entry : shard.entries) files[entry.name] = shard.file;
  }
  out.key("weight_map").begin_object();
  for (const auto& [name, file] : files) out.member(name, file);
  return out.end_object().end_object().text();
}

}  // namespace fp8kv
