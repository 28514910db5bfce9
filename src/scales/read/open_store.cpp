#include "scales/read/open_store.h"

#include "scales/read/checkpoint_store.h"
#include "scales/read/npz_store.h"
#include "scales/read/rank_store.h"

namespace fp8kv {

bool is_scale_folder(const std::filesystem::path& folder) {
  return is_rank_folder(folder) || is_npz_folder(folder);
}

std::unique_ptr<ScaleStore> open_store(const std::filesystem::path& folder) {
  if (is_rank_folder(folder)) return open_rank_folder(folder);
  if (is_npz_folder(folder)) return open_npz_folder(folder);
  return open_model_folder(folder);
}

}  // namespace fp8kv
