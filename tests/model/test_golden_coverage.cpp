// Checks that the goldens, computed by transformers, together cover what the families can have.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "config/architectures.h"
#include "support/models/golden_configs.h"

namespace fp8kv {
namespace {

// Features that an architecture cannot have: transformers, or the model's own code, does not have
// them.
struct Never {
  std::string_view architecture;
  std::set<std::string> what;
};

// For models whose query heads each have a K and V of their own.
const std::set<std::string> kGroups = {"head_dim", "one KV head", "seven Q heads"};
const Never kNever[] = {
    {"BailingHybridForCausalLM", {"tied"}},
    // Runtimes differ in the decays of other numbers of heads than powers of 2.
    {"BailingMoeV2_5ForCausalLM", {"seven Q heads", "tied"}},
    {"BailingMoeV3ForCausalLM", {"tied"}},
    // These never tie the embedding to lm_head, which later models normalise.
    {"BaiChuanForCausalLM", {"head_dim", "one KV head", "seven Q heads", "tied"}},
    {"BaichuanForCausalLM", {"head_dim", "one KV head", "seven Q heads", "tied"}},
    {"BloomForCausalLM", kGroups},
    {"DiffLlamaForCausalLM", {"one KV head"}},
    {"FalconForCausalLM", {"head_dim"}},
    {"GPT2LMHeadModel", kGroups},
    {"GPTBigCodeForCausalLM", {"head_dim"}},
    {"GPTJForCausalLM", kGroups},
    {"GPTNeoXForCausalLM", kGroups},
    {"Glm4vForConditionalGeneration", {"head_dim"}},
    {"HeliumForCausalLM", {"head_dim"}},
    {"InklingForCausalLM", {"tied"}},
    {"InklingForConditionalGeneration", {"tied"}},
    {"InternLM2ForCausalLM", {"head_dim"}},
    {"MiniCPMForCausalLM", {"head_dim"}},
    {"KimiK3ForConditionalGeneration", {"tied"}},
    {"KimiLinearForCausalLM", {"tied"}},
    {"MPTForCausalLM", kGroups},
    {"MiniMaxM1ForCausalLM", {"seven Q heads"}},
    {"MiniMaxText01ForCausalLM", {"seven Q heads"}},
    {"MptForCausalLM", kGroups},
    {"MuseSparkForConditionalGeneration", {"tied"}},
    {"NemotronHForCausalLM", {"tied"}},
    {"NemotronH_Nano_Omni_Reasoning_V3", {"tied"}},
    {"NemotronH_Nano_VL_V2", {"tied"}},
    {"NemotronH_Omni_Reasoning_V3", {"tied"}},
    {"OPTForCausalLM", kGroups},
    {"OlmoHybridForCausalLM", {"head_dim"}},
    {"PersimmonForCausalLM", kGroups},
    // The size of K's norm follows from hidden_size.
    {"OlmoeForCausalLM", {"head_dim"}},
    {"Qwen2VLForConditionalGeneration", {"head_dim"}},
    {"Qwen2_5OmniForConditionalGeneration", {"head_dim"}},
    {"Qwen2_5OmniModel", {"head_dim"}},
    {"Qwen2_5_VLForConditionalGeneration", {"head_dim"}},
    {"StableLmForCausalLM", {"head_dim"}},
    // Transformers shares no blocks where embeddings are not tied.
    {"Zamba2ForCausalLM", {"untied"}},
};

}  // namespace

TEST_CASE("goldens: every architecture has three models, of all odd sizes that it can have") {
  const auto found = test::golden_configs();
  std::set<std::string> names;
  for (const auto& [name, config] : found) names.insert(name);
  for (const Architecture& row : architectures()) CHECK(names.contains(row.name));
  CHECK(names.size() == architectures().size() + 28);  // those around a language model

  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(found.count(name) >= 3);
    std::set<std::string> wanted = {"tied",        "untied",        "head_dim",
                                    "one KV head", "seven Q heads", "77 tokens"};
    for (const Never& never : kNever) {
      if (never.architecture != name) continue;
      for (const std::string& what : never.what) wanted.erase(what);
    }
    for (const Architecture& row : architectures()) {
      if (row.name == name && (row.windows || row.chunks)) wanted.insert("short reach");
    }
    std::set<std::string> has;
    const auto [begin, end] = found.equal_range(name);
    for (auto each = begin; each != end; ++each) has.merge(test::oddities(each->second));
    for (const std::string& what : wanted) {
      CAPTURE(what);
      CHECK(has.contains(what));
    }
    // A golden must not have features that its architecture cannot have.
    for (const Never& never : kNever) {
      if (never.architecture != name) continue;
      for (const std::string& what : never.what) CHECK_FALSE(has.contains(what));
    }
  }
}

TEST_CASE("goldens: every form of router is in one") {
  std::set<std::string> has;
  for (const auto& [name, config] : test::golden_configs()) {
    if (!config.experts) continue;
    const ExpertsConfig& experts = *config.experts;
    const Routing& routing = experts.routing;
    const char* score = routing.score == RouterScore::softmax             ? "softmax"
                        : routing.score == RouterScore::softmax_of_chosen ? "softmax of chosen"
                        : routing.score == RouterScore::sparse_mixer      ? "sparse mixer"
                                                                          : "sigmoid";
    has.insert(score);
    if (routing.score == RouterScore::softmax)
      has.insert(routing.normalise ? "softmax, normalised" : "softmax, as it is");
    if (routing.score == RouterScore::sigmoid && !routing.weigh_input)
      has.insert(routing.normalise ? "sigmoid, normalised" : "sigmoid, as it is");
    if (experts.choice_bias) has.insert("bias of the choice");
    if (experts.choice_bias && routing.score == RouterScore::softmax)
      has.insert("bias of the choice, by softmax");
    if (routing.groups > 1 && routing.groups_kept < routing.groups) has.insert("groups");
    if (routing.scale != 1.0) has.insert("scale");
    if (routing.weigh_input) has.insert("on the way in");
    if (routing.per_token == 1) has.insert("one expert a token");
    if (routing.per_token > 2) has.insert("more than two experts a token");
    if (experts.shared_hidden_dim > 0)
      has.insert(experts.shared_gated ? "shared, gated" : "shared, as it is");
    if (experts.beside_dense) has.insert("beside a dense part");
    if (experts.factors) has.insert("factors");
    const auto is_plain = [](const LayerDescription& layer) {
      return layer.feed_forward != FeedForward::experts;
    };
    if (std::any_of(config.layers.begin(), config.layers.end(), is_plain))
      has.insert("dense layers between");
    if (!config.block.gated) has.insert("without gates");
    if (experts.inner_dim > 0) has.insert("between two products");
  }
  for (const char* form :
       {"softmax, normalised", "softmax, as it is", "softmax of chosen", "sigmoid, normalised",
        "sigmoid, as it is", "bias of the choice", "bias of the choice, by softmax", "groups",
        "scale", "on the way in", "one expert a token", "more than two experts a token",
        "shared, gated", "shared, as it is", "dense layers between", "beside a dense part",
        "factors", "without gates", "between two products"}) {
    CAPTURE(form);
    CHECK(has.contains(form));
  }
}

}  // namespace fp8kv
