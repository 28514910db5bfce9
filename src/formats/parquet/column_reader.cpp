#include "formats/parquet/column_reader.h"

#include <bit>
#include <iterator>
#include <limits>

#include <zlib.h>

#include "base/error.h"
#include "base/interrupt.h"
#include "formats/parquet/thrift.h"
#include "unpack/block.h"

namespace fp8kv {
namespace {

using Type = ThriftReader::Type;

constexpr int64_t kRunLevels = 3;  // RLE, as numbered in parquet.thrift
enum PageType { data_page = 0, index_page = 1, dictionary_page = 2, data_page_2 = 3 };
// Codecs in the order of their numbers in parquet.thrift.
constexpr const char* kCodecs[] = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                   "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};

BlockPacking packing_of(int64_t codec) {
  switch (codec) {
    case 0:
      return BlockPacking::none;
    case 1:
      return BlockPacking::snappy;
    case 2:
      return BlockPacking::gzip;
    case 6:
      return BlockPacking::zstd;
    default:
      break;
  }
  const bool known = codec >= 0 && codec < static_cast<int64_t>(std::size(kCodecs));
  throw Error(cat("is compressed by ", known ? kCodecs[codec] : cat("codec ", codec),
                  ", expected SNAPPY, GZIP, ZSTD or UNCOMPRESSED"),
              "write it with one of these");
}

unsigned width_of(int level) {
  return static_cast<unsigned>(std::bit_width(static_cast<unsigned>(level)));
}

uint32_t number_of_4(std::string_view bytes) {
  if (bytes.size() < 4) fail("a page ends too early");
  return static_cast<uint32_t>(bits_at(bytes, 0, 32));
}

}  // namespace

struct ColumnReader::PageHeader {
  int64_t type = -1, size = -1, packed = -1, crc = 0;
  bool has_crc = false;
  int64_t values = -1, encoding = -1, def_encoding = kRunLevels, rep_encoding = kRunLevels;
  int64_t def_bytes = 0, rep_bytes = 0;  // of a data page of version 2
  bool is_packed = true;
};

ColumnReader::ColumnReader(std::string_view file, const ParquetChunk& chunk,
                           const ParquetNode& leaf, uint64_t largest_page)
    : file_(file),
      chunk_(chunk),
      leaf_(leaf),
      largest_page_(largest_page),
      at_(chunk.begin),
      left_(chunk.values) {
  if (chunk.is_encrypted) throw Error("is encrypted", "write it without encryption");
  if (chunk.is_elsewhere) fail("is in another file");
  if (leaf.type == ParquetType::int96 || leaf.type == ParquetType::fixed_bytes || !leaf.is_plain) {
    throw Error("is neither text nor a plain number", "convert it to text, or name another column");
  }
  packing_of(chunk.codec);
}

bool ColumnReader::has_entry() {
  if (has_entry_) return true;
  while (page_left_ == 0) {
    if (left_ == 0) return false;
    read_page(0);
  }
  --page_left_;
  rep_ = leaf_.max_rep > 0 ? static_cast<int>(reps_.next()) : 0;
  def_ = leaf_.max_def > 0 ? static_cast<int>(defs_.next()) : 0;
  if (rep_ > leaf_.max_rep || def_ > leaf_.max_def) fail("has levels beyond those of its schema");
  has_entry_ = true;
  return true;
}

void ColumnReader::skip_rows(uint64_t rows) {
  while (rows > 0) {
    if (leaf_.max_rep == 0 && !has_entry_ && page_left_ == 0 && left_ > 0) {
      rows -= read_page(rows);
      continue;
    }
    if (!has_entry()) fail("has fewer rows than the metadata says");
    do {
      if (has_value()) value();
      pop();
    } while (leaf_.max_rep > 0 && has_entry() && rep_ != 0);
    --rows;
  }
}

ColumnReader::PageHeader ColumnReader::read_header() {
  PageHeader out;
  ThriftReader in(file_.substr(at_, chunk_.end - at_));
  const auto of_data = [&](int id, Type type) {
    if (id == 1) return in.read(type, out.values);
    if (id == 2) return in.read(type, out.encoding);
    if (id == 3) return in.read(type, out.def_encoding);
    if (id == 4) return in.read(type, out.rep_encoding);
    return false;
  };
  const auto of_dictionary = [&](int id, Type type) {
    if (id == 1) return in.read(type, out.values);
    return id == 2 && in.read(type, out.encoding);
  };
  const auto of_data_2 = [&](int id, Type type) {
    if (id == 1) return in.read(type, out.values);
    if (id == 4) return in.read(type, out.encoding);
    if (id == 5) return in.read(type, out.def_bytes);
    if (id == 6) return in.read(type, out.rep_bytes);
    return id == 7 && in.read(type, out.is_packed);
  };
  in.read_struct([&](int id, Type type) {
    if (id == 1) return in.read(type, out.type);
    if (id == 2) return in.read(type, out.size);
    if (id == 3) return in.read(type, out.packed);
    if (id == 4) return out.has_crc = in.read(type, out.crc);
    if (type != Type::object) return false;
    if (id == 5) return in.read_struct(of_data), true;
    if (id == 7) return in.read_struct(of_dictionary), true;
    if (id == 8) return in.read_struct(of_data_2), true;
    return false;
  });
  at_ += in.position();
  return out;
}

uint64_t ColumnReader::read_page(uint64_t skip) {
  check_interrupt();
  if (at_ >= chunk_.end) fail("has ", left_, " values fewer than the metadata says");
  const PageHeader header = read_header();
  if (header.packed < 0 || static_cast<uint64_t>(header.packed) > chunk_.end - at_) {
    fail("has a page that does not lie within it");
  }
  if (header.size < 0 || static_cast<uint64_t>(header.size) > largest_page_) {
    fail("has a page of ", header.size, " bytes, expected at most ", largest_page_);
  }
  const std::string_view packed = file_.substr(at_, static_cast<uint64_t>(header.packed));
  at_ += packed.size();
  if (header.has_crc) {
    const auto found = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(packed.data()), static_cast<uInt>(packed.size())));
    if (found != static_cast<uint32_t>(header.crc)) {
      fail("has a damaged page: its checksum is wrong");
    }
  }
  if (header.type == index_page) return 0;
  if (header.values < 0 || header.values > std::numeric_limits<int32_t>::max()) {
    fail("has a page of ", header.values, " values");
  }
  if (header.type == dictionary_page) {
    read_dictionary(header, packed);
    return 0;
  }
  if (header.type != data_page && header.type != data_page_2) {
    fail("has a page of type ", header.type);
  }
  const auto entries = static_cast<uint64_t>(header.values);
  if (entries > left_) fail("has more values than the metadata says");
  left_ -= entries;
  if (entries <= skip) return entries;
  page_left_ = entries;
  header.type == data_page ? read_data(header, packed) : read_data_2(header, packed);
  return 0;
}

