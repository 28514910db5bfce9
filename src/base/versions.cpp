#include "base/versions.h"

#include <charconv>
#include <vector>

namespace fp8kv {
namespace {

std::vector<int> version_parts(const std::string& version) {
  std::vector<int> parts;
  const char* at = version.data();
  const char* end = at + version.size();
  while (at < end) {
    int part = 0;
    const auto parsed = std::from_chars(at, end, part);
    if (parsed.ec != std::errc() || part < 0) break;
    parts.push_back(part);
    if (parsed.ptr == end || *parsed.ptr != '.') break;
    at = parsed.ptr + 1;
  }
  return parts;
}

}  // namespace

bool version_before(const std::string& version, const std::string& bound) {
  const std::vector<int> parts = version_parts(version);
  return !parts.empty() && parts < version_parts(bound);
}

}  // namespace fp8kv
