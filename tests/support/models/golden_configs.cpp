#include "support/models/golden_configs.h"

#include <cstdint>

#include "checkpoint/model/read_model_config.h"
#include "support/models/family_model.h"
#include "support/models/goldens.h"

namespace fp8kv::test {
namespace {

constexpr int64_t kTokens = 40;  // length of the shortest golden

}  // namespace

std::multimap<std::string, ModelConfig> golden_configs() {
  std::multimap<std::string, ModelConfig> found;
  for (const std::string& name : family_cases()) {
    const FamilyModel model(name);
    found.emplace(model.config.architecture, model.config);
  }
  for (const char* name : kGoldens) {
    const ModelConfig config = read_model_config(Checkpoint::open(golden(name).folder));
    found.emplace(config.architecture, config);
  }
  return found;
}

std::set<std::string> oddities(const ModelConfig& config) {
  std::set<std::string> has;
  has.insert(config.tied_embeddings ? "tied" : "untied");
  if (config.head_dim() * config.n_heads != config.dim) has.insert("head_dim");
  if (config.n_kv_heads() == 1) has.insert("one KV head");
  if (config.n_heads == 7 * config.n_kv_heads()) has.insert("seven Q heads");
  if (config.vocab_size == 77) has.insert("77 tokens");
  for (const LayerDescription& layer : config.layers) {
    if (layer.reach > 0 && layer.reach < kTokens) has.insert("short reach");
  }
  return has;
}

}  // namespace fp8kv::test
