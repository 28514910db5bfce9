// What each runtime will do with a folder or scale file, as text and as JSON.
#pragma once

#include <string>

#include "json/json.h"
#include "scales/rules/runtime_rules.h"

namespace fp8kv {

std::string runtimes_table(FactSet facts);
// Adds the member "runtimes" (an array) and "runtime_facts".
void runtimes_json(JsonWriter& json, FactSet facts);

}  // namespace fp8kv
