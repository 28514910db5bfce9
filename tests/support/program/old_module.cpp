// A module like an older release's. With FP8KV_NO_ENTRY it is a library but not a module.
#include <cstddef>
#include <cstdio>

#ifndef FP8KV_NO_ENTRY
extern "C" __attribute__((visibility("default"))) void* fp8kv_open_backend(const char* version,
                                                                           char* reason,
                                                                           size_t reason_bytes) {
  std::snprintf(reason, reason_bytes,
                "the module is of fp8kv 0.0.1, the program is %s\ninstall both from one build",
                version);
  return nullptr;
}
#endif
