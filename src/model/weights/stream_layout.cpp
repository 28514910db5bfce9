#include "model/weights/stream_layout.h"

#include <algorithm>
#include <map>

namespace fp8kv {
namespace {

// Tensors start at multiples of this in a buffer: the widest loads of kernels need it, and copies
// prefer it.
constexpr uint64_t kTensorAlignment = 256;
uint64_t aligned(uint64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

// Bytes of a tensor that lie together in its file and in the buffer.
struct Run {
  uint64_t at;  // in the buffer's tensor
  uint64_t bytes;
};

Run run_from(const StreamPlace& place, uint64_t offset) {
  const RowOrder& rows = place.rows;
  if (!rows.is_other()) return {offset, place.entry->end - place.entry->begin - offset};
  const uint64_t inside = offset % rows.row_bytes;
  const auto row =
      static_cast<uint64_t>(rows.in_model(static_cast<int64_t>(offset / rows.row_bytes)));
  return {row * rows.row_bytes + inside, rows.row_bytes - inside};
}

}  // namespace

TensorView BumpAllocator::take(DType dtype, const Shape& shape) {
  const TensorView view{buffer + at, dtype, shape};
  at += aligned(view.bytes());
  return view;
}

LayerWeights weights_in(const StreamSource& model, const StreamedLayer& layer,
                        const StreamLayout& layout, Backend* backend, BumpAllocator& region) {
  std::map<std::string, const StreamPlace*> places;
  for (const StreamPlace& place : layout.places) places[place.entry->name] = &place;
  const auto find_file = [&](const TensorEntry& entry) {
    const StreamPlace& place = *places.at(entry.name);
    return ConstTensorView(region.buffer + place.at, place.entry->dtype, place.entry->shape);
  };
  const auto take = [&](DType dtype, const Shape& shape) { return region.take(dtype, shape); };
  const auto find = [&](const ModelTensor& tensor) {
    return find_weight(tensor, model.weights.at(tensor), backend, find_file, take);
  };
  const auto numbers = [&](const ModelTensor& tensor) {
    return numbers_in(model.weights.checkpoint(), tensor);
  };
  return make_layer_weights(model.config, layer.index, layer.part, {find, take, numbers, backend});
}

StreamLayout layout_of(const StreamSource& model, const StreamedLayer& layer) {
  StreamLayout layout;
  const TensorMap& files = model.weights.checkpoint().tensors();
  for (const ModelTensor& tensor : needed_tensors(model.config, layer.index, layer.part)) {
    const Weight weight = model.weights.at(tensor);
    const auto entries = weight.plain ? std::vector{weight.plain} : tensors_of(*weight.stored);
    for (const TensorEntry* const entry : entries) {
      const TensorLocation& location = files.at(entry->name);
      layout.places.push_back({location.shard, entry, 0, location.rows});
    }
  }
  std::sort(layout.places.begin(), layout.places.end(),
            [](const StreamPlace& a, const StreamPlace& b) {
              return a.shard != b.shard ? a.shard < b.shard : a.entry->begin < b.entry->begin;
            });
  for (StreamPlace& place : layout.places) {
    place.at = layout.bytes;
    layout.bytes += aligned(place.entry->end - place.entry->begin);
  }
  layout.region_at = layout.bytes;
  std::byte anywhere{};  // stands in for the buffer; nobody reads from the views
  BumpAllocator region{&anywhere, layout.bytes};
  static_cast<void>(weights_in(model, layer, layout, nullptr, region));
  layout.bytes = region.at;
  return layout;
}

std::vector<StreamBlock> blocks_of(const StreamLayout& layout, size_t block_bytes) {
  std::vector<StreamBlock> blocks;
  for (const StreamPlace& place : layout.places) {
    uint64_t from = place.entry->begin;
    while (from < place.entry->end) {
      const bool goes_on = !blocks.empty() && blocks.back().shard == place.shard &&
                           blocks.back().offset + blocks.back().bytes == from &&
                           blocks.back().bytes < block_bytes;
      if (!goes_on) blocks.push_back({nullptr, place.shard, from, 0, {}});
      StreamBlock& block = blocks.back();
      const Run run = run_from(place, from - place.entry->begin);
      const auto bytes =
          static_cast<size_t>(std::min<uint64_t>(run.bytes, block_bytes - block.bytes));
      block.pieces.push_back({&place.entry->name, block.bytes, place.at + run.at, bytes});
      block.bytes += bytes;
      from += bytes;
    }
  }
  return blocks;
}

}  // namespace fp8kv
