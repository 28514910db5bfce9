#include "config/config_parts.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace {

double positive_number(const Json& number) {
  const double value = number.as_double();
  if (!(value > 0) || !std::isfinite(value)) {
    fail(number.where(), ": is ", number.brief(), ", expected a positive number");
  }
  return value;
}

double at_least_one(const Json& number) {
  const double value = positive_number(number);
  if (value < 1) fail(number.where(), ": is ", number.brief(), ", expected at least 1");
  return value;
}

void check_whole_rotation(const Json& holder) {
  const auto part = holder.find("partial_rotary_factor");
  if (!part || part->as_double() == 1) return;
  throw Error(cat(part->where(), ": is ", part->brief(),
                  ": rotating only a part of each head is not supported"),
              "it is not what the supported architectures do");
}

// Beside the other members of the scaling, or, as transformers 5 reads it too, outside.
double original_context(const Json& config, const Json& scaling) {
  constexpr const char* kKey = "original_max_position_embeddings";
  const auto outer = config.find(kKey);
  const auto inner = scaling.find(kKey);
  if (!outer) return positive_number(scaling.at(kKey));
  const double context = positive_number(*outer);
  if (inner && positive_number(*inner) != context) {
    throw Error(cat(outer->where(), ": is ", outer->brief(), ", but ", inner->where(), " is ",
                    inner->brief()),
                "leave out the one that is wrong: versions of transformers differ in which they "
                "take");
  }
  return context;
}

void parse_linear(const Json&, const Json& scaling, RopeConfig& out) {
  out.factor = at_least_one(scaling.at("factor"));
}

void parse_llama3(const Json& config, const Json& scaling, RopeConfig& out) {
  out.factor = at_least_one(scaling.at("factor"));
  out.low_freq_factor = positive_number(scaling.at("low_freq_factor"));
  out.high_freq_factor = positive_number(scaling.at("high_freq_factor"));
  out.original_context = original_context(config, scaling);
  if (out.high_freq_factor <= out.low_freq_factor) {
    fail(scaling.where(), ": high_freq_factor is ", out.high_freq_factor,
         ", expected more than low_freq_factor, which is ", out.low_freq_factor);
  }
}

// What runtimes read differently, or only some of them, is refused: it changes what is cached.
void parse_yarn(const Json& config, const Json& scaling, RopeConfig& out) {
  for (const char* key : {"mscale", "mscale_all_dim", "attn_factor", "extrapolation_factor"}) {
    if (const auto found = scaling.find(key)) {
      throw Error(
          cat(found->where(), ": is ", found->brief(), ": this part of yarn is not supported"),
          "supported are factor, original_max_position_embeddings, attention_factor, "
          "beta_fast, beta_slow and truncate");
    }
  }
  out.factor = at_least_one(scaling.at("factor"));
  out.original_context = original_context(config, scaling);
  if (const auto beta = scaling.find("beta_fast")) out.beta_fast = positive_number(*beta);
  if (const auto beta = scaling.find("beta_slow")) out.beta_slow = positive_number(*beta);
  if (out.beta_fast <= out.beta_slow) {
    fail(scaling.where(), ": beta_fast is ", out.beta_fast,
         ", expected more than beta_slow, which is ", out.beta_slow);
  }
  if (out.theta <= 1)
    fail(scaling.where(), ": rope_theta is ", out.theta, ", expected more than 1");
  out.truncate = scaling.get_bool("truncate", true);
  const auto attention = scaling.find("attention_factor");
  out.attention_factor = attention ? positive_number(*attention) : 0.1 * std::log(out.factor) + 1.0;
}

struct ScalingRow {
  const char* name;
  RopeScaling scaling;
  void (*parse)(const Json& config, const Json& scaling, RopeConfig& out);
};

constexpr ScalingRow kScalings[] = {
    {"default", RopeScaling::none, [](const Json&, const Json&, RopeConfig&) {}},
    {"linear", RopeScaling::linear, parse_linear},
    {"llama3", RopeScaling::llama3, parse_llama3},
    {"yarn", RopeScaling::yarn, parse_yarn},
};

void parse_scaling(const Json& config, const Json& scaling, RopeConfig& out) {
  for (size_t i = 0; i < scaling.size(); ++i) {
    if (scaling.value(i).is_object()) {
      fail(scaling.value(i).where(), ": a rope of its own for some layers is not supported");
    }
  }
  check_whole_rotation(scaling);
  if (const auto theta = scaling.find("rope_theta")) out.theta = positive_number(*theta);
  const auto named = scaling.find("rope_type");
  const auto type = named ? named : scaling.find("type");
  const std::string name = type ? type->as_string() : "default";
  std::vector<std::string> known;
  for (const ScalingRow& row : kScalings) {
    if (row.name == name) {
      out.scaling = row.scaling;
      return row.parse(config, scaling, out);
    }
    known.push_back(quote(row.name));
  }
  throw Error(cat(type->where(), ": the rope scaling ", quote(name), " is not supported"),
              cat("supported are ", join(known)));
}

}  // namespace

RopeConfig parse_rope(const Json& config) {
  RopeConfig out;
  check_whole_rotation(config);
  if (const auto theta = config.find("rope_theta")) out.theta = positive_number(*theta);
  const auto old_spelling = config.find("rope_scaling");
  // An empty object says nothing, as in transformers.
  const bool says = old_spelling && (!old_spelling->is_object() || old_spelling->size() > 0);
  const auto scaling = says ? old_spelling : config.find("rope_parameters");
  if (!scaling) return out;
  if (!scaling->is_object()) {
    fail(scaling->where(), ": is ", scaling->brief(), ", expected an object");
  }
  parse_scaling(config, *scaling, out);
  return out;
}

int32_t parse_token_id(const Json& id) {
  const int64_t value = id.as_int();
  if (value < 0 || value > INT32_MAX) {
    fail(id.where(), ": is ", id.brief(), ", expected a token id");
  }
  return static_cast<int32_t>(value);
}

std::vector<int32_t> parse_token_ids(const Json& ids) {
  if (!ids.is_array()) return {parse_token_id(ids)};
  std::vector<int32_t> out;
  for (size_t i = 0; i < ids.size(); ++i) out.push_back(parse_token_id(ids[i]));
  return out;
}

}  // namespace fp8kv
