#include "calib/measure/collected_tensors.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "core/numbers/histogram.h"
#include "core/scales/scale_grid.h"
#include "files/file.h"

namespace fp8kv {
namespace {

constexpr char kCounted[] = "counted";
constexpr char kPartTokens[] = "part_tokens";
constexpr char kReached[] = "reached";
constexpr char kDrafts[] = "drafts";
constexpr char kLosses[] = "losses";

template <typename T>
StateTensor tensor(std::string name, DType dtype, Shape shape, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {std::move(name), dtype, shape, {bytes.begin(), bytes.end()}};
}

Shape counted_shape(int64_t layers, const ModelConfig& config) {
  return {layers, 3, config.n_kv_heads(), kMagnitudeWords};
}

Shape amax_shape(int64_t layers, const ModelConfig& config) {
  return {layers, 3, config.n_kv_heads()};
}

Shape reached_shape(int64_t layers, const ModelConfig& config) {
  return {layers, config.experts->choices()};
}

// The number of KV heads whose magnitudes are counted; 0 if the layer writes no cache.
int64_t heads_of(const ModelConfig& config, int64_t layer) {
  return config.writes_cache(layer) ? config.layer(layer).n_kv_heads : 0;
}

std::vector<float> flat(const std::vector<LayerAmax>& layers, const ModelConfig& config) {
  const auto width = static_cast<size_t>(3 * config.n_kv_heads());
  std::vector<float> values;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const auto* heads : {&layers[i].q, &layers[i].k, &layers[i].v}) {
      values.insert(values.end(), heads->begin(), heads->end());
    }
    values.resize((i + 1) * width);
  }
  return values;
}

std::vector<LayerAmax> layers_in(const std::vector<float>& values, const ModelConfig& config) {
  const auto width = static_cast<size_t>(3 * config.n_kv_heads());
  std::vector<LayerAmax> layers(values.size() / width);
  for (size_t i = 0; i < layers.size(); ++i) {
    const int64_t n_heads = heads_of(config, static_cast<int64_t>(i));
    auto at = values.begin() + static_cast<std::ptrdiff_t>(i * width);
    for (auto* heads : {&layers[i].q, &layers[i].k, &layers[i].v}) {
      heads->assign(at, at + n_heads);
      at += n_heads;
    }
  }
  return layers;
}

// Reads one tensor. Returns nothing if it is missing or has another dtype or shape.
template <typename T>
std::optional<std::vector<T>> values_in(const std::filesystem::path& path,
                                        const SafetensorsHeader& header, const std::string& name,
                                        DType dtype, const Shape& shape) {
  const TensorEntry* entry = find_entry(header, name);
  if (!entry || entry->dtype != dtype || entry->shape != shape) return std::nullopt;
  std::vector<T> values(static_cast<size_t>(shape.elements()));
  InputFile(path).read(entry->begin, std::as_writable_bytes(std::span(values)));
  return values;
}

// The counters of all draft layers as one tensor. The layers have equally many heads, or none.
std::optional<StateTensor> drafts_of(const CollectedMagnitudes& collected,
                                     const std::string& prefix) {
  if (collected.drafts.empty()) return std::nullopt;
  const auto heads = std::ssize(collected.drafts[0].k);
  std::vector<uint64_t> words;
  for (const LayerMagnitudes& draft : collected.drafts) {
    FP8KV_ASSERT(std::ssize(draft.k) == heads);
    const std::vector<uint64_t> of_layer = words_of(draft);
    words.insert(words.end(), of_layer.begin(), of_layer.end());
  }
  return tensor(prefix + kDrafts, DType::u64,
                {std::ssize(collected.drafts), 3, heads, kMagnitudeWords}, words);
}

// Returns false if the file's draft tensor has an unexpected form.
bool read_drafts(const std::filesystem::path& path, const SafetensorsHeader& header,
                 const std::string& prefix, CollectedMagnitudes& found) {
  const TensorEntry* entry = find_entry(header, prefix + kDrafts);
  if (!entry) return true;
  const Shape& shape = entry->shape;
  if (shape.rank() != 4 || shape[1] != 3 || shape[3] != kMagnitudeWords) return false;
  const auto words = values_in<uint64_t>(path, header, prefix + kDrafts, DType::u64, shape);
  if (!words) return false;
  const size_t of_layer = words->size() / static_cast<size_t>(std::max<int64_t>(shape[0], 1));
  for (int64_t i = 0; i < shape[0]; ++i) {
    found.drafts.push_back(magnitudes_from(
        std::span(*words).subspan(static_cast<size_t>(i) * of_layer, of_layer), shape[2], i));
  }
  return true;
}

Shape losses_shape(int64_t layers, const ModelConfig& config) {
  return {layers, 2, config.n_kv_heads(), kScaleMantissas};
}

// The losses of K and V in all layers; nothing if they were not measured.
std::optional<StateTensor> losses_of(const CollectedMagnitudes& collected,
                                     const ModelConfig& config, const std::string& prefix) {
  std::vector<uint64_t> all;
  const auto heads = static_cast<size_t>(config.n_kv_heads());
  bool measured = false;
  for (const LayerMagnitudes& layer : collected.layers) {
    for (const auto* counts : {&layer.k, &layer.v}) {
      const size_t end = all.size() + heads * kScaleMantissas;
      for (const MagnitudeCounts& head : *counts) {
        measured = measured || !head.losses.empty();
        all.insert(all.end(), head.losses.begin(), head.losses.end());
      }
      all.resize(end);
    }
  }
  if (!measured) return std::nullopt;
  return tensor(prefix + kLosses, DType::u64, losses_shape(std::ssize(collected.layers), config),
                all);
}

