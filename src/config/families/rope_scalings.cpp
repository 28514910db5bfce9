#include "config/families/rope_scalings.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/families/rope_spellings.h"
#include "config/families/usual_theta.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

double at_least_one(const Json& number) {
  const double value = positive_number(number);
  if (value < 1) fail(number.where(), ": is ", number.brief(), ", expected at least 1");
  return value;
}

// Finds the original context beside the other members of the scaling or, since transformers 5 reads
// it there too, at the top.
double original_context(const RopeSource& from) {
  constexpr const char* kKey = "original_max_position_embeddings";
  const auto outer = from.text.find(kKey);
  const auto inner = from.scaling.find(kKey);
  if (!outer) return positive_number(from.scaling.at(kKey));
  const double context = positive_number(*outer);
  if (inner && positive_number(*inner) != context) {
    throw Error(cat(outer->where(), ": is ", outer->brief(), ", but ", inner->where(), " is ",
                    inner->brief()),
                "leave out the one that is wrong: versions of transformers differ in which they "
                "take");
  }
  return context;
}

void parse_linear(const RopeSource& from, RopeConfig& out) {
  out.factor = at_least_one(from.scaling.at("factor"));
}

// The base grows in sequences longer than max_position_embeddings, which this program never runs.
// With alpha the base is larger for all positions, and does not grow.
void parse_dynamic(const RopeSource& from, RopeConfig& out) {
  const auto alpha = from.scaling.find("alpha");
  at_least_one(from.scaling.at("factor"));
  if (alpha && from.style.reads_alpha) {
    // Published configs have these keys of yarn too, which no runtime reads here.
    for (const char* key : {"beta_fast", "beta_slow", "mscale", "mscale_all_dim"}) {
      from.scaling.find(key);
    }
    const auto size = static_cast<double>(from.head_dim);
    if (size <= 2)
      fail(alpha->where(), ": the base grows by alpha for heads of ", from.head_dim,
           " elements, expected more than 2");
    out.theta *= std::pow(positive_number(*alpha), size / (size - 2));
    return;
  }
  out.base_grows = true;
  if (alpha) {
    throw Error(cat(alpha->where(), ": is ", alpha->brief(),
                    ": a base that grows by alpha is not supported"),
                "supported is factor");
  }
}

