// ERNIE 4.5 VL: its language model is ERNIE 4.5 with experts. The files also have experts for
// images, which tokens of text never reach.
#include <optional>
#include <string>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/rows/ernie.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr const char* kErnieVlOuter = "ernie4_5_vl_moe";
constexpr std::string_view kErnieVlPublished[] = {"ernie4_5_moe_vl"};
constexpr std::string_view kErnieVlInside[] = {"ernie4_5_vl_moe_text"};

bool is_ernie_vl_published(const Json& config) {
  return config.get_string("model_type", "") == kErnieVlPublished[0];
}

// Throws for a rope that is scaled. transformers stops there, and vLLM does not scale.
void check_ernie_vl_unscaled(const Json& rope) {
  const auto type = find_any(rope, {"rope_type", "type"});
  if (!type || type->as_string() == "default") return;
  fail(type->where(), ": is ", type->brief(),
       ", expected \"default\": no other rope of this architecture is supported");
}

// For a config without mrope_section. transformers takes [22, 22, 20], and vLLM 20 angles for time
// unless freq_allocation says otherwise. Height and width share the rest.
void check_ernie_vl_time(const Json& config, int64_t angles) {
  const auto told = config.find("freq_allocation");
  const int64_t time = told ? in_range(*told, angles) : 20;
  if (is_ernie_vl_published(config) ? time < angles && (angles - time) % 2 == 0
                                    : angles == 64 && time == 20)
    return;
  fail((told ? *told : config).where(), ": gives time ", time, " of the ", angles,
       " angles of a head, expected a number that leaves an even rest, or an mrope_section");
}

// Checks the parts of a rotation for height, width and time. Tokens of text have one position in
// all three, and so the rotation of ERNIE 4.5 if the parts make up half a head.
void check_ernie_vl_rope(const Json& config, int64_t angles) {
  std::optional<Json> sections;
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto rope = config.find(key);
    if (rope) check_ernie_vl_unscaled(*rope);
    if (rope && !sections) sections = rope->find("mrope_section");
  }
  if (!sections) return check_ernie_vl_time(config, angles);
  const bool three = sections->is_array() && sections->size() == 3;
  const int64_t height = three ? in_range((*sections)[0], kLargestDim) : 0;
  if (!three || (*sections)[1].as_int() != height ||
      2 * height + in_range((*sections)[2], kLargestDim) != angles) {
    fail(sections->where(), ": is ", sections->brief(), ", expected three numbers whose sum is ",
         angles, ", half of a head, and the first two alike");
  }
  const auto told = config.find("freq_allocation");
  if (!told || told->as_int() == (*sections)[2].as_int()) return;
  fail(told->where(), ": is ", told->brief(), ", but the last number of mrope_section is ",
       (*sections)[2].brief(), ": vLLM reads the one, and transformers the other");
}

// Throws where the layers that vLLM gives experts differ from those that transformers does.
void check_ernie_vl_layers(const Json& config, const ModelConfig& out) {
  const auto first = config.find("moe_layer_start_index");
  const auto last = config.find("moe_layer_end_index");
  const auto step = config.find("moe_layer_interval");
  if (!first && !last && !step) return;
  const int64_t begin = first ? in_range(*first, 0, kMostLayers) : 1;
  const int64_t end = last ? last->as_int() : -1;
  const int64_t interval = step ? in_range(*step, kMostLayers) : 1;
  for (int64_t i = 0; i < out.n_layers(); ++i) {
    const bool experts = i >= begin && (end == -1 || i <= end) && (i + 1) % interval == 0;
    if (experts == out.has_experts(i)) continue;
    const Json mentioned = first ? *first : last ? *last : *step;
    fail(mentioned.where(), ": makes layer ", i, experts ? " one with" : " one without",
         " experts, and mlp_layer_types does not: runtimes differ in which they go by");
  }
}

void parse_ernie4_5_vl(const Json& config, ModelConfig& out) {
  // transformers reads no other member of such a config.
  if (config.get_string("model_type", "") == kErnieVlOuter) config.at("text_config");
  // Runtimes have other defaults for these.
  for (const char* key : {"moe_num_experts", "moe_num_shared_experts", "num_key_value_heads"}) {
    config.at(key);
  }
  if (is_ernie_vl_published(config)) config.at("tie_word_embeddings");
  // Published files have it on, and runtimes do not read it.
  if (!is_on(config, "moe_use_aux_free")) {
    fail(config.at("moe_use_aux_free").where(),
         ": is false, expected true: models without a choice bias are not supported");
  }
  config.find("rope_3d");  // changes nothing for text
  parse_ernie4_5_moe(config, out);
  check_ernie_vl_layers(config, out);
  check_ernie_vl_rope(config, out.head_dim() / 2);
}

// A file has each router transposed, and the choice biases of both kinds of experts in one tensor.
std::span<const TensorRow> ernie4_5_vl_tensors() {
  static const TensorRows rows = [] {
    TensorRows made(ernie4_5_moe_tensors().begin(), ernie4_5_moe_tensors().end());
    for (TensorRow& row : made) {
      const TensorRole role = row.roles.front();
      if (role == router) row.layout = TensorLayout::transposed;
      if (role == choice_bias) row.form = VectorForm::first_of_two;
    }
    return made;
  }();
  return rows;
}

}  // namespace

Architecture ernie4_5_vl() {
  return {.name = "Ernie4_5_VLMoeForConditionalGeneration",
          .model_type = kErnieVlOuter,
          .summary = "ERNIE 4.5 VL",
          .parse = parse_ernie4_5_vl,
          .tensors = ernie4_5_vl_tensors(),
          .activations = kSilu,
          .tied = true,
          .rope = {.theta = 500000.0, .pairs = RopePairs::neighbours},
          .more_types = kErnieVlPublished,
          .inner_types = kErnieVlInside};
}

}  // namespace fp8kv
