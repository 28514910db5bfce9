#include "config/families/rope_config.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/families/rope_scalings.h"
#include "config/families/rope_spellings.h"
#include "config/families/usual_theta.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

RopeConfig plain_rope(const RopeStyle& style, double theta, int64_t head_dim) {
  RopeConfig out;
  out.theta = theta;
  out.pairs = style.pairs;
  if (style.part < 1) {
    out.rotary_dim = static_cast<int64_t>(static_cast<double>(head_dim) * style.part);
  }
  return out;
}

RopeConfig parse_rope(const Json& text, const RopeStyle& style, const ModelConfig& model) {
  RopeConfig out = plain_rope(style, kNoTheta, model.head_dim());
  if (model.layer(0).v_in_k) out.rotary_dim = model.layer(0).own_k_dim();
  set_part(text, style.part_key, style, model.head_dim(), out);
  if (const auto theta = text.find(style.theta_key)) out.theta = positive_number(*theta);
  if (const auto scaling = find_scaling(text)) {
    if (const auto object = find_object_in(*scaling)) {
      fail(object->where(), ": a rope of its own for some layers is not supported");
    }
    parse_scaling({text, *scaling, style, model}, out);
  }
  if (out.theta == kNoTheta) out.theta = usual_theta(text, style);
  return out;
}

// The rotation of one type of layers, in the spelling of transformers 5; `otherwise` if it is
// missing.
RopeConfig parse_rope_of(const Json& text, const Json& parameters, const char* type,
                         const RopeConfig& otherwise, int64_t head_dim, const RopeStyle& style,
                         const ModelConfig& model) {
  const auto scaling = parameters.find(type);
  if (!scaling) return otherwise;
  RopeConfig out = plain_rope(style, otherwise.theta, head_dim);
  parse_scaling({text, *scaling, style, model, head_dim}, out);
  return out;
}

// The head size of the first layer with this mixing, or of the whole model if there is none.
int64_t head_dim_of(const ModelConfig& model, Mixing mixing) {
  for (const LayerDescription& layer : model.layers) {
    if (layer.mixing == mixing) return layer.k_head_dim;
  }
  return model.head_dim();
}

// The rotation of full_attention, with additions from a rope_scaling beside it.
RopeConfig parse_full_rope(const Json& text, const Json& parameters, const RopeConfig& otherwise,
                           const RopeStyle& style, const ModelConfig& model) {
  constexpr const char* kType = "full_attention";
  const int64_t head_dim = head_dim_of(model, Mixing::full);
  const auto more = text.find("rope_scaling");
  const bool adds = style.full_turning == 1 && more && more->is_object() && more->size() > 0;
  if (!adds) return parse_rope_of(text, parameters, kType, otherwise, head_dim, style, model);
  JoinedRope joined(parameters.at(kType), *more);
  RopeConfig out = plain_rope(style, otherwise.theta, head_dim);
  parse_scaling({text, joined.rope(), style, model, head_dim}, out);
  joined.note_reads();
  return out;
}

// The default rotation of layers without a window.
RopeConfig usual_full_rope(const RopeStyle& style, int64_t head_dim) {
  RopeConfig out = plain_rope(style, style.theta, head_dim);
  if (style.full_turning < 1) {
    const double pairs = static_cast<double>(head_dim) / 2 * style.full_turning;
    out.turning_pairs = static_cast<int64_t>(pairs);
  }
  return out;
}

// In these families transformers 5.24 reads the type from 'rope_type' alone, and 4.57 from either
// key. Throws where that makes a difference.
void check_type_is_read(const Json& text) {
  const auto scaling = text.find("rope_scaling");
  const auto type = scaling ? scaling->find("type") : std::nullopt;
  if (!type || scaling->has("rope_type") || type->as_string() == "default") return;
  throw Error(cat(type->where(), ": is ", type->brief(),
                  ", which versions of transformers differ in reading for this architecture"),
              "write 'rope_type' in place of 'type' where the model is to be scaled so");
}

// OLMo 3 has no key for the base of layers with a window. There transformers 4.57 uses the base of
// the other layers, and 5.24 the family's default. Throws if the two differ.
void check_one_base(const Json& text, const RopeStyle& style, const ModelConfig& model) {
  const auto theta = text.find(style.theta_key);
  const bool shared = std::string_view(style.local_key) == style.theta_key;
  const bool windows = std::any_of(model.layers.begin(), model.layers.end(), [](const auto& layer) {
    return layer.mixing == Mixing::window;
  });
  if (!theta || !shared || !windows || theta->as_double() == style.local_theta) return;
  throw Error(
      cat(theta->where(), ": is ", theta->brief(),
          ", which transformers 4.57 has in all layers, and 5.24 not in those with a window"),
      "write rope_parameters with the base of 'full_attention' and of 'sliding_attention'");
}

void set_ropes_by_type(const Json& text, const RopeStyle& style, ModelConfig& out) {
  const int64_t of_full = head_dim_of(out, Mixing::full);
  const int64_t of_window = head_dim_of(out, Mixing::window);
  RopeConfig full = usual_full_rope(style, of_full);
  RopeConfig local = plain_rope(style, style.local_theta, of_window);
  const auto parameters = text.find("rope_parameters");
  if (parameters && find_object_in(*parameters)) {
    // Bases outside of the objects count if the objects have none.
    if (style.full_turning == 1) {
      full.theta = positive_or(text, style.theta_key, full.theta);
      const bool own = std::string_view(style.local_key) != style.theta_key;
      if (own) local.theta = positive_or(text, style.local_key, local.theta);
    }
    full = parse_full_rope(text, *parameters, full, style, out);
    local = parse_rope_of(text, *parameters, "sliding_attention", local, of_window, style, out);
  } else {
    if (parameters && parameters->size() > 0) {
      fail(parameters->where(), ": is ", parameters->brief(),
           ", expected an object for 'full_attention' and one for 'sliding_attention'");
    }
    if (style.full_turning == 1) {
      check_type_is_read(text);
      check_one_base(text, style, out);
      full = parse_rope(text, style, out);
    }
    const auto theta = text.find(style.local_key);
    local = plain_rope(style, theta ? positive_number(*theta) : style.local_theta, of_window);
  }
  out.ropes = {full};
  if (local != full || of_full != of_window) out.ropes.push_back(local);
  out.layer_ropes.clear();
  const auto window_rope = static_cast<int32_t>(out.ropes.size()) - 1;
  for (const LayerDescription& layer : out.layers) {
    out.layer_ropes.push_back(layer.mixing == Mixing::window ? window_rope : 0);
  }
}

}  // namespace

void set_ropes(const Json& text, const RopeStyle& style, ModelConfig& out) {
  check_spellings(text, style);
  if (style.none) {
    out.layer_ropes.assign(out.layers.size(), -1);
  } else if (style.by_layer_type) {
    set_ropes_by_type(text, style, out);
  } else {
    out.ropes = {parse_rope(text, style, out)};
    out.layer_ropes.assign(out.layers.size(), 0);
  }
  for (const RopeConfig& rope : out.ropes) {
    if (rope.scaling != RopeScaling::yarn) continue;
    // Many configs leave max_position_embeddings at the length used in training.
    const double longest = rope.original_context * rope.factor;
    if (longest > kLongestContext) fail(text.where(), ": its rope reaches to position ", longest);
    out.max_seq_len = std::max(out.max_seq_len, static_cast<int64_t>(longest));
  }
}

}  // namespace fp8kv
