// The function that the program finds in a module: see backend/open/plugin.h. No exception leaves
// it.
#include <cstdio>

#include "backend/module_version.h"
#include "backend/open/plugin.h"
#include "base/error.h"
#include "kernels/backend/gpu_backend.h"

extern "C" __attribute__((visibility("default"))) fp8kv::Backend* fp8kv_open_backend(
    const char* version, char* reason, size_t reason_bytes) {
  try {
    if (!fp8kv::fits_program(version, reason, reason_bytes)) return nullptr;
    return fp8kv::FP8KV_GPU::make_gpu_backend().release();
  } catch (const fp8kv::Error& error) {
    std::snprintf(reason, reason_bytes, "%s\n%s", error.what(), error.help().c_str());
    return nullptr;
  } catch (const std::exception& error) {
    std::snprintf(reason, reason_bytes, "%s", error.what());
    return nullptr;
  }
}
