#include "formats/parquet/values.h"

#include <bit>
#include <iterator>

#include "base/error.h"

namespace fp8kv {
namespace {

constexpr const char* kEncodings[] = {
    "PLAIN",          "GROUP_VAR_INT",       "PLAIN_DICTIONARY",        "RLE",
    "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"};

[[noreturn]] void fail_encoding(int64_t encoding) {
  const bool known = encoding >= 0 && encoding < static_cast<int64_t>(std::size(kEncodings));
  throw Error(cat("has the encoding ", known ? kEncodings[encoding] : cat("number ", encoding),
                  ", which is not read for its type"),
              "write it with plain, dictionary or delta encodings");
}

std::string_view take(std::string_view& from, uint64_t length) {
  if (length > from.size()) fail("a page ends too early");
  const std::string_view found = from.substr(0, length);
  from.remove_prefix(length);
  return found;
}

uint64_t take_number(std::string_view& from, size_t bytes) {
  return bits_at(take(from, bytes), 0, static_cast<unsigned>(bytes * 8));
}

}  // namespace

ValueReader::ValueReader(int64_t encoding, ParquetType type, std::string_view bytes, uint64_t count,
                         const ParquetDictionary* dictionary)
    : type_(type), rest_(bytes), dictionary_(dictionary) {
  const bool is_integer = type == ParquetType::int32 || type == ParquetType::int64;
  if (encoding == 0) return;
  if (encoding == 2 || encoding == 8) {
    if (!dictionary) fail("has indices of a dictionary that is missing");
    form_ = Form::dictionary;
    const auto width = rest_.empty() ? 0U : static_cast<unsigned>(take_number(rest_, 1));
    runs_ = RunReader(rest_, width);
  } else if (encoding == 3 && type == ParquetType::boolean) {
    form_ = Form::runs;
    const uint64_t length = take_number(rest_, 4);
    runs_ = RunReader(take(rest_, length), 1);
  } else if (encoding == 5 && is_integer) {
    form_ = Form::delta;
    numbers_ = DeltaReader(rest_);
  } else if (encoding == 6 && type == ParquetType::bytes) {
    form_ = Form::delta_length;
    numbers_ = DeltaReader(rest_);
    rest_ = numbers_.behind(count);
  } else if (encoding == 7 && type == ParquetType::bytes) {
    form_ = Form::delta_bytes;
    prefixes_ = DeltaReader(rest_);
    numbers_ = DeltaReader(prefixes_.behind(count));
    rest_ = numbers_.behind(count);
  } else {
    fail_encoding(encoding);
  }
}

ParquetValue ValueReader::next_plain() {
  ParquetValue out;
  switch (type_) {
    case ParquetType::boolean:
      if (bit_ / 8 >= rest_.size()) fail("a page ends too early");
      out.number = static_cast<int64_t>(bits_at(rest_, bit_++, 1));
      break;
    case ParquetType::int32:
      out.number = static_cast<int32_t>(take_number(rest_, 4));
      break;
    case ParquetType::int64:
      out.number = static_cast<int64_t>(take_number(rest_, 8));
      break;
    case ParquetType::real32:
      out.real = std::bit_cast<float>(static_cast<uint32_t>(take_number(rest_, 4)));
      break;
    case ParquetType::real64:
      out.real = std::bit_cast<double>(take_number(rest_, 8));
      break;
    default: {
      const uint64_t length = take_number(rest_, 4);
      out.bytes = take(rest_, length);
    }
  }
  return out;
}

ParquetValue ValueReader::next() {
  switch (form_) {
    case Form::plain:
      return next_plain();
    case Form::dictionary: {
      const uint32_t index = runs_.next();
      if (index >= dictionary_->size()) {
        fail("has the index ", index, " of a dictionary of ", dictionary_->size());
      }
      return (*dictionary_)[index];
    }
    case Form::runs:
      return {.bytes = {}, .number = static_cast<int64_t>(runs_.next())};
    case Form::delta: {
      const int64_t number = numbers_.next();
      return {.bytes = {},
              .number = type_ == ParquetType::int32 ? static_cast<int32_t>(number) : number};
    }
    case Form::delta_length:
      return {.bytes = take(rest_, static_cast<uint64_t>(numbers_.next()))};
    case Form::delta_bytes:
      break;
  }
  const auto kept = static_cast<uint64_t>(prefixes_.next());
  if (kept > text_.size()) fail("a text begins with more than there is of the one before it");
  text_.resize(kept);
  text_ += take(rest_, static_cast<uint64_t>(numbers_.next()));
  return {.bytes = text_};
}

}  // namespace fp8kv
