#include "scales/read/stores/checkpoint_store.h"

#include "base/text.h"
#include "checkpoint/describe_checkpoint.h"
#include "checkpoint/drafts/draft_layers.h"
#include "core/model/layer_heads.h"
#include "scales/scale_names.h"

namespace fp8kv {
namespace {

class CheckpointStore : public ScaleStore {
 public:
  explicit CheckpointStore(std::shared_ptr<const Checkpoint> checkpoint)
      : checkpoint_(std::move(checkpoint)) {
    for (const auto& [name, location] : checkpoint_->tensors()) {
      const TensorEntry& entry = location.entry;
      const uint64_t place = (uint64_t{location.shard} << 40) + entry.begin;
      tensors_.push_back({name, entry.dtype, entry.shape, place});
    }
  }

  Carrier carrier() const override { return Carrier::model_folder; }
  std::string where() const override { return quote(checkpoint_->folder().string()); }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  std::string read(const std::string& tensor) const override { return checkpoint_->read(tensor); }
  std::optional<LayerName> split(std::string_view tensor) const override {
    return split_layer_name(tensor);
  }
  Observation noted_observation(const std::string& tensor) const override {
    const Shard& shard = checkpoint_->shards()[checkpoint_->tensors().at(tensor).shard];
    const auto found = shard.header.metadata.find(kObservationKey);
    if (found == shard.header.metadata.end()) return Observation::unknown;
    return observation_from_name(found->second).value_or(Observation::unknown);
  }
  std::string noted_foreign() const override { return noted(kAcceptedForeignKey); }
  std::string noted_evidence() const override { return noted(kEvidenceKey); }
  std::vector<std::string> draft_layers() const override {
    std::vector<std::string> names;
    for (const DraftLayer& layer :
         find_draft_layers(checkpoint_->tensors(), checkpoint_->config())) {
      names.push_back(layer.name);
    }
    return names;
  }
  KvConfig config() const override {
    return read_kv_config(checkpoint_->config(), checkpoint_->hf_quant());
  }
  StoredModel model() const override {
    const ModelDescription model = describe_model(*checkpoint_);
    return {model.model_type, model.n_kv_heads(), layers_with_cache(model), model.unclear,
            layer_kv_heads(model)};
  }

  void check_unchanged() const override { checkpoint_->check_unchanged(); }

 private:
  // Returns the metadata entry of the first shard that has one, or "".
  std::string noted(const char* key) const {
    for (const Shard& shard : checkpoint_->shards()) {
      const auto found = shard.header.metadata.find(key);
      if (found != shard.header.metadata.end()) return found->second;
    }
    return "";
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace

std::unique_ptr<ScaleStore> open_model_folder(const std::filesystem::path& folder) {
  return std::make_unique<CheckpointStore>(
      std::make_shared<const Checkpoint>(Checkpoint::open(folder)));
}

std::unique_ptr<ScaleStore> store_of(const Checkpoint& checkpoint) {
  const std::shared_ptr<const Checkpoint> not_owned(std::shared_ptr<void>(), &checkpoint);
  return std::make_unique<CheckpointStore>(not_owned);
}

}  // namespace fp8kv
