// What the keys of a config.json are to the forward pass: each is read, or known to change no
// number, or known to change what other models compute, or not known.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace fp8kv {

// A key that changes what some model computes, and the values that ask for nothing (as JSON; null
// and [] are always among them). A model whose architecture does not read it may have no other.
struct ForeignKey {
  std::string_view key;
  std::vector<std::string_view> harmless;
};
const std::vector<ForeignKey>& foreign_keys();

// The keys of `object` and of the ropes in it that nobody here knows, with their path in it, in
// their order: "rope_scaling.blend". Throws, naming it, for one that is among the foreign keys and
// asks for something. `reads` are those of the architecture called `name`.
std::vector<std::string> check_keys(const Json& object, const JsonReads& reads,
                                    std::string_view name);

}  // namespace fp8kv
