#include "formats/parquet/footer.h"

#include <algorithm>

#include "base/error.h"
#include "formats/parquet/thrift.h"

namespace fp8kv {
namespace {

using Type = ThriftReader::Type;

constexpr size_t kMarkBytes = 4, kTailBytes = 8;
constexpr size_t kLargestFooter = size_t(256) << 20;  // tens of thousands of columns and row groups
constexpr int kDeepestSchema = 24;

struct SchemaElement {
  std::string_view name;
  int64_t type = -1, repetition = 0, children = 0, converted = -1;
  int logical = 0;  // the field number in the union
};

SchemaElement read_element(ThriftReader& in) {
  SchemaElement out;
  in.read_struct([&](int id, Type type) {
    switch (id) {
      case 1:
        return in.read(type, out.type);
      case 3:
        return in.read(type, out.repetition);
      case 4:
        return in.read(type, out.name);
      case 5:
        return in.read(type, out.children);
      case 6:
        return in.read(type, out.converted);
      case 10:
        if (type != Type::object) return false;
        in.read_struct([&](int kind, Type) {
          out.logical = kind;
          return false;
        });
        return true;
      default:
        return false;
    }
  });
  return out;
}

// The numbers of parquet.thrift.
constexpr int64_t kConvertedList = 3, kConvertedDecimal = 5;
constexpr int64_t kConvertedUnsigned = 11, kConvertedUnsigned64 = 14;
constexpr int kLogicalList = 3, kLogicalDecimal = 5, kLogicalUuid = 14, kLogicalFloat16 = 15;

class SchemaReader {
 public:
  explicit SchemaReader(std::vector<SchemaElement> elements) : elements_(std::move(elements)) {}

  ParquetNode read() {
    if (elements_.empty()) fail("the metadata has no schema");
    elements_[0].repetition = 0;
    ParquetNode root = node(0, 0, 0);
    if (at_ != elements_.size() || root.is_leaf()) fail("the schema is not one tree of columns");
    return root;
  }

 private:
  ParquetNode node(int def, int rep, int depth) {
    if (depth > kDeepestSchema) fail("the schema is nested more than ", kDeepestSchema, " deep");
    if (at_ >= elements_.size()) fail("the schema ends too early");
    const SchemaElement& from = elements_[at_++];
    ParquetNode out;
    out.name = from.name;
    if (!is_utf8(out.name)) fail("the name of a column, ", quote(out.name), ", is not UTF-8");
    if (from.repetition < 0 || from.repetition > 2) fail("a column repeats in no known way");
    out.repetition = static_cast<ParquetRepetition>(from.repetition);
    out.max_def = def + (out.repetition == ParquetRepetition::required ? 0 : 1);
    out.max_rep = rep + (out.repetition == ParquetRepetition::repeated ? 1 : 0);
    out.is_list = from.converted == kConvertedList || from.logical == kLogicalList;
    out.is_unsigned =
        from.converted >= kConvertedUnsigned && from.converted <= kConvertedUnsigned64;
    out.is_plain = from.converted != kConvertedDecimal && from.logical != kLogicalDecimal &&
                   from.logical != kLogicalUuid && from.logical != kLogicalFloat16;
    out.first_leaf = leaves_;
    if (from.children < 0) fail("the schema is not one tree of columns");
    if (from.children == 0) {
      if (from.type < 0 || from.type > 7)
        fail("the column ", quote(out.name), " has no known type");
      out.type = static_cast<ParquetType>(from.type);
      ++leaves_;
    }
    for (int64_t i = 0; i < from.children; ++i) {
      out.children.push_back(node(out.max_def, out.max_rep, depth + 1));
    }
    out.last_leaf = leaves_;
    return out;
  }

