#include "kernels/ptx/settings.h"

#include <charconv>

#include "base/error.h"

namespace fp8kv::ptx {
namespace {

template <typename T>
T number_of(const std::string& part, const std::string& value, T least) {
  T number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number < least) {
    throw Error(cat("FP8KV_PTX: ", quote(part), ": expected a number from ", least), "",
                ErrorKind::usage);
  }
  return number;
}

void set(Settings& settings, const std::string& part) {
  const size_t equals = part.find('=');
  const std::string name = part.substr(0, equals);
  const std::string value = equals == part.npos ? "" : part.substr(equals + 1);
  if (name == "target" && (value == "80" || value == "90")) {
    settings.target = number_of(part, value, 80);
  } else if (name == "seed") {
    settings.seed = number_of<uint64_t>(part, value, 0);
  } else if (name == "threads") {
    settings.threads = number_of(part, value, 1);
  } else if (name == "kernels" && !value.empty()) {
    settings.kernels = value;
  } else {
    throw Error(cat("FP8KV_PTX: ", quote(part), " is not known"),
                "use target=90 or target=80, seed=NUMBER, threads=NUMBER, kernels=FILE",
                ErrorKind::usage);
  }
}

}  // namespace

Settings read_settings(const char* text) {
  Settings settings;
  std::string rest = text ? text : "";
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    set(settings, rest.substr(0, comma));
    rest = comma == rest.npos ? "" : rest.substr(comma + 1);
  }
  return settings;
}

}  // namespace fp8kv::ptx
