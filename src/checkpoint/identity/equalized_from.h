// Reads from which model a folder was equalised.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace fp8kv {

// The file of an equalised folder that records the factors and the source model.
inline constexpr const char* kEqualizeRecord = "fp8kv_equalize.json";

struct EqualizedFrom {
  std::string model;        // the source's name
  std::string fingerprint;  // the source's, as scale files have it
  std::string format;       // the cache that it was equalised for: "int8_per_token_head"
};

// nullopt for a folder that was not equalised. Throws for a record that cannot be read.
std::optional<EqualizedFrom> equalized_from(const std::filesystem::path& folder);

// "equalised for int8_per_token_head from 'Qwen2.5-7B'".
std::string equalized_text(const EqualizedFrom& from);

}  // namespace fp8kv
