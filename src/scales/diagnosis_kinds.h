// The diagnoses that exist. Each has a name, and what it means.
#pragma once

#include <span>
#include <string>

namespace fp8kv {

struct Diagnosis {
  std::string id;  // "all-ones"
  std::string sentence;
  std::string remedy;
  bool harmless = false;  // good to know, nothing to do
  bool grave = false;     // every command that reads scales reports it
  bool operator==(const Diagnosis&) const = default;
};

// "kv-fused: K and V share one scale, ...; calibrate to have both".
std::string diagnosis_text(const Diagnosis& diagnosis);

// Every diagnosis, in the order of the documentation.
struct DiagnosisKind {
  const char* id;
  const char* meaning;
};
std::span<const DiagnosisKind> diagnosis_kinds();

// Returns the diagnosis. Asserts that the table has its id.
Diagnosis known(Diagnosis diagnosis);

}  // namespace fp8kv
