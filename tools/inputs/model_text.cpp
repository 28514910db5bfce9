#include "inputs/model_text.h"

#include <memory>

#include "base/error.h"
#include "base/interrupt.h"
#include "inputs/chat_text.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

TextEncoder make_encoder(const Checkpoint& checkpoint, const ModelConfig& config,
                         const ChatRequest& chat, std::shared_ptr<const ChatText>& used, Log& log) {
  const NothingToTidy reading;
  const auto vocab_size = static_cast<int32_t>(config.vocab_size);
  std::optional<Tokenizer> found = Tokenizer::find_in(checkpoint.folder());
  if (!found) {
    // Tokenized data needs no tokenizer, so only text throws.
    const auto refuse = [folder = checkpoint.folder()](std::string_view) -> std::vector<int32_t> {
      throw Error(cat(quote(folder.string()), ": has no ", Tokenizer::kFiles),
                  "text needs the model's tokenizer; records with input_ids do not");
    };
    const auto refuse_chat = [refuse](const Json&) { return refuse(""); };
    return {refuse, {}, vocab_size, refuse_chat};
  }
  const auto tokenizer = std::make_shared<Tokenizer>(std::move(*found));
  TextEncoder encoder = {
      [tokenizer](std::string_view text) { return tokenizer->encode(text, false); },
      tokenizer->prefix(), vocab_size};
  const auto chats = std::make_shared<ChatText>(checkpoint.folder(), chat, *tokenizer, log);
  used = chats;
  // The lambdas hold the tokenizer because `chats` refers to it.
  if (chats->joins()) {
    encoder.encode_joined = [tokenizer, chats](std::string_view text) {
      return chats->joined(text);
    };
  } else {
    encoder.encode_chat = [tokenizer, chats](const Json& record) {
      return chats->record(record, false).ids;
    };
  }
  return encoder;
}

int64_t window_length(const WindowRequest& request, const ModelConfig& config, Log& log) {
  if (request.seq_len <= config.max_seq_len) return request.seq_len;
  if (request.seq_len_given) {
    throw Error(cat("--seq-len ", request.seq_len, " is longer than the model's context, ",
                    config.max_seq_len, " (", config.context_key, ")"),
                cat("--seq-len ", config.max_seq_len, " is the longest"), ErrorKind::usage);
  }
  log.note(cat("windows of ", config.max_seq_len, " tokens: the model's whole context"));
  return config.max_seq_len;
}

}  // namespace

ModelText::ModelText(const Checkpoint& checkpoint, const ModelConfig& config,
                     const TextRequest& request, Log& log)
    : options_{.max_windows = request.windows.samples,
               .shortage = request.windows.until_settled   ? Shortage::accepted
                           : request.windows.samples_given ? Shortage::refused
                                                           : Shortage::warned_of,
               .seq_len = window_length(request.windows, config, log),
               .max_windows_name = "--samples",
               .seq_len_name = "--seq-len",
               .shuffle = request.choice.shuffle,
               .column = request.choice.column},
      encoder_(make_encoder(checkpoint, config, request.chat, chats_, log)) {}

Windows ModelText::read(std::span<const std::filesystem::path> files, Log& log) const {
  const NothingToTidy reading;
  Windows windows = read_windows(files, encoder_, options_, log);
  const std::string used = chats_ ? chats_->used_template() : "";
  if (!used.empty()) windows.chat_templates = {used};
  return windows;
}

}  // namespace fp8kv
