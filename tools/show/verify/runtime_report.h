// What each runtime will do with a folder or scale file, as text and as JSON.
#pragma once

#include <string>

#include "json/json.h"
#include "scales/rules/runtime_rules.h"

namespace fp8kv {

std::string runtimes_table(FactSet facts);

// Where all of that is from: the last line of such a table.
std::string runtime_sources();

// Adds the member "runtimes" (an array) and "runtime_facts".
void runtimes_json(JsonWriter& json, FactSet facts);
// The members "result", "rounded", "sentence", "source", "basis" and "notes".
void verdict_json(JsonWriter& json, const RuntimeVerdict& verdict);

}  // namespace fp8kv
