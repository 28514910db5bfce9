// Which models each runtime has code of its own for, and in which versions: a table, made of what
// their releases register. What a runtime then does with scales is in runtime_rules.h.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "scales/rules/runtime_rule.h"

namespace fp8kv {

// Since the beginning of what was looked at, and to its end, unless it says otherwise.
struct KnownVersions {
  RuntimeVersion since = {};
  RuntimeVersion before = {std::numeric_limits<int>::max()};
  bool ever = true;  // in any

  constexpr KnownVersions until(RuntimeVersion end) const { return {since, end, ever}; }
};

// "all", "from 0.17", "before 0.23", "0.8 up to 0.23", "none".
std::string known_versions_text(const KnownVersions& known);

// The runtimes that were looked at: a row's versions are in this order.
enum class ListedRuntime : uint8_t { vllm, sglang, tgi, transformers, count };

struct RuntimeSource {
  const char* runtime;   // as a column has it
  const char* releases;  // "47 releases, 0.7.2 to 0.33.0"
  const char* place;     // where they list their models
};

struct RuntimeModel {
  std::string_view architecture;  // as in config.json; vLLM and SGLang go by it
  std::string_view model_type;    // TGI and transformers go by this
  KnownVersions known[static_cast<size_t>(ListedRuntime::count)];
};

std::span<const RuntimeSource> runtime_model_sources();
std::span<const RuntimeModel> runtime_models();

// The row of what config.json names, counted from 1; 0 where there is none. By the architecture, or
// where `architecture` is "" by the type.
uint8_t runtime_model_number(std::string_view architecture, std::string_view model_type);

// From which version on the runtime has the model with this number; {} where the table says
// nothing.
RuntimeVersion first_version(uint8_t number, std::string_view runtime);

// What the table says of it in versions `first` to `last`: a rule, if it is not known in the last
// of them; a note, if it is known in later ones of them alone; nullptr otherwise, and where the
// table says nothing. `runtime` as a column spells it.
const RuntimeRule* model_rule(uint8_t number, std::string_view runtime, RuntimeVersion first,
                              RuntimeVersion last);

}  // namespace fp8kv
