#include "formats/npz.h"

#include <algorithm>
#include <string_view>

#include <zlib.h>

#include "base/error.h"
#include "files/file.h"
#include "files/lfs_pointer.h"

namespace fp8kv {
namespace {

// Layouts from PKWARE's APPNOTE 6.3, sections 4.3 and 4.5.3.
constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56;
constexpr size_t kEntryBytes = 46, kLocalBytes = 30;
constexpr size_t kLongestComment = 65535;
constexpr std::string_view kEndMark("PK\5\6"), kLocatorMark("PK\6\7"), kEnd64Mark("PK\6\6");
constexpr std::string_view kEntryMark("PK\1\2"), kLocalMark("PK\3\4");
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint64_t kIn64 = 0xFFFFFFFF;  // "see the zip64 field"
// Enough for 100,000 members with names of 200 bytes, far more than any model has.
constexpr uint64_t kLargestDirectory = uint64_t(32) << 20;

// Reads a number of `bytes` bytes, least significant first. REQUIRES it to lie within `from`.
uint64_t number(std::string_view from, size_t at, size_t bytes) {
  FP8KV_ASSERT(at + bytes <= from.size());
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(from[at + i]);
  return value;
}

// Fills in the values that the 32-bit fields leave to the zip64 extra field, which has them in this
// order.
void read_zip64_field(std::string_view extra, uint64_t& unpacked, uint64_t& packed,
                      uint64_t& offset, const std::string& source) {
  while (extra.size() >= 4) {
    const uint64_t id = number(extra, 0, 2), length = number(extra, 2, 2);
    extra.remove_prefix(4);
    if (length > extra.size()) break;
    if (id == 1) {
      size_t at = 0;
      for (uint64_t* value : {&unpacked, &packed, &offset}) {
        if (*value != kIn64) continue;
        if (at + 8 > length) fail(source, ": a zip64 field is too short");
        *value = number(extra, at, 8);
        at += 8;
      }
    }
    extra.remove_prefix(length);
  }
}

// Inflates to exactly `unpacked` bytes and allocates no more.
std::string inflate_all(const std::string& packed, uint64_t unpacked, const std::string& source) {
  std::string out(unpacked, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    throw Error(cat(source, ": cannot be unpacked: out of memory"), "", ErrorKind::resource);
  }
  // zlib does not write through next_in. Its type is not const for historical reasons.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const uint64_t made = stream.total_out;
  inflateEnd(&stream);
  if (result != Z_STREAM_END || made != unpacked) {
    fail(source, ": cannot be unpacked to the ", unpacked, " bytes that the directory says");
  }
  return out;
}

}  // namespace

Npz Npz::open(const std::filesystem::path& path) {
  const uint64_t size = regular_file_size(path);
  const auto read = [path](uint64_t offset, uint64_t length) {
    return read_range(path, offset, length);
  };
  return Npz(size, read, quote(path.string()));
}

Npz::Npz(uint64_t size, Reader read, std::string source)
    : size_(size), read_(std::move(read)), source_(std::move(source)) {
  read_directory(find_directory());
}

Npz::Directory Npz::find_directory() const {
  const uint64_t length =
      std::min<uint64_t>(size_, kEndBytes + kLongestComment + kLocatorBytes + kEnd64Bytes);
  const uint64_t tail_at = size_ - length;
  const std::string tail = read_(tail_at, length);
  // Finds the last mark whose comment ends with the file.
  size_t end_at = tail.npos;
  for (size_t from = tail.npos; (end_at = tail.rfind(kEndMark, from)) != tail.npos;) {
    if (end_at + kEndBytes <= tail.size() &&
        end_at + kEndBytes + number(tail, end_at + 20, 2) == tail.size()) {
      break;
    }
    if (end_at == 0) {
      end_at = tail.npos;
      break;
    }
    from = end_at - 1;
  }
  if (end_at == tail.npos) {
    refuse_lfs_pointer(read_(0, std::min<uint64_t>(size_, 64)), source_);
    fail(source_, ": is not a zip archive, or its end is missing");
  }
  Directory found{number(tail, end_at + 16, 4), number(tail, end_at + 12, 4),
                  number(tail, end_at + 10, 2)};
  const uint64_t limit = tail_at + end_at;
  const bool in_64 =
      found.offset == kIn64 || found.bytes == kIn64 || found.entries == (kIn64 & 0xFFFF);
  if (in_64) found = read_zip64_directory(tail, tail_at, end_at);
  if (found.offset > limit || found.bytes > limit - found.offset) {
    fail(source_, ": the directory does not lie within the file");
  }
  if (found.bytes > kLargestDirectory) {
    fail(source_, ": the directory takes ", human_bytes(found.bytes), ", more than ",
         human_bytes(kLargestDirectory));
  }
  return found;
}

Npz::Directory Npz::read_zip64_directory(const std::string& tail, uint64_t tail_at,
                                         size_t end_at) const {
  const bool has_locator =
      end_at >= kLocatorBytes && tail.compare(end_at - kLocatorBytes, 4, kLocatorMark) == 0;
  if (!has_locator) fail(source_, ": the zip64 directory is missing");
  const uint64_t at = number(tail, end_at - kLocatorBytes + 8, 8);
  const uint64_t limit = tail_at + end_at - kLocatorBytes;
  if (at > limit || limit - at < kEnd64Bytes) fail(source_, ": the zip64 directory is missing");
  const std::string record = read_(at, kEnd64Bytes);
  if (!record.starts_with(kEnd64Mark)) fail(source_, ": the zip64 directory is missing");
  return {number(record, 48, 8), number(record, 40, 8), number(record, 32, 8)};
}

void Npz::read_directory(const Directory& directory) {
  data_end_ = directory.offset;
  const std::string bytes = read_(directory.offset, directory.bytes);
  std::string_view rest = bytes;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (rest.size() < kEntryBytes || !rest.starts_with(kEntryMark)) {
      fail(source_, ": the directory ends after ", i, " of ", directory.entries, " members");
    }
    Member member;
    member.encrypted = number(rest, 8, 2) & 1;
    member.method = static_cast<uint16_t>(number(rest, 10, 2));
    member.crc = static_cast<uint32_t>(number(rest, 16, 4));
    member.packed = number(rest, 20, 4);
    member.unpacked = number(rest, 24, 4);
    member.offset = number(rest, 42, 4);
    const size_t name_bytes = number(rest, 28, 2), extra_bytes = number(rest, 30, 2);
    const size_t comment_bytes = number(rest, 32, 2);
    if (rest.size() - kEntryBytes < name_bytes + extra_bytes + comment_bytes) {
      fail(source_, ": the directory ends after ", i, " of ", directory.entries, " members");
    }
    std::string name(rest.substr(kEntryBytes, name_bytes));
    read_zip64_field(rest.substr(kEntryBytes + name_bytes, extra_bytes), member.unpacked,
                     member.packed, member.offset, source_);
    rest.remove_prefix(kEntryBytes + name_bytes + extra_bytes + comment_bytes);
    if (!name.ends_with(".npy")) continue;
    name.resize(name.size() - 4);
    if (!members_.emplace(name, member).second) {
      fail(source_, ": the array ", quote(name), " is there twice");
    }
  }
}

