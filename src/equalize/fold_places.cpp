#include "equalize/fold_places.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "checkpoint/model_weights.h"
#include "config/families/tensor_table.h"

namespace fp8kv {
namespace {

// The roles of the tensors that take the factors of Q and K.
struct FoldRoles {
  TensorRole q, k;
};

FoldRoles fold_roles(QkNorm norm) {
  if (norm == QkNorm::none) return {TensorRole::q, TensorRole::k};
  return {TensorRole::q_norm, TensorRole::k_norm};
}

// A reason to refuse a model.
struct Refusal {
  bool (*holds)(const ModelConfig& config);
  const char* reason;
  const char* help;
};

bool takes_v_from_k(const ModelConfig& config) {
  const auto from_k = [](const LayerDescription& layer) { return layer.v_is_k; };
  return config.block.qk_norm == QkNorm::none &&
         std::any_of(config.layers.begin(), config.layers.end(), from_k);
}

constexpr const char* kOtherCaches =
    "'fp8kv calibrate' makes scales for an FP8 cache, and 'fp8kv eval' measures every cache";

const Refusal kRefusals[] = {
    {[](const ModelConfig& config) { return config.latent.has_value(); },
     "has latent attention, which has no INT8 or NVFP4 cache here, and FP8 would not gain",
     kOtherCaches},
    {[](const ModelConfig& config) { return config.shared_row.has_value(); },
     "caches one row that is K and V, so that factors of K would change V", kOtherCaches},
    {[](const ModelConfig& config) { return config.shares_caches(config.n_layers()); },
     "has layers that read the cache of another layer, whose queries would need its factors",
     kOtherCaches},
    {[](const ModelConfig& config) { return config.shared_block.has_value(); },
     "has layers that share the weights of Q and K, which the factors of each would change",
     kOtherCaches},
    {[](const ModelConfig& config) { return is_plain(config.block.qk_norm); },
     "normalises Q and K without weights, which takes factors out again", kOtherCaches},
    {takes_v_from_k, "takes V from the projection of K, which factors would change", kOtherCaches},
    {[](const ModelConfig& config) { return config.dtype == DType::f16; },
     "has float16 weights: Q and K below 2^-14 would lose bits",
     "equalise the model in bfloat16 or float32"},
};

// The row of a (possibly fused) tensor that holds row `index` of one part.
int64_t row_of(const ModelTensor& tensor, const TensorPart& part, int64_t index) {
  if (tensor.groups == 0) return part.first_row + index;
  int64_t all = 0;
  for (const TensorPart& each : tensor.parts) all += each.rows;
  const int64_t own = part.rows / tensor.groups;
  return index / own * (all / tensor.groups) + part.first_row / tensor.groups + index % own;
}

class LayerFold {
 public:
  LayerFold(const ModelConfig& config, int64_t layer)
      : config_(config),
        layer_(config.layer(layer)),
        shared_(config.block.qk_norm == QkNorm::per_head),
        group_(config.n_heads_of(layer) / layer_.n_kv_heads) {}

  // Adds the rows of one part of a tensor, with K's factor or its inverse for Q.
  void add(const ModelTensor& tensor, const TensorPart& part, bool is_key,
           std::vector<FoldedRow>& rows) const {
    const int64_t dim = layer_.k_head_dim;
    // The norms of heads are one tensor with several rows, or one tensor per head.
    const bool by_head = tensor.head >= 0 || config_.block.qk_norm == QkNorm::own_heads;
    const int64_t count = by_head ? tensor.shape.elements() : part.rows;
    const int64_t before = tensor.head >= 0 ? tensor.head * dim : 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t head = (before + i) / dim;
      FoldedRow row{.channel = (before + i) % dim, .sign = is_key ? 1 : -1};
      row.row = by_head ? i : row_of(tensor, part, i);
      if (!shared_) row.unit = is_key ? head : head / group_;
      rows.push_back(row);
    }
  }

