#include "inputs/model_text.h"

#include <memory>

#include "base/error.h"
#include "text/tokenizer.h"

namespace fp8kv {

TextEncoder make_encoder(const Checkpoint& checkpoint, const ModelConfig& config) {
  const std::filesystem::path file = checkpoint.folder() / "tokenizer.json";
  const auto vocab_size = static_cast<int32_t>(config.vocab_size);
  if (!std::filesystem::exists(file)) {
    // Data that is tokenized already needs no tokenizer.
    const auto refuse = [file](std::string_view) -> std::vector<int32_t> {
      throw Error(cat(quote(file.string()), ": no such file"),
                  "text needs the model's tokenizer.json; records with input_ids do not");
    };
    return {refuse, {}, vocab_size};
  }
  const auto tokenizer = std::make_shared<Tokenizer>(Tokenizer::load(file));
  return {[tokenizer](std::string_view text) { return tokenizer->encode(text, false); },
          tokenizer->prefix(), vocab_size};
}

int64_t window_length(int64_t seq_len, bool given, const ModelConfig& config, Log& log) {
  if (seq_len <= config.max_seq_len) return seq_len;
  if (given) {
    throw Error(cat("--seq-len ", seq_len, " is longer than the model's context, ",
                    config.max_seq_len, " (max_position_embeddings)"),
                cat("--seq-len ", config.max_seq_len, " is the longest"), ErrorKind::usage);
  }
  log.note(cat("windows of ", config.max_seq_len, " tokens: the model's whole context"));
  return config.max_seq_len;
}

}  // namespace fp8kv
