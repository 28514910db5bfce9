// The values of one page, of any encoding that is read here.
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
  std::string_view bytes;  // of a text
  int64_t number = 0;      // of integers and booleans
  double real = 0;
};

using ParquetDictionary = std::vector<ParquetValue>;

class ValueReader {
 public:
  ValueReader() = default;
  // `encoding` as parquet.thrift counts them, for at most `count` values of `type`. What is read
  // views `bytes`, the dictionary, or this, until the next call.
  // Throws for an encoding that is not read here, by its name.
  ValueReader(int64_t encoding, ParquetType type, std::string_view bytes, uint64_t count,
              const ParquetDictionary* dictionary);

  // Throws where the page ends.
  ParquetValue next();

 private:
  enum class Form { plain, dictionary, runs, delta, delta_length, delta_bytes };
  ParquetValue next_plain();

  Form form_ = Form::plain;
  ParquetType type_ = ParquetType::bytes;
  std::string_view rest_;
  uint64_t bit_ = 0;  // of plain booleans
  const ParquetDictionary* dictionary_ = nullptr;
  RunReader runs_;
  DeltaReader numbers_;   // or lengths
  DeltaReader prefixes_;  // what a text has of the one before it
  std::string text_;      // that one
};

}  // namespace fp8kv
