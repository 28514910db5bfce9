#include "policy/histogram_file.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <span>

#include "base/error.h"
#include "core/numbers/histogram.h"
#include "core/numbers/host_view.h"
#include "core/scales/scale_grid.h"
#include "files/file.h"
#include "formats/safetensors.h"

namespace fp8kv {
namespace {

constexpr char kHistogramSchema[] = "fp8kv.histograms/1";
constexpr size_t kTensorsOfLayer = 6;
constexpr size_t kWithLosses = 8;
// The most values that a head may count: far above any calibration. Sums over a layer's heads
// (fewer than 2^15) and over many files do not overflow.
constexpr uint64_t kMostCounted = uint64_t{1} << 48;
// The largest sum of losses, likewise: a loss of 1 for 2^18 tokens.
constexpr uint64_t kMostLoss = uint64_t{1} << 58;

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : name_(quote(path.string())), file_(path), header_(read_safetensors_header(file_, path)) {
    const auto schema = header_.metadata.find("schema");
    if (schema == header_.metadata.end() || schema->second != kHistogramSchema) {
      throw Error(cat(name_, ": is no file of histograms"),
                  "'fp8kv calibrate --histograms' writes one");
    }
    for (const TensorEntry& entry : header_.tensors) entries_.emplace(entry.name, &entry);
  }

  std::vector<LayerMagnitudes> layers() const {
    const size_t of_layer = entries_.contains("layers.0.k.losses") ? kWithLosses : kTensorsOfLayer;
    if (header_.tensors.size() % of_layer != 0) {
      fail(name_, ": has ", count_of(header_.tensors.size(), "tensor"), ", expected ", of_layer,
           " for each layer");
    }
    std::vector<LayerMagnitudes> layers(header_.tensors.size() / of_layer);
    for (size_t i = 0; i < layers.size(); ++i) {
      layers[i].k = heads(cat("layers.", i, ".k"));
      layers[i].v = heads(cat("layers.", i, ".v"));
      layers[i].q = heads(cat("layers.", i, ".q"));
      if (layers[i].v.size() == layers[i].k.size() && layers[i].q.size() == layers[i].k.size()) {
        if (of_layer == kWithLosses) {
          add_losses(cat("layers.", i, ".k.losses"), layers[i].k);
          add_losses(cat("layers.", i, ".v.losses"), layers[i].v);
        }
        continue;
      }
      fail(name_, ": layer ", i, ": Q, K and V have different numbers of heads");
    }
    return layers;
  }

 private:
  std::vector<MagnitudeCounts> heads(const std::string& prefix) const {
    const TensorEntry& of_amax = at(prefix + ".amax");
    const int64_t n = of_amax.shape.rank() == 0 ? 0 : of_amax.shape[0];
    const auto amax = values<float>(of_amax, DType::f32, Shape{n});
    const auto bins =
        values<uint64_t>(at(prefix + ".bins"), DType::u64, Shape{n, int64_t{kMagnitudeBins}});
    std::vector<MagnitudeCounts> found;
    for (size_t head = 0; head < amax.size(); ++head) {
      if (!std::isfinite(amax[head]) || amax[head] < 0) {
        fail(name_, ": tensor ", quote(of_amax.name), ": a maximum is negative or infinite");
      }
      const auto begin = bins.begin() + static_cast<ptrdiff_t>(head * kMagnitudeBins);
      found.push_back({amax[head], 0, {begin, begin + kMagnitudeBins}});
      check_count(found.back().bins, prefix + ".bins");
    }
    return found;
  }

  void add_losses(const std::string& tensor, std::vector<MagnitudeCounts>& heads) const {
    const auto losses = values<uint64_t>(at(tensor), DType::u64,
                                         Shape{std::ssize(heads), int64_t{kScaleMantissas}});
    auto next = losses.begin();
    for (MagnitudeCounts& head : heads) {
      head.losses.assign(next, next + kScaleMantissas);
      next += kScaleMantissas;
      if (*std::max_element(head.losses.begin(), head.losses.end()) <= kMostLoss) continue;
      fail(name_, ": tensor ", quote(tensor), ": has a loss above 2^58, which no calibration sums");
    }
  }

