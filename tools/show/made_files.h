// The files of a folder that a command made, as text and JSON.
#pragma once

#include <span>
#include <string>

#include "json/json.h"
#include "scales/write/inject.h"

namespace fp8kv {

// "files     config.json and model.safetensors written; 4 files copied and 1 hard-linked\n". More
// than four written files are a number.
std::string made_files_line(std::span<const InjectedFile> files);

// A row for each file.
std::string made_files_table(std::span<const InjectedFile> files);

// The member "files" of an object.
void made_files_json(JsonWriter& json, std::span<const InjectedFile> files);

}  // namespace fp8kv
