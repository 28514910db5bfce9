#include "model/expert_tables.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "config/families/tensor_table.h"
#include "core/numbers/host_view.h"

namespace fp8kv {
namespace {

// The table is beside the layer's router.
std::string table_name(const ModelConfig& config, int64_t layer) {
  const std::string router = weight_name(config, TensorRole::router, layer);
  return router.substr(0, router.rfind('.')) + ".tid2eid";
}

int64_t id_at(const ConstTensorView& view, int64_t i) {
  return view.dtype == DType::i32 ? view.as<int32_t>()[i] : view.as<int64_t>()[i];
}

std::vector<int32_t> read_table(const Checkpoint& checkpoint, const ModelConfig& config,
                                int64_t layer) {
  const std::string name = table_name(config, layer);
  const std::string where = cat(quote(checkpoint.folder().string()), ": tensor ", quote(name));
  const int64_t per_token = config.experts->routing.per_token;
  if (checkpoint.find(name) == nullptr) {
    throw Error(cat(where, ": is missing, and gives the experts of each token in layer ", layer),
                "config.json and the weights are not of the same model");
  }
  const MappedTensor mapped = checkpoint.map(name);
  const ConstTensorView& view = mapped.view;
  if ((view.dtype != DType::i32 && view.dtype != DType::i64) ||
      view.shape != Shape{config.vocab_size, per_token}) {
    throw Error(cat(where, ": is ", dtype_name(view.dtype), " ", view.shape.text(),
                    ", expected I32 or I64 ", Shape{config.vocab_size, per_token}.text()),
                "config.json and the weights are not of the same model");
  }
  std::vector<int32_t> table;
  for (int64_t i = 0; i < view.shape.elements(); ++i) {
    const int64_t id = id_at(view, i);
    if (id < 0 || id >= config.experts->count) {
      fail(where, ": names expert ", id, " for token ", i / per_token, ", expected one of ",
           config.experts->count);
    }
    table.push_back(static_cast<int32_t>(id));
  }
  for (auto row = table.begin(); row != table.end(); row += per_token) {
    std::sort(row, row + per_token);
    if (std::adjacent_find(row, row + per_token) == row + per_token) continue;
    fail(where, ": names an expert twice for token ", (row - table.begin()) / per_token,
         ", expected ", per_token, " different ones");
  }
  return table;
}

}  // namespace

ExpertTables::ExpertTables(const Checkpoint& checkpoint, const ModelConfig& config,
                           Backend& backend)
    : backend_(backend), per_token_(config.experts->routing.per_token) {
  for (int64_t layer = 0; layer < config.experts->table_layers; ++layer) {
    tables_.push_back(read_table(checkpoint, config, layer));
  }
}

std::optional<ConstTensorView> ExpertTables::of(const Step& step, int64_t index) {
  if (index >= std::ssize(tables_)) return std::nullopt;
  const std::vector<int32_t>& table = tables_[static_cast<size_t>(index)];
  const int64_t n = step.rows();
  if (ids_.empty() || ids_.view().shape[0] < n) {
    ids_ = backend_.allocate(DType::i32, Shape{n, per_token_});
  }
  host_ids_.clear();
  for (const int32_t token : step.host_ids()) {
    const auto row = table.begin() + token * per_token_;
    host_ids_.insert(host_ids_.end(), row, row + per_token_);
  }
  const TensorView ids = ids_.first(n);
  backend_.copy_in(ids, host_view(host_ids_, ids.shape));
  return ids;
}

}  // namespace fp8kv
