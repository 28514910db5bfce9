// The output of inspect for the scales of a file or folder.
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

// "AutoRound 0.16.1"; "" if the producer is unknown.
std::string producer_text(const Provenance& provenance);

// The line about unknown keys of config.json, and below it the JSON member. Both write nothing
// without such keys.
std::string unknown_keys_text(const std::vector<std::string>& keys);
void unknown_keys_json(JsonWriter& json, const std::vector<std::string>& keys);
// The line about the chat templates that rendered conversations, and the member "chat_templates".
// Both write nothing without templates.
std::string templates_text(const std::vector<std::string>& templates);
void templates_json(JsonWriter& json, const std::vector<std::string>& templates);
// The line about weights that were decoded for computing, and the member "quantised_weights". Both
// write nothing for other weights.
std::string quantised_text(const std::string& stored_as, const std::string& compute_dtype);
void quantised_json(JsonWriter& json, const std::string& stored_as);

// The line "KV scales", followed by the table, the diagnoses and the certificate.
std::string found_scales_text(const FoundScales& found);
// The members "scales" (if there are some), "diagnoses" and "certificate" (if the scales have
// evidence). `form` names the scales: a dialect, or what made them.
void found_scales_json(JsonWriter& json, const FoundScales& found, const std::string& form);

// Everything about a scale file.
std::string scale_file_description(const std::filesystem::path& path, const FoundScales& found);
std::string scale_file_json(const std::filesystem::path& path, const FoundScales& found);

// Everything about a folder that has scales but no model that can run. `address`: where its parts
// were read from; "" for a whole folder.
std::string scale_folder_description(const std::filesystem::path& path, const std::string& address,
                                     const FoundScales& found);
std::string scale_folder_json(const std::filesystem::path& path, const std::string& address,
                              const FoundScales& found);

// The member "diagnoses": an array of {id, sentence, remedy, harmless}.
void diagnoses_json(JsonWriter& json, std::span<const Diagnosis> diagnoses);

}  // namespace fp8kv
