#include "backend/module_version.h"

#include <cstdio>

namespace fp8kv {

const char* module_version() {
  return FP8KV_VERSION ", interface " FP8KV_INTERFACE;
}

bool fits_program(std::string_view program, char* reason, size_t reason_bytes) {
  if (program == module_version()) return true;
  std::snprintf(reason, reason_bytes,
                "the module is of fp8kv %s, the program is %.*s\ninstall both from one build",
                module_version(), static_cast<int>(program.size()), program.data());
  return false;
}

}  // namespace fp8kv