void parse_llama3(const RopeSource& from, RopeConfig& out) {
  const Json& scaling = from.scaling;
  out.factor = at_least_one(scaling.at("factor"));
  out.low_freq_factor = positive_number(scaling.at("low_freq_factor"));
  out.high_freq_factor = positive_number(scaling.at("high_freq_factor"));
  out.original_context = original_context(from);
  if (out.high_freq_factor <= out.low_freq_factor) {
    fail(scaling.where(), ": high_freq_factor is ", out.high_freq_factor,
         ", expected more than low_freq_factor, which is ", out.low_freq_factor);
  }
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

// Refuses keys that runtimes read differently or that only some of them read, because they change
// what is cached.
void check_yarn_keys(const RopeSource& from) {
  for (const char* key : {"mscale", "mscale_all_dim", "attn_factor", "extrapolation_factor"}) {
    const auto found = from.scaling.find(key);
    if (!found || (from.style.reads_mscale && std::string_view(key).starts_with("mscale")))
      continue;
    throw Error(
        cat(found->where(), ": is ", found->brief(), ": this part of yarn is not supported"),
        "supported are factor, original_max_position_embeddings, attention_factor, "
        "beta_fast, beta_slow and truncate");
  }
}

void parse_yarn(const RopeSource& from, RopeConfig& out) {
  const Json& scaling = from.scaling;
  check_yarn_keys(from);
  out.factor = at_least_one(scaling.at("factor"));
  out.original_context = original_context(from);
  if (const auto beta = scaling.find("beta_fast")) out.beta_fast = positive_number(*beta);
  if (const auto beta = scaling.find("beta_slow")) out.beta_slow = positive_number(*beta);
  if (out.beta_fast <= out.beta_slow) {
    fail(scaling.where(), ": beta_fast is ", out.beta_fast,
         ", expected more than beta_slow, which is ", out.beta_slow);
  }
  if (out.theta <= 1)
    fail(scaling.where(), ": rope_theta is ", out.theta, ", expected more than 1");
  out.truncate = is_on(scaling, "truncate");
  const auto mscale = scaling.find("mscale"), all_dim = scaling.find("mscale_all_dim");
  if (const auto attention = scaling.find("attention_factor")) {
    out.attention_factor = positive_number(*attention);
  } else if (mscale && all_dim) {
    out.attention_factor = yarn_mscale(out.factor, positive_number(*mscale)) /
                           yarn_mscale(out.factor, positive_number(*all_dim));
  } else {
    out.attention_factor = yarn_mscale(out.factor, 1.0);
  }
}

// The name that Sarvam and vLLM give a yarn with mscale.
void parse_deepseek_yarn(const RopeSource& from, RopeConfig& out) {
  if (!from.style.reads_mscale) {
    fail(from.scaling.where(), ": is deepseek_yarn, expected yarn: no mscale is read here");
  }
  parse_yarn(from, out);
}

// Partial rotary: the first turning_pairs pairs rotate, with the same angles as in a head that
// rotates fully.
void parse_proportional(const RopeSource& from, RopeConfig& out) {
  const bool latent = from.model.layer(0).v_in_k;
  if (from.style.reads_part || latent) {
    throw Error(cat(from.scaling.where(), ": is proportional, expected another type of rope"),
                "it is not supported where an architecture rotates a part of each head alone");
  }
  if (from.scaling.has("factor")) {
    out.scaling = RopeScaling::linear;
    parse_linear(from, out);
  }
  const auto said = from.scaling.find("partial_rotary_factor");
  const double part = said ? positive_number(*said) : 1.0;
  const auto head_dim = static_cast<double>(from.head_dim);
  out.turning_pairs = static_cast<int64_t>(std::floor(part * head_dim / 2));
  if (said && (part > 1 || out.turning_pairs < 1)) {
    fail(said->where(), ": is ", said->brief(), ", which is ", out.turning_pairs, " of the ",
         from.head_dim / 2, " pairs of a head, expected one of them or more");
  }
}

std::vector<double> pair_factors(const RopeSource& from, const char* key, const RopeConfig& out) {
  const Json list = from.scaling.at(key);
  const int64_t rotated = out.rotary_dim > 0 ? out.rotary_dim : from.model.head_dim();
  if (!list.is_array() || static_cast<int64_t>(list.size()) != rotated / 2) {
    fail(list.where(), ": is ", list.brief(), ", expected an array of ",
         count_of(static_cast<size_t>(rotated / 2), "number"),
         ", one for each pair that is rotated");
  }
  std::vector<double> factors;
  for (size_t i = 0; i < list.size(); ++i) factors.push_back(positive_number(list[i]));
  return factors;
}

void parse_longrope(const RopeSource& from, RopeConfig& out) {
  const Json& scaling = from.scaling;
  const auto short_scale = scaling.find("short_mscale"), long_scale = scaling.find("long_mscale");
  for (const auto& found : {short_scale, long_scale}) {
    if (!found || (from.style.reads_mscales && short_scale && long_scale &&
                   short_scale->as_double() == long_scale->as_double())) {
      continue;
    }
    throw Error(
        cat(found->where(), ": is ", found->brief(), ": this part of longrope is not supported"),
        from.style.reads_mscales
            ? "supported are short_mscale and long_mscale of one value"
            : "supported are short_factor, long_factor, original_max_position_embeddings, factor "
              "and attention_factor");
  }
  out.short_factors = pair_factors(from, "short_factor", out);
  out.long_factors = pair_factors(from, "long_factor", out);
  out.original_context = original_context(from);
  const auto factor = scaling.find("factor");
  out.factor = factor ? positive_number(*factor)
                      : static_cast<double>(from.model.max_seq_len) / out.original_context;
  if (short_scale) {
    out.attention_factor = positive_number(*short_scale);
  } else if (const auto attention = scaling.find("attention_factor")) {
    out.attention_factor = positive_number(*attention);
  } else if (out.factor > 1) {
    out.attention_factor = std::sqrt(1 + std::log(out.factor) / std::log(out.original_context));
  }
}

constexpr const char* kProportional = "proportional";

struct ScalingRow {
  const char* name;
  RopeScaling scaling;
  void (*parse)(const RopeSource& from, RopeConfig& out);
};

void parse_nothing(const RopeSource&, RopeConfig&) {}

constexpr ScalingRow kScalings[] = {
    {"default", RopeScaling::none, parse_nothing},
    {"linear", RopeScaling::linear, parse_linear},
    {"dynamic", RopeScaling::none, parse_dynamic},
    {"llama3", RopeScaling::llama3, parse_llama3},
    {kProportional, RopeScaling::none, parse_proportional},
    {"yarn", RopeScaling::yarn, parse_yarn},
    {"deepseek_yarn", RopeScaling::yarn, parse_deepseek_yarn},
    {"longrope", RopeScaling::longrope, parse_longrope},
    // mrope has three positions for a token of an image. For a token of text all three are equal.
    {"mrope", RopeScaling::none, parse_nothing},
};

const ScalingRow& scaling_row(const Json& scaling) {
  const auto type = type_of(scaling);
  std::string name = type ? type->as_string() : "default";
  // Phi-3's first configs use these names for longrope.
  if (name == "su" || (name == "yarn" && scaling.has("short_factor"))) name = "longrope";
  std::vector<std::string> known;
  for (const ScalingRow& row : kScalings) {
    if (row.name == name) return row;
    known.push_back(quote(row.name));
  }
  throw Error(cat(type->where(), ": the rope scaling ", quote(name), " is not supported"),
              cat("supported are ", join(known)));
}

}  // namespace

