// The function that the program finds in a module: see backend/open/plugin.h. No exception leaves
// it.
#include <cstdio>
#include <cstring>

#include "backend/open/plugin.h"
#include "base/error.h"
#include "kernels/backend/gpu_backend.h"

extern "C" __attribute__((visibility("default"))) fp8kv::Backend* fp8kv_open_backend(
    const char* version, char* reason, size_t reason_bytes) {
  try {
    if (std::strcmp(version, FP8KV_VERSION) != 0) {
      std::snprintf(reason, reason_bytes,
                    "the module is of fp8kv %s, the program is %s\ninstall both from one build",
                    FP8KV_VERSION, version);
      return nullptr;
    }
    return fp8kv::FP8KV_GPU::make_gpu_backend().release();
  } catch (const fp8kv::Error& error) {
    std::snprintf(reason, reason_bytes, "%s\n%s", error.what(), error.help().c_str());
    return nullptr;
  } catch (const std::exception& error) {
    std::snprintf(reason, reason_bytes, "%s", error.what());
    return nullptr;
  }
}
