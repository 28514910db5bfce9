#include "inputs/known_config.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/drafts/drafter.h"
#include "checkpoint/model/read_model_config.h"
#include "config/describe/assistants.h"

namespace fp8kv {

namespace {

// Warns of unknown keys, or refuses them.
ModelConfig with_known_keys(ModelConfig config, const Checkpoint& checkpoint, bool strict,
                            Log& log) {
  if (config.unknown_keys.empty()) return config;
  std::vector<std::string> names;
  for (const std::string& key : config.unknown_keys) names.push_back(quote(key));
  const bool one = names.size() == 1;
  const std::string found = cat(checkpoint.config().where(), ": ", one ? "the key " : "the keys ",
                                join(names), one ? " is" : " are", " not known here");
  if (strict) {
    throw Error(found,
                "take out what changes nothing in the model; without --strict it is a warning");
  }
  log.warn(cat(found, ": if ", one ? "it changes" : "they change",
               " what the model computes, that is not done"));
  return config;
}

}  // namespace

ModelConfig read_known_config(const Checkpoint& checkpoint, bool strict, Log& log) {
  if (const auto why = reads_other_cache(checkpoint.config())) throw *why;
  if (is_drafter(checkpoint.tensors())) {
    throw Error(cat(quote(checkpoint.folder().string()),
                    ": is a drafter (EAGLE-3), which computes from hidden states of another model"),
                "'fp8kv calibrate' with --target MODEL measures it; nothing else runs it here");
  }
  return with_known_keys(read_model_config(checkpoint), checkpoint, strict, log);
}

ModelConfig read_known_drafter(const Checkpoint& checkpoint, bool strict, Log& log) {
  return with_known_keys(read_drafter_config(checkpoint), checkpoint, strict, log);
}

}  // namespace fp8kv
