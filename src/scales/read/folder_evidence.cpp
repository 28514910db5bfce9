#include "scales/read/folder_evidence.h"

#include "base/error.h"
#include "json/json.h"
#include "scales/scale_file.h"

namespace fp8kv {
namespace {

// Whether a folder's scales match the file's: one for each head, or the largest of the layer.
bool is_made_of(const std::vector<float>& scales, const std::vector<float>& file) {
  return scales == file || scales == std::vector<float>{largest(file)};
}

bool has_scales_of(const KvScales& folder, const KvScales& file) {
  if (folder.layers.size() > file.layers.size()) return false;
  for (size_t i = 0; i < file.layers.size(); ++i) {
    const LayerScales own = i < folder.layers.size() ? folder.layers[i] : LayerScales{};
    const LayerScales& made = file.layers[i];
    if (own.has_cache() != made.has_cache()) return false;
    if (own.has_cache() && !(is_made_of(own.k, made.k) && is_made_of(own.v, made.v))) return false;
  }
  return true;
}

// Gives a draft layer the file's maxima if its scales equal those of the file.
void adopt_draft_maxima(const std::vector<DraftScales>& file, std::vector<DraftScales>& drafts) {
  for (DraftScales& draft : drafts) {
    for (const DraftScales& made : file) {
      if (made.layer == draft.layer && made.scales == draft.scales) draft.amax = made.amax;
    }
  }
}

}  // namespace

void adopt_evidence(FoundScales& found, const std::string& text, const std::string& where) {
  if (text.empty()) return;
  const std::string name = cat(where, ": the scale file in the metadata");
  try {
    const KvScales file =
        with_format(parse_scale_file(Json::parse(text, name), name), found.scales.format);
    if (!has_scales_of(found.scales, file)) {
      found.notes.push_back(cat(name, " is not used: the folder has other scales than that file"));
      return;
    }
    const std::string foreign = found.scales.provenance.accepted_foreign;
    found.scales.provenance = file.provenance;
    found.scales.provenance.accepted_foreign = foreign;
    adopt_draft_maxima(file.drafts, found.scales.drafts);
    found.scales.latent = file.latent;
    found.scales.skipped = file.skipped;
  } catch (const Error& error) {
    found.notes.push_back(cat(error.what(), ": that file is not used"));
  }
}

}  // namespace fp8kv
