#include "checkpoint/hf_quant.h"

#include "json/object_file.h"

namespace fp8kv {
namespace {

constexpr uint64_t kLargestConfig = uint64_t(16) << 20;

}  // namespace

std::optional<Json> read_hf_quant(const std::filesystem::path& folder) {
  return find_object(folder / kModelOptFile, JsonNumbers::python, kLargestConfig);
}

}  // namespace fp8kv
