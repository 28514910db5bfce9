#include "scales/read/stores/open_store.h"

#include "scales/read/stores/checkpoint_store.h"
#include "scales/read/stores/npz_store.h"
#include "scales/read/stores/rank_store.h"

namespace fp8kv {

SourceKind source_kind(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return SourceKind::missing;
  if (is_rank_folder(path) || is_npz_folder(path)) return SourceKind::scale_folder;
  if (std::filesystem::is_directory(path)) return SourceKind::model_folder;
  return path.extension() == ".safetensors" ? SourceKind::safetensors : SourceKind::scale_file;
}

std::unique_ptr<ScaleStore> open_store(const std::filesystem::path& folder) {
  if (is_rank_folder(folder)) return open_rank_folder(folder);
  if (is_npz_folder(folder)) return open_npz_folder(folder);
  return open_model_folder(folder);
}

}  // namespace fp8kv
