// The fate of scales in a copy of a model that inject makes, in a runtime.
#pragma once

#include <string>

namespace fp8kv {

struct CopyFate {
  enum class Use {
    used,
    useless,  // it serves every copy without its scales, or stops at them
    unknown,  // its loader of this family was not run
    no_model  // it has no code of this architecture
  };
  Use use = Use::used;
  std::string why = {};  // "drops the scales of MLA: an FP8 cache runs with 1"; "" if it uses them
};

}  // namespace fp8kv