 private:
  const ModelConfig& config_;
  const LayerDescription& layer_;
  bool shared_;
  int64_t group_;  // query heads per KV head
};

// Whether this part of a layer takes factors.
bool takes_factors(const TensorPart& part, const FoldRoles& roles) {
  return part.role == roles.q || part.role == roles.k;
}

bool takes_factors(const ModelTensor& tensor, const FoldRoles& roles) {
  return std::any_of(tensor.parts.begin(), tensor.parts.end(),
                     [&](const TensorPart& part) { return takes_factors(part, roles); });
}

// A tensor of plain numbers, without its rows.
FoldedTensor plain_places(const ModelTensor& tensor, const TensorEntry& entry, bool is_norm,
                          bool plus_one) {
  FoldedTensor made{.name = tensor.name, .dtype = entry.dtype};
  made.plus_one = is_norm && !tensor.is_bias && plus_one;
  if (is_norm || tensor.is_bias) return made;
  const bool turned = is_turned(tensor.layout);
  made.count = entry.shape[turned ? 0 : 1];
  made.row_step = turned ? 1 : entry.shape[1];
  made.step = turned ? entry.shape[1] : 1;
  return made;
}

bool has_scale_for_each_row(const StoredWeight& stored) {
  return stored.matrix.row_step > 0 && stored.matrix.block_rows == 1;
}

// The scales of a quantised matrix, without rows. REQUIRES has_scale_for_each_row.
FoldedTensor scale_places(const Checkpoint& checkpoint, const StoredWeight& stored) {
  const QuantisedMatrix& matrix = stored.matrix;
  FoldedTensor made{.name = stored.scales->name,
                    .dtype = matrix.scale_dtype,
                    .count = matrix.n_groups,
                    .row_step = matrix.row_step,
                    .step = matrix.group_step,
                    .are_scales = true};
  if (stored.overall == nullptr) return made;
  float overall = 0;
  std::memcpy(&overall, checkpoint.read(stored.overall->name).data(), sizeof overall);
  made.overall = matrix.divides ? 1 / double{overall} : double{overall};
  return made;
}

// Throws if a scale of Q or K belongs to more than one row.
void check_scales(const Checkpoint& checkpoint, const ModelConfig& config, int64_t layer) {
  const ModelWeights weights(checkpoint, config.dtype);
  for (const ModelTensor& tensor : layer_tensors(config, layer)) {
    if (!takes_factors(tensor, fold_roles(config.block.qk_norm))) continue;
    const std::optional<Weight> weight = weights.find(tensor);
    if (!weight || !weight->stored || has_scale_for_each_row(*weight->stored)) continue;
    const TensorEntry& scales = *weight->stored->scales;
    throw Error(
        cat(quote(checkpoint.folder().string()), ": tensor ", quote(scales.name), ": is ",
            dtype_name(scales.dtype), " ", scales.shape.text(), " (", form_text(*weight->stored),
            "), expected a scale for each row, since rows take different factors"),
        "equalise the 16-bit model that it was made from, then quantise that");
  }
}

}  // namespace

int64_t fold_units(const ModelConfig& config, int64_t layer) {
  return config.block.qk_norm == QkNorm::per_head ? 1 : config.layer(layer).n_kv_heads;
}

std::vector<FoldedTensor> folded_tensors(const Checkpoint& checkpoint, const ModelConfig& config,
                                         int64_t layer) {
  const FoldRoles roles = fold_roles(config.block.qk_norm);
  const bool is_norm = config.block.qk_norm != QkNorm::none;
  const LayerFold fold(config, layer);
  const ModelWeights weights(checkpoint, config.dtype);
  std::vector<FoldedTensor> folded;
  for (const ModelTensor& each : layer_tensors(config, layer)) {
    if (!takes_factors(each, roles)) continue;
    const Weight weight = weights.at(each);
    const ModelTensor tensor = weight.stored ? decoded_tensor(each, *weight.stored) : each;
    FP8KV_ASSERT(tensor.layout != TensorLayout::in_turn &&
                 tensor.layout != TensorLayout::columns_in_turn);
    FoldedTensor made =
        weight.stored ? scale_places(checkpoint, *weight.stored)
                      : plain_places(tensor, *weight.plain, is_norm, config.block.norm_plus_one);
    for (const TensorPart& part : tensor.parts) {
      if (takes_factors(part, roles)) fold.add(tensor, part, part.role == roles.k, made.rows);
    }
    folded.push_back(std::move(made));
  }
  return folded;
}

void check_foldable(const Checkpoint& checkpoint, const ModelConfig& config) {
  checkpoint.check_is_hugging_face();
  for (const Refusal& each : kRefusals) {
    if (!each.holds(config)) continue;
    throw Error(cat(quote(checkpoint.folder().string()), ": ", config.architecture, " ",
                    each.reason, ", so it cannot be equalised"),
                each.help);
  }
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
    if (config.writes_cache(layer)) check_scales(checkpoint, config, layer);
  }
}

}  // namespace fp8kv
