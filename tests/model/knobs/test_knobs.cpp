// A test of the tests: for each feature of only some families, a golden fails without it. So nobody
// can leave out a knob unnoticed.
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/identity/kv_config.h"
#include "checkpoint/model/read_model_config.h"
#include "model/knobs/family_knobs.h"
#include "support/models/family_model.h"
#include "support/models/goldens.h"
#include "support/models/run_model.h"

namespace fp8kv {
namespace {

struct Logits {
  explicit Logits(const std::string& golden) {
    const std::filesystem::path folder = test::source_dir() / "tests/golden" / golden;
    if (std::filesystem::exists(folder)) {
      const auto [path, file, of] = test::golden(golden.c_str());
      checkpoint = Checkpoint::open(path);
      ids = of;
    } else {
      family.emplace(golden);
      checkpoint = family->checkpoint;
      ids = family->ids;
    }
    config = read_model_config(*checkpoint);
  }
  std::optional<test::FamilyModel> family;
  std::optional<Checkpoint> checkpoint;
  ModelConfig config;
  std::vector<int32_t> ids;
};

std::vector<test::Knob> all_knobs() {
  std::vector<test::Knob> knobs;
  for (const auto& some : {test::family_knobs(), test::later_knobs(), test::newest_knobs()}) {
    knobs.insert(knobs.end(), some.begin(), some.end());
  }
  return knobs;
}

}  // namespace

TEST_CASE("knobs: one that is left out takes a golden beyond its tolerance") {
  const auto backend = make_cpu_backend(2);
  for (const test::Knob& knob : all_knobs()) {
    CAPTURE(std::string(knob.what));
    CAPTURE(std::string(knob.golden));
    Logits model(knob.golden);
    const auto expected = test::run_model(*model.checkpoint, model.config, *backend, model.ids);
    knob.leave_out(model.config);
    const auto logits = test::run_model(*model.checkpoint, model.config, *backend, model.ids);
    CHECK(test::logit_difference(logits, expected) > 5 * test::kLogitTolerance);
  }
}

TEST_CASE("knobs: a model without one is another model, unless other parts tell") {
  // These come after K and V.
  const std::set<std::string> after = {"head_bias",
                                       "head_bias, beside an untied head",
                                       "head_bias, beside a tied head",
                                       "head_normed",
                                       "last_norm_whole",
                                       "logit_cap",
                                       "logit_cap, by default",
                                       "logit_cap, of scaled logits",
                                       "logit_multiplier",
                                       "logit_multiplier, below a cap",
                                       "logit_multiplier, with a latent",
                                       "logit_multiplier, by default, beside experts",
                                       "logit_multiplier, by muP",
                                       "logit_multiplier, none in a wrapper",
                                       "tied_embeddings"};
  // These follow from which tensors there are, or from the architecture.
  const std::set<std::string> told = {"experts.bias",
                                      "latent.norm_eps",
                                      "latent.norm_eps, beside images",
                                      "latent.norm_eps, beside lightning attention",
                                      "latent.norm_eps, beside states",
                                      "latent.norm_eps, without a rotation",
                                      "layer_input_dim",
                                      "layer_scale",
                                      "layer_token_multiplier",
                                      "layer_vocab_size",
                                      "sinks",
                                      "sinks, behind a latent",
                                      "sinks, beside pools",
                                      "sinks, in layers with a window",
                                      "turning_pairs",
                                      "turning_pairs, beside convolutions",
                                      "turning_pairs, without per-layer inputs",
                                      "v_is_k",
                                      "v_norm",
                                      "v_norm, without per-layer inputs"};
  for (const test::Knob& knob : all_knobs()) {
    CAPTURE(std::string(knob.what));
    Logits model(knob.golden);
    const std::vector<ConfigNumber> before = kv_config(model.config);
    knob.leave_out(model.config);
    const bool is_same = after.contains(knob.what) || told.contains(knob.what);
    CHECK((kv_config(model.config) == before) == is_same);
  }
}

}  // namespace fp8kv
