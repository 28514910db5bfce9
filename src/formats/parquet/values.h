// Reads the values of one page, in any supported encoding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/parquet/delta.h"
#include "formats/parquet/footer.h"
#include "formats/parquet/levels.h"

namespace fp8kv {

struct ParquetValue {
  std::string_view bytes;  // for text
  int64_t number = 0;      // for integers and booleans
  double real = 0;
};

using ParquetDictionary = std::vector<ParquetValue>;

class ValueReader {
 public:
  ValueReader() = default;
  // Reads at most `count` values of `type`. `encoding` is a number of parquet.thrift. Values are
  // views of `bytes`, of the dictionary or of this reader, valid until the next call. Throws for an
  // unsupported encoding, by name.
  ValueReader(int64_t encoding, ParquetType type, std::string_view bytes, uint64_t count,
              const ParquetDictionary* dictionary);

  // Throws at the end of the page.
  ParquetValue next();

 private:
  enum class Form { plain, dictionary, runs, delta, delta_length, delta_bytes };
  ParquetValue next_plain();

  Form form_ = Form::plain;
  ParquetType type_ = ParquetType::bytes;
  std::string_view rest_;
  uint64_t bit_ = 0;  // position in plain booleans
  const ParquetDictionary* dictionary_ = nullptr;
  RunReader runs_;
  DeltaReader numbers_;   // or lengths
  DeltaReader prefixes_;  // bytes that a text shares with the text before
  std::string text_;      // the text before
};

}  // namespace fp8kv