std::vector<std::string> Npz::names() const {
  std::vector<std::string> out;
  for (const auto& [name, member] : members_) out.push_back(name);
  return out;
}

std::string Npz::unpack(const std::string& name, const Member& member) const {
  const std::string where = cat(source_, ": the array ", quote(name));
  if (member.encrypted) fail(where, ": is encrypted");
  if (member.method != kStored && member.method != kDeflated) {
    fail(where, ": is packed by method ", member.method, ", expected 0 or 8");
  }
  // Deflated data is never much longer than the data itself.
  if (member.unpacked > kLargestNpzArray || member.packed > kLargestNpzArray + 1024) {
    fail(where, ": takes ", human_bytes(std::max(member.unpacked, member.packed)),
         ", too much for scales");
  }
  if (member.offset > data_end_ || data_end_ - member.offset < kLocalBytes) {
    fail(where, ": does not lie within the file");
  }
  const std::string local = read_(member.offset, kLocalBytes);
  if (!local.starts_with(kLocalMark)) fail(where, ": is not where the directory says");
  const uint64_t begin = member.offset + kLocalBytes + number(local, 26, 2) + number(local, 28, 2);
  if (begin > data_end_ || member.packed > data_end_ - begin) {
    fail(where, ": does not lie within the file");
  }
  std::string bytes = read_(begin, member.packed);
  if (member.method == kDeflated) bytes = inflate_all(bytes, member.unpacked, where);
  if (bytes.size() != member.unpacked) {
    fail(where, ": is stored in ", bytes.size(), " bytes, the directory says ", member.unpacked);
  }
  const auto found = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
  if (found != member.crc) fail(where, ": is damaged: its checksum is wrong");
  return bytes;
}

NpyArray Npz::read(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) fail(source_, ": has no array ", quote(name));
  return parse_npy(unpack(name, found->second), cat(source_, ": the array ", quote(name)));
}

}  // namespace fp8kv
