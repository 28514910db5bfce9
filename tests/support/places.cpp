#include "support/places.h"

namespace fp8kv::test {

std::filesystem::path source_dir() {
  const std::filesystem::path built = FP8KV_SOURCE_DIR;
  return std::filesystem::exists(built) ? built : std::filesystem::current_path();
}

std::filesystem::path built_program() {
  return FP8KV_PROGRAM;
}

std::string fault_shim() {
  return FP8KV_FAULT_SHIM;
}

}  // namespace fp8kv::test
