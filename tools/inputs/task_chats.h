// Encodes the messages in the items of `eval --task`.
#pragma once

#include "inputs/chat_text.h"
#include "tasks/task.h"
#include "text/tokenizer.h"

namespace fp8kv {

// Both encode messages like `run` does. REQUIRE that `chats` and `tokenizer` outlive the result.
EncodeMessages messages_encoder(ChatText& chats, const Tokenizer& tokenizer);
EncodeAnswers answers_encoder(ChatText& chats, const Tokenizer& tokenizer);

}  // namespace fp8kv
