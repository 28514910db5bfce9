#include "core/model/layer_heads.h"

namespace fp8kv {

std::vector<int64_t> layer_kv_heads(const ModelDescription& model) {
  std::vector<int64_t> heads;
  if (model.unclear) return heads;
  const int64_t most = model.n_kv_heads();
  bool alike = true;
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    heads.push_back(model.writes_cache(i) ? model.layer(i).n_kv_heads : 0);
    alike = alike && (heads.back() == 0 || heads.back() == most);
  }
  if (alike) heads.clear();
  return heads;
}

}  // namespace fp8kv
