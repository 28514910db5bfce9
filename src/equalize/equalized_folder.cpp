#include "equalize/equalized_folder.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/interrupt.h"
#include "equalize/fold_places.h"
#include "equalize/scaled_weights.h"
#include "files/output/copy_file.h"
#include "files/output/new_file.h"
#include "json/json.h"
#include "scales/read/find_scales.h"
#include "scales/write/inject_plan.h"
#include "scales/write/output_folder.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kCopyBytes = uint64_t{8} << 20;

// A tensor that takes factors, and the layer that the factors belong to.
struct TensorOfLayer {
  FoldedTensor tensor;
  size_t layer = 0;
};

bool changes(const FoldedTensor& tensor, const LayerFactors& layer) {
  return std::any_of(tensor.rows.begin(), tensor.rows.end(), [&](const FoldedRow& row) {
    return layer.kept[static_cast<size_t>(row.unit)];
  });
}

// The tensors that change, by the index of their shard.
std::map<size_t, std::vector<TensorOfLayer>> changed_tensors(const Checkpoint& checkpoint,
                                                             const ModelConfig& config,
                                                             std::span<const LayerFactors> layers) {
  std::map<size_t, std::vector<TensorOfLayer>> by_shard;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    if (layers[layer].exponents.empty()) continue;
    for (FoldedTensor& each : folded_tensors(checkpoint, config, static_cast<int64_t>(layer))) {
      if (!changes(each, layers[layer])) continue;
      const size_t shard = checkpoint.tensors().at(each.name).shard;
      by_shard[shard].push_back({std::move(each), layer});
    }
  }
  return by_shard;
}

// Copies the shard, then overwrites the tensors that have factors.
void write_changed_shard(const Checkpoint& checkpoint, const Shard& shard,
                         std::span<const TensorOfLayer> tensors,
                         std::span<const LayerFactors> layers, const fs::path& to) {
  const InputFile in(checkpoint.folder() / shard.file);
  const NewFile out(to, to, shard.bytes);
  std::vector<std::byte> block;
  for (uint64_t at = 0; at < shard.bytes; at += kCopyBytes) {
    block.resize(std::min(kCopyBytes, shard.bytes - at));
    in.read(at, block);
    out.write(at, block);
  }
  for (const auto& [tensor, layer] : tensors) {
    const std::string bytes =
        scaled_tensor(checkpoint, tensor, layers[layer].exponents, layers[layer].groups);
    out.write(checkpoint.at(tensor.name).begin, std::as_bytes(std::span(bytes)));
  }
}

}  // namespace

void check_equalizable(const Checkpoint& checkpoint, const fs::path& out, bool overwrite) {
  as_our_error([&] {
    const std::string folder = quote(checkpoint.folder().string());
    check_output(checkpoint.folder(), out, false, overwrite);
    if (fs::exists(checkpoint.folder() / kEqualizeRecord)) {
      throw Error(cat(folder, ": was equalised already (", kEqualizeRecord, ")"),
                  "equalise the model that it was made from");
    }
    if (const auto found = find_scales(checkpoint)) {
      throw Error(cat(folder, ": already carries KV scales (", found->dialect,
                      "), which would not fit the equalised model"),
                  "equalise the model that it was made from, then calibrate");
    }
  });
}

EqualizedFiles write_equalized(const Checkpoint& checkpoint, const ModelConfig& config,
                               std::span<const LayerFactors> layers, const std::string& record,
                               const fs::path& to) {
  return as_our_error([&] {
    ScalePatch patch;
    patch.files[kEqualizeRecord] = record;
    InjectPlan plan = plan_injection(checkpoint, patch);
    EqualizedFiles made{.files = {}, .skipped = plan.skipped};
    const auto add = [&](const std::string& name, FileMade how, uint64_t bytes) {
      made.files.push_back({name, how, bytes});
      made.written_bytes += bytes;
    };
    const auto changed = changed_tensors(checkpoint, config, layers);
    for (size_t i = 0; i < checkpoint.shards().size(); ++i) {
      const Shard& shard = checkpoint.shards()[i];
      const auto tensors = changed.find(i);
      if (tensors != changed.end()) {
        fs::create_directories((to / shard.file).parent_path());
        write_changed_shard(checkpoint, shard, tensors->second, layers, to / shard.file);
        add(shard.file, FileMade::written, shard.bytes);
      } else {
        const PlannedFile& file = plan.files.at(shard.file);
        add(shard.file, carry_out(file, to / shard.file, LinkMode::copy), file.bytes);
      }
      plan.files.erase(shard.file);
    }
    for (const auto& [name, file] : plan.files) {
      check_interrupt();
      if (file.is_linked() && holds_tensors(name)) {
        made.skipped.push_back(
            cat(quote(name.string()), ": weights that the model is not read from"));
        continue;
      }
      add(name.string(), carry_out(file, to / name, LinkMode::copy), file.bytes);
    }
    std::sort(made.files.begin(), made.files.end(),
              [](const InjectedFile& a, const InjectedFile& b) { return a.name < b.name; });
    return made;
  });
}

std::string record_text(const EqualizeRecord& record, std::span<const LayerFactors> layers) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.equalized/1");
  json.member("made_by", "fp8kv " + record.tool_version);
  json.member("model", record.model).member("fingerprint", record.fingerprint);
  json.member("format", record.format).key("layers").begin_array();
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerFactors& layer = layers[i];
    if (layer.exponents.empty()) continue;
    json.begin_object().member("layer", i).key("k_exponents").begin_array();
    for (const Exponents& unit : layer.exponents) {
      size_t dim = 0;
      for (const auto& group : layer.groups) dim += group.size();
      std::vector<int> channels(dim);
      for (size_t g = 0; g < unit.size(); ++g) {
        for (const int64_t channel : layer.groups[g]) {
          channels[static_cast<size_t>(channel)] = unit[g];
        }
      }
      json.begin_array();
      for (const int each : channels) json.value(int64_t{each});
      json.end_array();
    }
    json.end_array().end_object();
  }
  return json.end_array().end_object().text();
}

}  // namespace fp8kv
