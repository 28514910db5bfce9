// Reads the metadata of a Parquet file: its schema as a tree, and the places of its columns.
// Source: github.com/apache/parquet-format, parquet.thrift and LogicalTypes.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv {

enum class ParquetType { boolean, int32, int64, int96, real32, real64, bytes, fixed_bytes };
enum class ParquetRepetition { required, optional, repeated };

struct ParquetNode {
  std::string name;
  ParquetRepetition repetition = ParquetRepetition::required;
  int max_def = 0;  // levels of an entry with a value here
  int max_rep = 0;
  bool is_list = false;      // annotated as LIST
  bool is_unsigned = false;  // of integers
  bool is_plain = true;      // neither a decimal nor a 16-bit float: the stored number is the value
  ParquetType type = ParquetType::bytes;  // the type of a leaf
  std::vector<ParquetNode> children;      // empty for a leaf
  size_t first_leaf = 0, last_leaf = 0;   // numbers of the leaves below: [first, last)

  bool is_leaf() const { return children.empty(); }
};

struct ParquetChunk {
  int64_t codec = 0;
  uint64_t begin = 0, end = 0;  // byte range of its pages in the file
  uint64_t values = 0;          // entries, including nulls
  bool is_encrypted = false;
  bool is_elsewhere = false;  // in another file
};

struct ParquetRowGroup {
  uint64_t rows = 0;
  std::vector<ParquetChunk> chunks;  // one for each leaf
};

struct ParquetFooter {
  ParquetNode root;
  std::vector<ParquetRowGroup> groups;
  uint64_t rows = 0;
};

// Reads the footer of a whole file. Throws if it is truncated, encrypted or invalid.
ParquetFooter read_parquet_footer(std::string_view file);

}  // namespace fp8kv
