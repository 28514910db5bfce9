#include "inputs/sampling_choice.h"

#include <string>
#include <vector>

#include "base/text.h"

namespace fp8kv {

SamplingOptions choose_sampling(const RunOptions& options, const GenerationConfig& config,
                                Log& log) {
  std::vector<std::string> taken;
  const auto choose = [&](const auto& flag, const auto& said, auto otherwise, const char* name) {
    if (flag) return *flag;
    if (!said) return otherwise;
    taken.push_back(cat(name, " ", *said));
    return *said;
  };
  SamplingOptions sampling;
  // Sampling without a temperature has that of transformers.
  const std::optional<float> temperature =
      config.do_sample ? std::optional(config.temperature.value_or(1.0f)) : std::nullopt;
  sampling.temperature = choose(options.temperature, temperature, 0.0f, "temperature");
  sampling.top_k = choose(options.top_k, config.top_k, 0, "top_k");
  sampling.top_p = choose(options.top_p, config.top_p, 1.0f, "top_p");
  std::string line;
  if (!taken.empty()) {
    line = cat("sampling with ", join(taken), " (--temperature 0 takes the likeliest token)");
  }
  if (!config.unsupported.empty()) {
    line +=
        cat(line.empty() ? "" : "; ", "not supported, and left out: ", join(config.unsupported));
  }
  if (!line.empty()) log.note("generation_config.json: " + line);
  return sampling;
}

}  // namespace fp8kv
