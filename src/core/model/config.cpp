#include "core/model/config.h"

#include "base/error.h"

namespace fp8kv {

int64_t ModelConfig::block_use(int64_t index) const {
  int64_t uses = 0;
  for (int64_t i = 0; i < index; ++i) uses += attends(i) ? 1 : 0;
  return uses;
}

int64_t ModelConfig::block_layer(int64_t index) const {
  int64_t before = block_use(index) % shared_block.value().blocks;
  int64_t layer = 0;
  while (before > 0 || !attends(layer)) {
    before -= attends(layer) ? 1 : 0;
    ++layer;
  }
  FP8KV_ASSERT(layer <= index);
  return layer;
}

}  // namespace fp8kv