void set_part(const Json& holder, const char* key, const RopeStyle& style, int64_t head_dim,
              RopeConfig& out) {
  const auto said = holder.find(key);
  if (!said || style.checks_part) return;
  const double part = positive_number(*said);
  if (part == 1) {
    out.rotary_dim = 0;
    return;
  }
  if (!style.reads_part) {
    throw Error(cat(said->where(), ": is ", said->brief(),
                    ": rotating only a part of each head is not supported"),
                "it is not what this architecture does");
  }
  out.rotary_dim = static_cast<int64_t>(static_cast<double>(head_dim) * part);
  if (part > 1 || out.rotary_dim < 2 || out.rotary_dim % 2 != 0) {
    fail(said->where(), ": is ", said->brief(), ", which is ", out.rotary_dim, " of the ", head_dim,
         " elements of a head, expected an even number of them");
  }
}

void parse_scaling(const RopeSource& from, RopeConfig& out) {
  const ScalingRow& row = scaling_row(from.scaling);
  if (row.name != std::string_view(kProportional)) {
    set_part(from.scaling, "partial_rotary_factor", from.style, from.head_dim, out);
  }
  if (const auto theta = from.scaling.find("rope_theta")) out.theta = positive_number(*theta);
  if (out.theta == kNoTheta) out.theta = usual_theta(from.text, from.style);
  if (const auto beta = from.scaling.find("llama_4_scaling_beta")) {
    out.q_growth = beta->as_double();
    out.original_context = original_context(from);
  }
  out.scaling = row.scaling;
  row.parse(from, out);
}

double yarn_score_factor(const Json& text) {
  const auto scaling = find_scaling(text);
  if (!scaling || scaling_row(*scaling).scaling != RopeScaling::yarn) return 1.0;
  const auto all_dim = scaling->find("mscale_all_dim");
  if (!all_dim) return 1.0;
  const double factor = yarn_mscale(at_least_one(scaling->at("factor")), positive_number(*all_dim));
  return factor * factor;
}

}  // namespace fp8kv
