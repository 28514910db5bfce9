// The identity of a model as an object of a scale file: fp8kv.model.identity.
#pragma once

#include "core/model_identity.h"
#include "json/json.h"

namespace fp8kv {

// The value that follows a key.
void write_identity(JsonWriter& out, const ModelIdentity& identity);

// Throws, naming the key, for what is missing or malformed, and for what does not give
// `fingerprint`.
ModelIdentity read_identity(const Json& object, const std::string& fingerprint);

}  // namespace fp8kv
