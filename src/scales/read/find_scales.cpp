#include "scales/read/find_scales.h"

#include <set>

#include "base/error.h"
#include "checkpoint/model/quantised_tensors.h"
#include "scales/read/scale_file_survey.h"
#include "scales/read/stores/checkpoint_store.h"
#include "scales/read/stores/open_store.h"
#include "scales/read/stores/rank_store.h"
#include "scales/read/survey.h"
#include "scales/scale_names.h"
#include "scales/scale_tensors.h"

namespace fp8kv {
namespace {

FoundScales or_refusal(FoundScales found) {
  if (found.refusal) throw *found.refusal;
  return found;
}

}  // namespace

FoundScales survey_scales(const Checkpoint& checkpoint) {
  return survey(*store_of(checkpoint));
}

FoundScales survey_scales(const std::filesystem::path& path) {
  const SourceKind kind = source_kind(path);
  if (kind == SourceKind::safetensors) {
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    throw Error(
        cat(quote(path.string()), ": is one file of a model, expected its folder"),
        cat("give the folder that holds config.json and all weights: ", quote(folder.string())));
  }
  const bool is_folder = kind == SourceKind::scale_folder || kind == SourceKind::model_folder;
  return is_folder ? survey(*open_store(path)) : survey_scale_file(path);
}

namespace {

std::vector<FilePart> scale_parts_of(const Checkpoint& checkpoint) {
  std::set<std::string> names;
  for (const auto& [name, location] : checkpoint.tensors()) {
    const TensorEntry& entry = location.entry;
    if (scale_spelling(name) && is_readable_scale(entry.dtype, entry.shape)) names.insert(name);
  }
  for (std::string& name : input_scale_tensors(checkpoint)) names.insert(std::move(name));
  try {
    for (std::string& name : surveyed_tensors(*store_of(checkpoint))) {
      names.insert(std::move(name));
    }
  } catch (const Error& error) {
    // The scales cannot be used. The survey reports that without reading values.
    if (error.kind() != ErrorKind::input) throw;
  }
  std::vector<FilePart> parts;
  for (const std::string& name : names) {
    const TensorLocation& place = checkpoint.tensors().at(name);
    parts.push_back({checkpoint.shards()[place.shard].file, {place.entry.begin, place.entry.end}});
  }
  return parts;
}

}  // namespace

std::vector<FilePart> scale_parts(const std::filesystem::path& folder) {
  if (is_rank_folder(folder))
    return rank_parts(folder, surveyed_tensors(*open_rank_folder(folder)));
  return scale_parts_of(Checkpoint::open(folder));
}

std::optional<FoundScales> find_scales(const Checkpoint& checkpoint) {
  const std::unique_ptr<ScaleStore> store = store_of(checkpoint);
  if (!has_scale_names(*store)) return std::nullopt;
  return or_refusal(survey(*store));
}

FoundScales scales_at(const Checkpoint& checkpoint) {
  return or_refusal(survey_scales(checkpoint));
}

FoundScales scales_at(const std::filesystem::path& path) {
  return or_refusal(survey_scales(path));
}

}  // namespace fp8kv
