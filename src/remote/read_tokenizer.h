// Reads the files of a remote model's tokenizer and its chat templates, whole. Parses none of them.
#pragma once

#include "remote/remote_reader.h"

namespace fp8kv {

// Reads the files in which Tokenizer::find_in and ChatTemplate::find_in look, except templates in
// the folder additional_chat_templates: no server lists a folder in the same way. Throws, naming
// the address, for a model without a tokenizer.
RemoteReader tokenizer_reader();

}  // namespace fp8kv
