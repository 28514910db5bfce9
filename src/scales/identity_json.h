// The identity of a model as an object of a scale file: fp8kv.model.identity.
#pragma once

#include "core/model/model_identity.h"
#include "json/json.h"

namespace fp8kv {

// Writes the value behind a key that is already written.
void write_identity(JsonWriter& out, const ModelIdentity& identity);

// Throws, naming the key, for missing or malformed members, and if the identity does not match
// `fingerprint`.
ModelIdentity read_identity(const Json& object, const std::string& fingerprint);

}  // namespace fp8kv
