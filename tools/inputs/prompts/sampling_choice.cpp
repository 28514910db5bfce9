#include "inputs/prompts/sampling_choice.h"

#include <string>
#include <vector>

#include "base/text.h"

namespace fp8kv {

Request choose_defaults(const RunOptions& options, const GenerationConfig& config, Log& log) {
  std::vector<std::string> taken;
  const auto choose = [&](const auto& flag, const auto& said, auto otherwise, const char* name) {
    if (flag) return *flag;
    if (!said) return otherwise;
    taken.push_back(cat(name, " ", *said));
    return *said;
  };
  Request defaults;
  defaults.logprobs = options.logprobs;
  SamplingOptions& sampling = defaults.sampling;
  // Sampling without a temperature uses 1, the default of transformers.
  const std::optional<float> temperature =
      config.do_sample ? std::optional(config.temperature.value_or(1.0f)) : std::nullopt;
  sampling.temperature = choose(options.temperature, temperature, 0.0f, "temperature");
  sampling.top_k = choose(options.top_k, config.top_k, 0, "top_k");
  sampling.top_p = choose(options.top_p, config.top_p, 1.0f, "top_p");
  std::vector<std::string> said;
  if (!taken.empty()) {
    said.push_back(
        cat("sampling with ", join(taken), " (--temperature 0 takes the likeliest token)"));
  }
  if (options.max_new_tokens) {
    defaults.max_new_tokens = *options.max_new_tokens;
  } else if (config.max_new_tokens) {
    defaults.max_new_tokens = *config.max_new_tokens;
    said.push_back(cat("at most ",
                       count_of(static_cast<uint64_t>(defaults.max_new_tokens), "new token"),
                       " (-n takes more or fewer)"));
  } else if (config.max_length) {
    // max_length is usually the whole context, which is too long for an answer.
    said.push_back(cat("max_length ", *config.max_length, " is not taken: at most ",
                       count_of(static_cast<uint64_t>(defaults.max_new_tokens), "new token"),
                       " (-n takes more or fewer)"));
  }
  if (!config.unsupported.empty()) {
    said.push_back(cat("not supported, and left out: ", join(config.unsupported)));
  }
  if (options.answers.value_or(1) > 1 && sampling.temperature == 0) {
    log.note(cat("--samples-per-prompt ", *options.answers,
                 ": the answers to a prompt are all the same at temperature 0"));
  }
  std::string line;
  for (const std::string& part : said) line += (line.empty() ? "" : "; ") + part;
  if (!line.empty()) log.note("generation_config.json: " + line);
  return defaults;
}

}  // namespace fp8kv
