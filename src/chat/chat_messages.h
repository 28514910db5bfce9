// The messages of a record, as templates are given them.
#pragma once

#include "jinja/values/value.h"
#include "json/json.h"

namespace fp8kv {

// Of `messages`, as transformers passes them on: without members that are null, and what a message
// calls reasoning_content, thinking or reasoning under the names that templates ask for. Of
// ShareGPT's `conversations`, from and value as role and content: human is the user, gpt the
// assistant. Throws for what is no list of messages, and for an empty one.
jinja::Value chat_messages(const Json& record);

}  // namespace fp8kv
