#include "model/ngram_inputs.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "config/families/tensor_table.h"
#include "core/numbers/host_view.h"
#include "model/read_rows.h"

namespace fp8kv {

NgramInputs::NgramInputs(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend)
    : backend_(backend), config_(config) {
  for (const int64_t index : config.ngrams->layers) {
    Layer& layer = layers_.emplace(index, Layer{{*config.ngrams, index}, {}}).first->second;
    for (const ModelTensor& tensor : layer_tensors(config, index)) {
      if (tensor.parts.front().role != TensorRole::ngram_table) continue;
      const TensorLocation& location = checkpoint.tensors().at(tensor.name);
      const auto path = checkpoint.folder() / checkpoint.shards()[location.shard].file;
      InputFile& file = files_.try_emplace(path.string(), path).first->second;
      layer.files.push_back({&file, location.entry.begin});
    }
    check_numbers(checkpoint, index, "layer_multipliers", layer.tables.factors());
    check_numbers(checkpoint, index, "ngram_heads_vocab_sizes", layer.tables.sizes());
    check_numbers(checkpoint, index, "ngram_heads_offsets", layer.tables.begins());
  }
}

// Files may have what the config says of hashes, as transformers saves and reads it.
void NgramInputs::check_numbers(const Checkpoint& checkpoint, int64_t index, const char* buffer,
                                std::span<const int64_t> expected) const {
  const std::string name =
      cat(config_.model_prefix, "layers.", index, ".ple.ple_embedding.", buffer);
  const TensorEntry* entry = checkpoint.find(name);
  if (entry == nullptr) return;
  std::vector<int64_t> found;
  if (entry->dtype == DType::i64 && entry->shape.elements() == std::ssize(expected)) {
    found.resize(expected.size());
    const TensorLocation& location = checkpoint.tensors().at(name);
    InputFile(checkpoint.folder() / checkpoint.shards()[location.shard].file)
        .read(entry->begin, std::as_writable_bytes(std::span(found)));
  }
  if (std::equal(found.begin(), found.end(), expected.begin(), expected.end())) return;
  throw Error(cat(quote(checkpoint.folder().string()), ": tensor ", quote(name),
                  ": has other numbers than config.json gives, expected ", expected.size(),
                  " in I64, of which the first is ", expected.front()),
              "correct seed, ngram_size, heads_per_ngram, ngram_vocab_size_base or vocab_size");
}

void NgramInputs::reserve(int64_t rows) {
  if (rows <= max_rows_) return;
  const int64_t count = rows * config_.ngrams->tables();
  const Shape shape{count, config_.ngrams->row_dim()};
  stored_ = backend_.allocate(config_.dtype, shape);
  rows_ = backend_.allocate(backend_.activation_dtype(config_.dtype), shape);
  numbers_ = backend_.allocate(DType::i32, Shape{count});
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  backend_.copy_in(numbers_.view(), host_view(numbers));
  max_rows_ = rows;
}

std::optional<ConstTensorView> NgramInputs::of(const Step& step, int64_t index) {
  const auto found = layers_.find(index);
  if (found == layers_.end()) return std::nullopt;
  const Layer& layer = found->second;
  const NgramConfig& ngrams = *config_.ngrams;
  reserve(step.rows());
  ids_.clear();
  for (int64_t row = 0; row < step.rows(); ++row) {
    step.newest_first(row, ngrams.longest, newest_first_);
    layer.tables.add_rows(newest_first_, ids_);
  }
  const size_t row_bytes = static_cast<size_t>(ngrams.row_dim()) * dtype_bytes(config_.dtype);
  const int64_t of_file = layer.tables.rows() / ngrams.files;
  bytes_.resize(ids_.size() * row_bytes);
  read_rows(ids_, row_bytes, bytes_.data(), [&](int64_t id, std::span<std::byte> to) {
    const Place& place = layer.files[static_cast<size_t>(id / of_file)];
    place.file->read(place.begin + static_cast<uint64_t>(id % of_file) * row_bytes, to);
  });
  const auto count = static_cast<int64_t>(ids_.size());
  const TensorView stored = stored_.first(count), rows = rows_.first(count);
  backend_.copy_in(stored, {bytes_.data(), config_.dtype, stored.shape});
  // Looking up row i for row i gives the same numbers in the activations' type.
  backend_.embed(stored, numbers_.first(count), rows);
  return reshaped(rows, {step.rows(), ngrams.dim});
}

}  // namespace fp8kv
