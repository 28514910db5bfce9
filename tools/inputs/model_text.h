// The text that a command runs through a model.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "data/dataset.h"
#include "inputs/chat_text.h"
#include "options/options.h"

namespace fp8kv {

// Reads texts as windows for a model, each in the same way.
class ModelText {
 public:
  // A model without a tokenizer can take tokenized data. Windows are as long as the model's context
  // where that is shorter than what `request` has by default, which is said on `log`; a length that
  // was given is a usage Error. Conversations are rendered as `chat` says; see ChatText.
  ModelText(const Checkpoint& checkpoint, const ModelConfig& config, const WindowRequest& request,
            const DataChoice& choice, const ChatRequest& chat, Log& log);

  // See read_windows.
  Windows read(std::span<const std::filesystem::path> files, Log& log) const;

 private:
  WindowOptions options_;
  std::shared_ptr<const ChatText> chats_;  // none without a tokenizer
  TextEncoder encoder_;
};

}  // namespace fp8kv