// Returns false if the file's losses have an unexpected form.
bool read_losses(const std::filesystem::path& path, const SafetensorsHeader& header,
                 const ModelConfig& config, const std::string& prefix, CollectedMagnitudes& found) {
  if (!find_entry(header, prefix + kLosses)) return true;
  const auto all = values_in<uint64_t>(path, header, prefix + kLosses, DType::u64,
                                       losses_shape(std::ssize(found.layers), config));
  if (!all) return false;
  auto next = all->begin();
  for (LayerMagnitudes& layer : found.layers) {
    for (auto* counts : {&layer.k, &layer.v}) {
      auto at = next;
      next += config.n_kv_heads() * kScaleMantissas;
      for (MagnitudeCounts& head : *counts) {
        head.losses.assign(at, at + kScaleMantissas);
        at += kScaleMantissas;
      }
    }
  }
  return true;
}

}  // namespace

std::vector<StateTensor> tensors_of(const CollectedMagnitudes& collected, const ModelConfig& config,
                                    const std::string& prefix) {
  const auto layers = std::ssize(collected.layers);
  const auto layer_words = static_cast<size_t>(counted_shape(1, config).elements());
  std::vector<uint64_t> words;
  for (const LayerMagnitudes& layer : collected.layers) {
    std::vector<uint64_t> of_layer = words_of(layer);
    of_layer.resize(layer_words);
    words.insert(words.end(), of_layer.begin(), of_layer.end());
  }
  std::vector<StateTensor> tensors;
  tensors.push_back(tensor(prefix + kCounted, DType::u64, counted_shape(layers, config), words));
  std::vector<uint64_t> part_tokens;
  for (const AmaxAfter& part : collected.parts) part_tokens.push_back(part.tokens);
  tensors.push_back(
      tensor(prefix + kPartTokens, DType::u64, Shape{int64_t{kTextParts}}, part_tokens));
  for (size_t i = 0; i < kTextParts; ++i) {
    if (collected.parts[i].tokens == 0) continue;
    tensors.push_back(tensor(prefix + kTextPartNames[i], DType::f32, amax_shape(layers, config),
                             flat(collected.parts[i].layers, config)));
  }
  if (auto drafts = drafts_of(collected, prefix)) tensors.push_back(std::move(*drafts));
  if (auto losses = losses_of(collected, config, prefix)) tensors.push_back(std::move(*losses));
  if (!config.experts) return tensors;
  std::vector<uint64_t> reached;
  for (const auto& layer : collected.reached) {
    reached.insert(reached.end(), layer.begin(), layer.end());
  }
  tensors.push_back(tensor(prefix + kReached, DType::u64, reached_shape(layers, config), reached));
  return tensors;
}

std::optional<CollectedMagnitudes> collected_in(const std::filesystem::path& path,
                                                const SafetensorsHeader& header,
                                                const ModelConfig& config,
                                                const std::string& prefix) {
  const TensorEntry* counted = find_entry(header, prefix + kCounted);
  if (!counted || counted->shape.rank() == 0) return std::nullopt;
  const int64_t layers = counted->shape[0];
  if (layers <= 0 || layers > config.n_layers()) return std::nullopt;
  const auto words = values_in<uint64_t>(path, header, prefix + kCounted, DType::u64,
                                         counted_shape(layers, config));
  const auto part_tokens = values_in<uint64_t>(path, header, prefix + kPartTokens, DType::u64,
                                               Shape{int64_t{kTextParts}});
  if (!words || !part_tokens) return std::nullopt;
  CollectedMagnitudes found;
  const size_t layer_words = words->size() / static_cast<size_t>(layers);
  for (int64_t index = 0; index < layers; ++index) {
    found.layers.push_back(
        magnitudes_from(std::span(*words).subspan(static_cast<size_t>(index) * layer_words),
                        heads_of(config, index), index));
  }
  for (size_t i = 0; i < kTextParts; ++i) {
    if ((*part_tokens)[i] == 0) continue;
    const auto values = values_in<float>(path, header, prefix + kTextPartNames[i], DType::f32,
                                         amax_shape(layers, config));
    if (!values) return std::nullopt;
    found.parts[i] = {(*part_tokens)[i], layers_in(*values, config)};
  }
  if (!read_drafts(path, header, prefix, found)) return std::nullopt;
  if (!read_losses(path, header, config, prefix, found)) return std::nullopt;
  if (!config.experts) return found;
  const auto reached = values_in<uint64_t>(path, header, prefix + kReached, DType::u64,
                                           reached_shape(layers, config));
  if (!reached) return std::nullopt;
  const auto width = reached->size() / static_cast<size_t>(layers);
  for (auto at = reached->begin(); at != reached->end(); at += static_cast<std::ptrdiff_t>(width)) {
    found.reached.emplace_back(at, at + static_cast<std::ptrdiff_t>(width));
  }
  return found;
}

const TensorEntry* find_entry(const SafetensorsHeader& header, const std::string& name) {
  for (const TensorEntry& entry : header.tensors) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace fp8kv
