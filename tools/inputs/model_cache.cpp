#include "inputs/model_cache.h"

#include <charconv>
#include <set>

#include "base/error.h"
#include "options/kv_dtype.h"

namespace fp8kv {
namespace {

constexpr const char* kFlag = "--kv-cache-dtype-skip-layers";
constexpr const char* kWindows = "sliding_window";

[[noreturn]] void fail_with(const std::string& found, const std::string& expected) {
  throw Error(cat(kFlag, ": ", found, ", expected ", expected),
              "name layers as in 0,5,sliding_window", ErrorKind::usage);
}

int64_t layer_from_text(const std::string& name, const ModelDescription& model) {
  int64_t layer = -1;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size() || layer < 0) {
    fail_with(cat("is ", quote(name)), cat("numbers of layers or ", quote(kWindows)));
  }
  if (layer >= model.n_layers()) {
    fail_with(cat("names layer ", layer),
              cat("a layer of the model, which has 0 to ", model.n_layers() - 1));
  }
  if (!model.writes_cache(layer)) {
    fail_with(cat("names layer ", layer, ", which writes no KV cache"), "layers that write one");
  }
  return layer;
}

void check_holds(const ModelCache& cache, const ModelDescription& model) {
  if (can_hold(model, cache)) return;
  CacheMisfit misfit{"its layers have no cache", "one"};
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    if (!model.writes_cache(i)) continue;
    const std::optional<CacheMisfit> found = cache_misfit(model, i, cache.of(i));
    if (!found) continue;
    misfit = *found;
    break;
  }
  throw Error(cat("--kv-cache-dtype ", kv_dtype_name(cache.type), ": ", misfit.found, ", expected ",
                  misfit.expected),
              "use fp8_e4m3", ErrorKind::usage);
}

}  // namespace

std::vector<int64_t> skipped_layers(const std::vector<std::string>& names,
                                    const ModelDescription& model) {
  std::set<int64_t> layers;
  for (const std::string& name : names) {
    if (name != kWindows) {
      layers.insert(layer_from_text(name, model));
      continue;
    }
    const size_t before = layers.size();
    for (int64_t i = 0; i < model.n_layers(); ++i) {
      if (model.writes_cache(i) && model.window(i) > 0) layers.insert(i);
    }
    if (layers.size() == before) {
      fail_with("no layer of the model has a sliding window", "numbers of layers");
    }
  }
  return {layers.begin(), layers.end()};
}

std::vector<std::string> layer_names(const std::vector<int64_t>& layers) {
  std::vector<std::string> names;
  for (const int64_t layer : layers) names.push_back(cat(layer));
  return names;
}

ModelCache model_cache(const CacheType& type, const CacheType& own,
                       const std::vector<std::string>& skipped, const ModelDescription& model) {
  ModelCache cache = type;
  cache.left_in = own;
  cache.left = skipped_layers(skipped, model);
  check_holds(cache, model);
  return cache;
}

}  // namespace fp8kv
