// The text that a command runs through a model.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "data/dataset.h"
#include "inputs/chat_text.h"
#include "options/options.h"

namespace fp8kv {

// The command line's options about texts.
struct TextRequest {
  const WindowRequest& windows;
  const DataChoice& choice;
  const ChatRequest& chat;  // how conversations are rendered; see ChatText
};

// Cuts texts into windows for one model, always with the same options.
class ModelText {
 public:
  // A model without a tokenizer takes only tokenized data. If the model's context is shorter than
  // the default window, windows have that length, with a note on `log`. A longer --seq-len is a
  // usage Error.
  ModelText(const Checkpoint& checkpoint, const ModelConfig& config, const TextRequest& request,
            Log& log);

  // See read_windows.
  Windows read(std::span<const std::filesystem::path> files, Log& log) const;

 private:
  WindowOptions options_;
  std::shared_ptr<const ChatText> chats_;  // nullptr without a tokenizer
  TextEncoder encoder_;
};

}  // namespace fp8kv
