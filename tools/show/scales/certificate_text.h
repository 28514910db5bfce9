// A certificate as text and as JSON.
#pragma once

#include <filesystem>
#include <string>

#include "core/scales/scales.h"
#include "json/json.h"
#include "report/certificate.h"

namespace fp8kv {

// Whether the scales have evidence that a certificate can use.
bool has_evidence(const KvScales& scales);

// A table with a row for K and one for V of each layer, then certificate_notes().
std::string certificate_text(const KvScales& scales);

// The verdict on the model and its evidence, in about ten lines. REQUIRES `certificate` to belong
// to `scales`.
std::string certificate_notes(const KvScales& scales, const Certificate& certificate);

// "wrote 's.json': scales of 6 layers from 1,024 tokens in 8 windows".
std::string written_note(const std::filesystem::path& out, const KvScales& scales);

// Adds the member "certificate", for e4m3fn and for e4m3fnuz.
void certificate_json(JsonWriter& json, const KvScales& scales);

}  // namespace fp8kv
