#include "formats/npy.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace fp8kv {
namespace {

// Parses the header of a .npy file: a Python dict such as {'descr': '<f4', 'fortran_order': False,
// 'shape': (1,), }. Parses no other Python.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  void parse() {
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        descr = string();
      } else if (key == "fortran_order") {
        fortran_order = boolean();
      } else if (key == "shape") {
        shape = tuple();
      } else {
        fail(source_, ": the header has an unknown key ", quote(key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size() || !descr || !fortran_order || !shape) malformed();
  }

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;

 private:
  [[noreturn]] void malformed() const { fail(source_, ": the header is not that of an array"); }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) malformed();
  }
  std::string string() {
    expect('\'');
    const size_t end = text_.find('\'', at_);
    if (end == text_.npos) malformed();
    std::string out(text_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }
  bool boolean() {
    skip_blanks();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    malformed();
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> out;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      int64_t number = 0;
      const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
      if (parsed.ec != std::errc() || number < 0 || out.size() == Shape::kMaxRank) malformed();
      out.push_back(number);
      at_ = static_cast<size_t>(parsed.ptr - text_.data());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }

  std::string_view text_;
  const std::string& source_;
  size_t at_ = 0;
};

DType dtype_from_descr(const std::string& descr, const std::string& source) {
  const std::pair<const char*, DType> known[] = {
      {"<f4", DType::f32}, {"<f2", DType::f16}, {"<f8", DType::f64}, {"|i1", DType::i8},
      {"|u1", DType::u8},  {"<i4", DType::i32}, {"<i8", DType::i64}};
  for (const auto& [name, dtype] : known) {
    if (descr == name) return dtype;
  }
  fail(source, ": is of type ", quote(descr), ", expected little-endian numbers");
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

}  // namespace

NpyArray parse_npy(std::string_view file, const std::string& source) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!file.starts_with(kMagic) || file.size() < 10) {
    fail(source, ": is not an array: it does not begin like one");
  }
  const int version = file[6];
  if (version < 1 || version > 3) fail(source, ": is in version ", version, ", expected 1 to 3");
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t header_at = 8 + length_bytes;
  if (file.size() < header_at) fail(source, ": ends within its header");
  const uint64_t length = little_endian(file.substr(8, length_bytes));
  if (length > file.size() - header_at) fail(source, ": ends within its header");
  HeaderReader header(file.substr(header_at, length), source);
  header.parse();
  NpyArray out;
  out.dtype = dtype_from_descr(*header.descr, source);
  out.shape = Shape(std::span<const int64_t>(*header.shape));
  const std::string_view data = file.substr(header_at + length);
  uint64_t expected = dtype_bytes(out.dtype);
  size_t longer_than_one = 0;
  for (const int64_t dim : *header.shape) {
    longer_than_one += dim > 1;
    if (__builtin_mul_overflow(expected, static_cast<uint64_t>(dim), &expected)) {
      fail(source, ": its shape ", out.shape.text(), " is impossible");
    }
  }
  if (*header.fortran_order && longer_than_one > 1) fail(source, ": is in Fortran's order");
  if (data.size() != expected) {
    fail(source, ": has ", data.size(), " bytes of data, its shape ", out.shape.text(), " takes ",
         expected);
  }
  out.bytes = data;
  return out;
}

}  // namespace fp8kv
