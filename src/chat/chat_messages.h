// The messages of a record, in the form that templates get them.
#pragma once

#include "jinja/values/value.h"
#include "json/json.h"

namespace fp8kv {

// Converts `messages` as transformers passes them on. Leaves out members that are null.
// reasoning_content, thinking or reasoning get the names that templates ask for. In ShareGPT's
// `conversations`, from and value become role and content; human is the user, gpt the assistant.
// Throws for anything but a list of messages, and for an empty list.
jinja::Value chat_messages(const Json& record);

}  // namespace fp8kv
