// A model folder: config, index, scales in its shards, and quantised weights.
#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model/read_model_config.h"
#include "fuzz.h"
#include "model/weights/weight_loader.h"
#include "model_folder.h"
#include "scales/read/find_scales.h"

namespace fp8kv::fuzz {
namespace {

template <typename Work>
void allow_errors(const Work& work) {
  try {
    work();
  } catch (const Error&) {  // one part may be wrong while another is right
  }
}

void run(const std::string& input) {
  const std::filesystem::path folder = work_folder() / "model";
  lay_out(files_of(input), folder);
  allow_errors([&] {
    const FoundScales found = survey_scales(folder);
    if (found.refusal || found.absent) return;
    for (const ScaleTensor& tensor : found.tensors) require(!tensor.name.empty(), "a name");
    require(found.scales.cached_layers() > 0, "scales that are found have layers with a cache");
    for (const ScaleTensor& tensor : found.tensors) {
      require(found.scales.layers.at(static_cast<size_t>(tensor.layer)).has_cache(),
              "a tensor is of a layer with a cache");
    }
  });
  const Checkpoint checkpoint = Checkpoint::open(folder);
  for (const auto& [name, location] : checkpoint.tensors()) {
    require(location.shard < checkpoint.shards().size(), "a tensor lies in a shard");
    require(location.entry.end <= checkpoint.shards()[location.shard].bytes, "and within it");
  }
  const ModelConfig config = read_model_config(checkpoint);
  if (config.stored_as.empty()) return;
  const auto backend = make_cpu_backend(1);
  const WeightLoader loader(checkpoint, config, *backend);
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
    static_cast<void>(loader.layer(layer));
  }
}

std::vector<std::string> seeds(const std::filesystem::path& root) {
  std::vector<std::string> inputs;
  for (const char* const folder : {"dialects", "quantised"}) {
    for (auto& files : folders_below(root / "tests/golden" / folder)) {
      std::erase_if(files, [](const FolderFile& file) { return file.name == "golden.json"; });
      inputs.push_back(input_of(files));
    }
  }
  return inputs;
}

}  // namespace

const Target kCheckpoint{"checkpoint", run, nullptr, seeds};

}  // namespace fp8kv::fuzz
