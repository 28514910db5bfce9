#include "remote/earlier_files.h"

#include <algorithm>

#include "base/error.h"

namespace fp8kv {
namespace {

ByteRange within(const std::optional<ByteRange>& range, uint64_t file_bytes) {
  if (!range) return {0, file_bytes};
  return {std::min(range->begin, file_bytes), std::min(range->end, file_bytes)};
}

}  // namespace

bool is_strong_etag(const std::string& etag) {
  if (etag.size() < 2 || etag.front() != '"' || etag.back() != '"') return false;
  return std::all_of(etag.begin() + 1, etag.end() - 1,
                     [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '"'; });
}

EarlierFiles::EarlierFiles(const std::filesystem::path& folder) {
  try {
    const auto record = read_partial_record(folder);
    if (!record) return;
    for (const auto& [name, known] : record->files) {
      if (!is_strong_etag(known.etag)) continue;
      InputFile input(folder / name);
      if (input.size() == known.bytes) files_.emplace(name, Earlier{known, std::move(input)});
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    files_.clear();  // damaged, so everything is read again
  }
}

std::string EarlierFiles::etag_of(const std::string& file,
                                  const std::optional<ByteRange>& range) const {
  const auto found = files_.find(file);
  if (found == files_.end()) return "";
  const PartialFile& known = found->second.known;
  const auto [begin, end] = within(range, known.bytes);
  return known.has(begin, end) ? known.etag : "";
}

std::string EarlierFiles::read(const std::string& file,
                               const std::optional<ByteRange>& range) const {
  const Earlier& earlier = files_.at(file);
  const auto [begin, end] = within(range, earlier.known.bytes);
  return earlier.input.read(begin, end - begin);
}

}  // namespace fp8kv