  void check_count(const std::vector<uint64_t>& bins, const std::string& tensor) const {
    uint64_t left = kMostCounted;
    for (const uint64_t count : bins) {
      if (count > left) {
        fail(name_, ": tensor ", quote(tensor),
             ": has more than 2^48 values of one head, which no ", "calibration counts");
      }
      left -= count;
    }
  }

  const TensorEntry& at(const std::string& tensor) const {
    const auto found = entries_.find(tensor);
    if (found == entries_.end()) fail(name_, ": has no tensor ", quote(tensor));
    return *found->second;
  }

  template <typename T>
  std::vector<T> values(const TensorEntry& entry, DType dtype, const Shape& shape) const {
    if (entry.dtype != dtype || entry.shape != shape) {
      fail(name_, ": tensor ", quote(entry.name), ": is ", dtype_name(entry.dtype), " ",
           entry.shape.text(), ", expected ", dtype_name(dtype), " ", shape.text());
    }
    std::vector<T> all(static_cast<size_t>(shape.elements()));
    file_.read(entry.begin, std::as_writable_bytes(std::span(all)));
    return all;
  }

  std::string name_;
  InputFile file_;
  SafetensorsHeader header_;
  std::map<std::string, const TensorEntry*> entries_;
};

}  // namespace

std::string histogram_file_bytes(const std::vector<LayerMagnitudes>& layers) {
  // Deques, because the views below point into elements, which must not move.
  std::deque<std::vector<uint64_t>> bins;
  std::deque<std::vector<float>> amax;
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string& prefix, const std::vector<MagnitudeCounts>& heads) {
    std::vector<uint64_t>& all = bins.emplace_back();
    std::vector<float>& largest = amax.emplace_back();
    for (const MagnitudeCounts& head : heads) {
      all.insert(all.end(), head.bins.begin(), head.bins.end());
      largest.push_back(head.amax);
    }
    const auto n_heads = static_cast<int64_t>(heads.size());
    tensors.push_back({prefix + ".bins", host_view(all, Shape{n_heads, kMagnitudeBins})});
    tensors.push_back({prefix + ".amax", host_view(largest)});
  };
  const auto add_losses = [&](const std::string& name, const std::vector<MagnitudeCounts>& heads) {
    std::vector<uint64_t>& all = bins.emplace_back();
    for (const MagnitudeCounts& head : heads) {
      all.insert(all.end(), head.losses.begin(), head.losses.end());
    }
    tensors.push_back({name, host_view(all, Shape{std::ssize(heads), int64_t{kScaleMantissas}})});
  };
  const bool measured = std::any_of(layers.begin(), layers.end(), [](const LayerMagnitudes& layer) {
    return layer.has_cache() && !layer.k.front().losses.empty();
  });
  for (size_t i = 0; i < layers.size(); ++i) {
    if (measured) {
      add_losses(cat("layers.", i, ".k.losses"), layers[i].k);
      add_losses(cat("layers.", i, ".v.losses"), layers[i].v);
    }
    add(cat("layers.", i, ".q"), layers[i].q);
    add(cat("layers.", i, ".k"), layers[i].k);
    add(cat("layers.", i, ".v"), layers[i].v);
  }
  return safetensors_bytes(std::move(tensors), {{"schema", kHistogramSchema},
                                                {"first_exponent", cat(kMagnitudeFirstExponent)},
                                                {"bins_per_octave", cat(kMagnitudeBinsPerOctave)}});
}

std::vector<LayerMagnitudes> read_histogram_file(const std::filesystem::path& path) {
  return Reader(path).layers();
}

}  // namespace fp8kv
