#include "backend/open.h"

#include "backend/cpu_backend.h"
#include "base/error.h"
#include "base/text.h"

namespace fp8kv {

std::vector<std::string> device_names() {
  return {"auto", "cpu"};
}

std::unique_ptr<Backend> open_backend(const std::string& device, int threads) {
  if (device == "auto" || device == "cpu") return make_cpu_backend(threads);
  const std::vector<std::string> names = device_names();
  throw Error(cat("unknown device ", quote(device), did_you_mean(device, names)),
              cat("use one of ", join(names, " or ")), ErrorKind::usage);
}

}  // namespace fp8kv
