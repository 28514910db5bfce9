#include "inputs/runtime_source.h"

#include "checkpoint/checkpoint.h"
#include "scales/read/open_store.h"
#include "scales/scale_file.h"

namespace fp8kv {

FactSet facts_of(const std::filesystem::path& path) {
  const SourceKind kind = source_kind(path);
  if (kind == SourceKind::scale_folder || kind == SourceKind::model_folder) {
    return runtime_facts(model_files(Checkpoint::open(path)));
  }
  return scale_file_facts(read_scale_file(path).model_type);
}

}  // namespace fp8kv
