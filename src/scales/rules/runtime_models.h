// A table of the models that each runtime has code for, and in which versions. It comes from the
// models that their releases register. runtime_rules.h says what a runtime does with scales.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "scales/rules/tables/runtime_rule.h"

namespace fp8kv {

// The default range covers every version that was looked at.
struct KnownVersions {
  RuntimeVersion since = {};
  RuntimeVersion before = {std::numeric_limits<int>::max()};
  bool ever = true;  // whether any version knows the model

  constexpr KnownVersions until(RuntimeVersion end) const { return {since, end, ever}; }
};

// "all", "from 0.17", "before 0.23", "0.8 up to 0.23", "none".
std::string known_versions_text(const KnownVersions& known);

// The runtimes that were looked at, in the order of `RuntimeModel::known`.
enum class ListedRuntime : uint8_t { vllm, sglang, tgi, transformers, count };

struct RuntimeSource {
  const char* runtime;   // the same spelling as in a column
  const char* releases;  // "47 releases, 0.7.2 to 0.33.0"
  const char* place;     // the file or folder that lists its models
};

struct RuntimeModel {
  std::string_view architecture;  // as in config.json; vLLM and SGLang look models up by it
  std::string_view model_type;    // TGI and transformers look models up by this
  KnownVersions known[static_cast<size_t>(ListedRuntime::count)];
};

std::span<const RuntimeSource> runtime_model_sources();
std::span<const RuntimeModel> runtime_models();

// The row of the model that config.json names, counted from 1; 0 if there is none. Looks it up by
// architecture, or by type if `architecture` is "".
uint8_t runtime_model_number(std::string_view architecture, std::string_view model_type);

// The first version of the runtime that has the model with this number; {} if the table does not
// tell.
RuntimeVersion first_version(uint8_t number, std::string_view runtime);

// The table's answer about versions `first` to `last` of a runtime. Returns a rule if the last of
// them lacks the model, and a note if only the later ones have it. Otherwise returns nullptr, as it
// does if the table does not tell. `runtime` is spelled as in a column.
const RuntimeRule* model_rule(uint8_t number, std::string_view runtime, RuntimeVersion first,
                              RuntimeVersion last);

}  // namespace fp8kv
