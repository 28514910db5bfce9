// Scales of a file or folder, and what is remarkable about them, as inspect shows them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "json/json.h"
#include "scales/read/found_scales.h"

namespace fp8kv {

// "name              value": a line of a description.
std::string described(const std::string& name, const std::string& value);

// "AutoRound 0.16.1"; "" where the producer is not known.
std::string producer_text(const Provenance& provenance);

// The line that says which keys of config.json nobody knew, and its member; nothing without any.
std::string unknown_keys_text(const std::vector<std::string>& keys);
void unknown_keys_json(JsonWriter& json, const std::vector<std::string>& keys);
// A line for the chat templates that conversations were rendered by, and the member
// "chat_templates"; nothing without any.
std::string templates_text(const std::vector<std::string>& templates);
void templates_json(JsonWriter& json, const std::vector<std::string>& templates);
// A line for weights that were decoded to be computed with, and the member "quantised_weights";
// nothing where they were not.
std::string quantised_text(const std::string& stored_as, const std::string& compute_dtype);
void quantised_json(JsonWriter& json, const std::string& stored_as);

// The line "KV scales" and what follows from it: table, diagnoses and certificate.
std::string found_scales_text(const FoundScales& found);
// The members "scales" (where there are some), "diagnoses" and "certificate" (where the scales have
// evidence). `form` is what the scales are called: a dialect, or what made them.
void found_scales_json(JsonWriter& json, const FoundScales& found, const std::string& form);

// The whole of a scale file.
std::string scale_file_description(const std::filesystem::path& path, const FoundScales& found);
std::string scale_file_json(const std::filesystem::path& path, const FoundScales& found);

// A folder that has scales, but no model that could be run.
std::string scale_folder_description(const std::filesystem::path& path, const FoundScales& found);
std::string scale_folder_json(const std::filesystem::path& path, const FoundScales& found);

// The member "diagnoses": an array of {id, sentence, remedy, harmless}.
void diagnoses_json(JsonWriter& json, std::span<const Diagnosis> diagnoses);

}  // namespace fp8kv