std::string ColumnReader::unpack(std::string_view packed, uint64_t size) const {
  return unpack_block(packing_of(chunk_.codec), packed, size);
}

void ColumnReader::read_dictionary(const PageHeader& header, std::string_view packed) {
  if (has_dictionary_) fail("has two dictionaries");
  if (header.encoding != 0 && header.encoding != 2) fail("has a dictionary that is not plain");
  dictionary_bytes_ = unpack(packed, static_cast<uint64_t>(header.size));
  if (leaf_.type == ParquetType::boolean) fail("has a dictionary of booleans");
  ValueReader values(0, leaf_.type, dictionary_bytes_, 0, nullptr);
  // Each value takes at least four bytes, so a wrong count fails at the end of the page.
  for (int64_t i = 0; i < header.values; ++i) dictionary_.push_back(values.next());
  has_dictionary_ = true;
}

void ColumnReader::read_data(const PageHeader& header, std::string_view packed) {
  page_ = unpack(packed, static_cast<uint64_t>(header.size));
  std::string_view rest = page_;
  const auto levels = [&rest](int most, int64_t encoding) {
    if (most == 0) return RunReader();
    if (encoding != kRunLevels) {
      throw Error("has levels in the encoding BIT_PACKED, which is not read",
                  "write the file anew with a writer of today");
    }
    const uint32_t length = number_of_4(rest);
    rest.remove_prefix(4);
    if (length > rest.size()) fail("a page ends too early");
    const RunReader reader(rest.substr(0, length), width_of(most));
    rest.remove_prefix(length);
    return reader;
  };
  reps_ = levels(leaf_.max_rep, header.rep_encoding);
  defs_ = levels(leaf_.max_def, header.def_encoding);
  start_values(header.encoding, rest);
}

void ColumnReader::read_data_2(const PageHeader& header, std::string_view packed) {
  if (header.rep_bytes < 0 || header.def_bytes < 0 ||
      static_cast<uint64_t>(header.rep_bytes) > packed.size() ||
      static_cast<uint64_t>(header.def_bytes) >
          packed.size() - static_cast<uint64_t>(header.rep_bytes) ||
      header.rep_bytes + header.def_bytes > header.size) {
    fail("a page ends too early");
  }
  const auto rep_bytes = static_cast<size_t>(header.rep_bytes);
  const auto def_bytes = static_cast<size_t>(header.def_bytes);
  const size_t level_bytes = rep_bytes + def_bytes;
  // The levels come before the values and are not compressed with them.
  reps_ = RunReader(packed.substr(0, rep_bytes), width_of(leaf_.max_rep));
  defs_ = RunReader(packed.substr(rep_bytes, def_bytes), width_of(leaf_.max_def));
  const std::string_view values = packed.substr(level_bytes);
  const uint64_t size = static_cast<uint64_t>(header.size) - level_bytes;
  // A page without values may have no bytes at all, not even an empty block.
  const bool is_packed = header.is_packed && !(values.empty() && size == 0);
  page_ = is_packed ? unpack(values, size) : std::string(values);
  start_values(header.encoding, page_);
}

void ColumnReader::start_values(int64_t encoding, std::string_view bytes) {
  // A page of nulls alone may have no bytes, even if its encoding expects some.
  if (bytes.empty()) encoding = 0;
  values_ = ValueReader(encoding, leaf_.type, bytes, page_left_,
                        has_dictionary_ ? &dictionary_ : nullptr);
}

}  // namespace fp8kv
