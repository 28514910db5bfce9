#include "backend/backend.h"

#include "base/error.h"

namespace fp8kv {

void Backend::begin_recording() {
  FP8KV_ASSERT(can_record());
}

Recording Backend::end_recording() {
  FP8KV_ASSERT(can_record());
  return nullptr;
}

void Backend::replay(const Recording& /*recording*/) {
  FP8KV_ASSERT(can_record());
}

}  // namespace fp8kv
