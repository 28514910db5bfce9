// Makes files with the contents of other files, or parts of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace fp8kv {

// The bytes of a file from `begin` up to, but not including, `end`.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Writes `head`, then the given parts of `from` in order, to a new file. Holds at most one block in
// memory. REQUIRES parts within the file. The caller syncs.
void write_new_file(const std::filesystem::path& path, std::string_view head,
                    const std::filesystem::path& from, std::span<const ByteRange> parts);

enum class LinkMode { automatic, reflink, hard, copy };

// How link_or_copy made the file.
enum class LinkResult { reflinked, hard_linked, copied };

// Makes `to` have the contents of the regular file `from`, following symbolic links. automatic:
// tries a reflink, then a hard link, then a copy. The other modes throw if they are impossible.
// Reflinks and copies are readable by everyone who can read `from`. Does not sync.
LinkResult link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to,
                        LinkMode mode);

}  // namespace fp8kv