  std::vector<SchemaElement> elements_;
  size_t at_ = 0;
  size_t leaves_ = 0;
};

// REQUIRES a group with rows. Writers give arbitrary offsets for groups without rows, which are
// never read.
void check_within(const ParquetChunk& chunk, uint64_t data_end) {
  if (chunk.begin < kMarkBytes || chunk.begin > chunk.end || chunk.end > data_end) {
    fail("the metadata names a column that does not lie within the file");
  }
}

ParquetChunk read_chunk(ThriftReader& in) {
  ParquetChunk out;
  int64_t values = 0, size = 0, data = -1, dictionary = -1;
  const auto meta = [&](int id, Type type) {
    switch (id) {
      case 4:
        return in.read(type, out.codec);
      case 5:
        return in.read(type, values);
      case 7:
        return in.read(type, size);
      case 9:
        return in.read(type, data);
      case 11:
        return in.read(type, dictionary);
      default:
        return false;
    }
  };
  in.read_struct([&](int id, Type type) {
    if (id == 1) out.is_elsewhere = true;
    if (id == 8) out.is_encrypted = true;
    if (id != 3 || type != Type::object) return false;
    in.read_struct(meta);
    return true;
  });
  if (out.is_elsewhere || out.is_encrypted) return out;
  // Some writers store 0 if there is no dictionary.
  const int64_t begin = dictionary > 0 && dictionary < data ? dictionary : data;
  if (begin < 0 || size < 0 || values < 0) return out;  // an empty place in the file, refused later
  out.begin = static_cast<uint64_t>(begin);
  out.end = out.begin + static_cast<uint64_t>(size);
  out.values = static_cast<uint64_t>(values);
  return out;
}

ParquetRowGroup read_group(ThriftReader& in, uint64_t data_end) {
  ParquetRowGroup out;
  int64_t rows = 0;
  in.read_struct([&](int id, Type type) {
    if (id == 3) return in.read(type, rows);
    if (id != 1) return false;
    return in.read_list(type, [&](Type) { out.chunks.push_back(read_chunk(in)); });
  });
  if (rows < 0) fail("a group of rows has ", rows, " of them");
  out.rows = static_cast<uint64_t>(rows);
  for (const ParquetChunk& chunk : out.chunks) {
    const bool is_here = !chunk.is_elsewhere && !chunk.is_encrypted;
    if (rows > 0 && is_here) check_within(chunk, data_end);
  }
  return out;
}

uint32_t number_at(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

ParquetFooter read_parquet_footer(std::string_view file) {
  if (file.ends_with("PARE") || file.starts_with("PARE")) {
    throw Error("is an encrypted Parquet file", "write it without encryption");
  }
  if (file.size() < kMarkBytes + kTailBytes || !file.ends_with("PAR1")) {
    throw Error("does not end as a Parquet file does: it is cut short", "fetch or write it again");
  }
  const size_t tail = file.size() - kTailBytes;
  const size_t length = number_at(file, tail);
  if (length > tail - kMarkBytes || length > kLargestFooter) {
    fail("its metadata of ", length, " bytes does not lie within the file");
  }
  const uint64_t data_end = tail - length;
  ThriftReader in(file.substr(data_end, length));
  std::vector<SchemaElement> elements;
  ParquetFooter out;
  in.read_struct([&](int id, Type type) {
    if (id == 2) {
      return in.read_list(type, [&](Type) { elements.push_back(read_element(in)); });
    }
    if (id == 4) {
      return in.read_list(type, [&](Type) { out.groups.push_back(read_group(in, data_end)); });
    }
    return false;
  });
  out.root = SchemaReader(std::move(elements)).read();
  for (const ParquetRowGroup& group : out.groups) {
    if (group.chunks.size() != out.root.last_leaf) {
      fail("a group of rows has ", count_of(group.chunks.size(), "column"), ", the schema ",
           out.root.last_leaf);
    }
    if (group.rows > UINT64_MAX - out.rows) fail("the metadata counts too many rows");
    out.rows += group.rows;
  }
  return out;
}

}  // namespace fp8kv
