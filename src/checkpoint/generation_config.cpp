#include "checkpoint/generation_config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/describe/token_ids.h"
#include "config/values/config_values.h"
#include "json/object_file.h"

namespace fp8kv {
namespace {

// Other options of transformers that change the generated text, and the value at which each does
// nothing. NaN: every number has an effect.
struct OtherOption {
  const char* key;
  double neutral;
};

constexpr OtherOption kOthers[] = {
    {"bad_words_ids", NAN},
    {"begin_suppress_tokens", NAN},
    {"constraints", NAN},
    {"diversity_penalty", 0},
    {"dola_layers", NAN},
    {"encoder_no_repeat_ngram_size", 0},
    {"encoder_repetition_penalty", 1},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"exponential_decay_length_penalty", NAN},
    {"force_words_ids", NAN},
    {"forced_bos_token_id", NAN},
    {"forced_eos_token_id", NAN},
    {"guidance_scale", 1},
    {"min_length", 0},
    {"min_new_tokens", 0},
    {"min_p", 0},
    {"no_repeat_ngram_size", 0},
    {"num_beams", 1},
    {"penalty_alpha", 0},
    {"repetition_penalty", 1},
    {"sequence_bias", NAN},
    {"stop_strings", NAN},
    {"suppress_tokens", NAN},
    {"typical_p", 1},
    {"watermarking_config", NAN},
};

bool says_nothing(const Json& value, double neutral) {
  if (value.is_number()) return value.as_double() == neutral;
  return (value.is_bool() && !value.as_bool()) || (value.is_array() && value.size() == 0);
}

float number_between(const Json& number, double least, double most) {
  const double value = number.as_double();
  if (value >= least && value <= most) return static_cast<float>(value);
  fail(number.where(), ": is ", number.brief(), ", expected a number from ", least, " to ", most);
}

std::optional<Json> read_file(const std::filesystem::path& folder) {
  return find_object(folder / "generation_config.json", JsonNumbers::python);
}

}  // namespace

std::optional<std::vector<int32_t>> read_eos_ids(const std::filesystem::path& folder) {
  const std::optional<Json> json = read_file(folder);
  const std::optional<Json> ids = json ? json->find("eos_token_id") : std::nullopt;
  return ids ? std::optional(parse_token_ids(*ids)) : std::nullopt;
}

GenerationConfig read_generation_config(const std::filesystem::path& folder) {
  GenerationConfig out;
  const std::optional<Json> json = read_file(folder);
  if (!json) return out;
  for (const OtherOption& other : kOthers) {
    const auto value = json->find(other.key);
    if (!value || says_nothing(*value, other.neutral)) continue;
    out.unsupported.push_back(cat(other.key, " ", value->brief()));
  }
  if (const auto value = json->find("max_new_tokens")) {
    out.max_new_tokens = in_range(*value, 1, INT64_MAX);
  }
  if (const auto value = json->find("max_length")) {
    out.max_length = in_range(*value, 0, INT64_MAX);
  }
  out.do_sample = json->get_bool("do_sample", false);
  if (!out.do_sample) return out;
  if (const auto value = json->find("temperature"))
    out.temperature = number_between(*value, 0, 100);
  if (const auto value = json->find("top_p")) out.top_p = number_between(*value, 1e-6, 1);
  if (const auto value = json->find("top_k")) {
    // -1 is vLLM's spelling of "all".
    out.top_k = static_cast<int32_t>(std::max<int64_t>(in_range(*value, -1, INT32_MAX), 0));
  }
  return out;
}

}  // namespace fp8kv
