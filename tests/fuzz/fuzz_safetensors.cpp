// The header of a safetensors file.
#include <cstring>

#include "formats/safetensors.h"
#include "fuzz.h"

namespace fp8kv::fuzz {
namespace {

bool same_entries(const SafetensorsHeader& a, const SafetensorsHeader& b, uint64_t shift) {
  if (a.tensors.size() != b.tensors.size() || a.metadata != b.metadata) return false;
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const TensorEntry &x = a.tensors[i], &y = b.tensors[i];
    if (x.name != y.name || x.dtype != y.dtype || !(x.shape == y.shape)) return false;
    if (x.begin + shift != y.begin || x.end + shift != y.end) return false;
  }
  return true;
}

void run(const std::string& input) {
  const SafetensorsHeader header = parse_safetensors(input, input.size(), "file");
  uint64_t at = header.tensors.empty() ? input.size() : header.tensors[0].begin;
  for (const TensorEntry& entry : header.tensors) {
    require(entry.begin == at && entry.end >= entry.begin, "tensors lie one behind the other");
    at = entry.end;
  }
  require(at == input.size(), "tensors end where the file does");
  // An accepted header can be written, and reads back as the same.
  const std::string head = safetensors_head(header.tensors, header.metadata);
  const uint64_t old_begin = header.tensors.empty() ? 0 : header.tensors[0].begin;
  const uint64_t data = header.tensors.empty() ? 0 : input.size() - old_begin;
  const SafetensorsHeader again = parse_safetensors(head, head.size() + data, "again");
  require(same_entries(header, again, header.tensors.empty() ? 0 : head.size() - old_begin),
          "a header that is written reads back");
}

// Corrects the header's length, so that it ends at the last brace. Adds as much data as the largest
// offset needs.
void repair(std::string& input) {
  if (input.size() < 8) return;
  const size_t brace = input.rfind('}');
  if (brace == input.npos || brace < 8) return;
  const uint64_t length = brace - 7;
  for (size_t i = 0; i < 8; ++i) input[i] = static_cast<char>(length >> (8 * i));
}

std::vector<std::string> seeds(const std::filesystem::path& root) {
  return files_below(root / "tests" / "golden", ".safetensors");
}

}  // namespace

const Target kSafetensors{"safetensors", run, repair, seeds};

}  // namespace fp8kv::fuzz
