#include "about/version.h"

#include <vector>

#include "backend/cpu/isa/cpu_isa.h"
#include "base/text.h"
#include "json/json.h"

namespace fp8kv {
namespace {

// The libraries that the build names, and the compiler's own libraries.
std::string libraries() {
  std::string text = FP8KV_LIBRARIES;
#ifdef _GLIBCXX_RELEASE
  text += cat(", libstdc++ ", _GLIBCXX_RELEASE);
#endif
#ifdef __GLIBC__
  text += cat(", glibc ", __GLIBC__, ".", __GLIBC_MINOR__);
#endif
  return text;
}

std::string build_type() {
  const std::string sanitizers = FP8KV_SANITIZERS;
  return cat(FP8KV_BUILD_TYPE, sanitizers.empty() ? "" : " with sanitizers: ", sanitizers);
}

// The instruction sets that this build has kernels for.
std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const CpuIsaRow& row : cpu_isas()) {
    if (is_for_users(row)) names.emplace_back(row.name);
  }
  return names;
}

}  // namespace

std::string version_text() {
  return cat("fp8kv ", FP8KV_VERSION, "\nbuild         ", build_type(), ", ", FP8KV_COMPILER, ", ",
             FP8KV_TARGET, "\ninstructions  ", join(instruction_sets(), ", "), "; ",
             cpu_isa_name(best_cpu_isa()), " here\nlibraries     ", libraries(), "\n");
}

std::string version_json() {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.version/1").member("version", FP8KV_VERSION);
  json.key("build").begin_object().member("type", build_type());
  json.member("compiler", FP8KV_COMPILER).member("target", FP8KV_TARGET).end_object();
  json.key("instructions").begin_array();
  for (const std::string& name : instruction_sets()) json.value(name);
  json.end_array().member("best", cpu_isa_name(best_cpu_isa()));
  return json.member("libraries", libraries()).end_object().text();
}

}  // namespace fp8kv
