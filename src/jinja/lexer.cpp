#include "jinja/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "base/interrupt.h"
#include "jinja/string_literal.h"
#include "jinja/values/chars.h"
#include "unicode/characters.h"

namespace fp8kv::jinja {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_char(std::string_view text, size_t at) {
  const char c = text[at];
  if (static_cast<unsigned char>(c) >= 0x80) return is_word(next_char(text, at));
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Turns "\r\n" and "\r" into "\n", and drops the last newline.
std::string normalized(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name)
      : text_(normalized(source)), name_(name) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      interrupt_.passed(at_);
      read_data();
    }
    add(TokenKind::end);
    return std::move(tokens_);
  }

 private:
  template <typename... Parts>
  [[noreturn]] void fail_here(const Parts&... parts) const {
    fail(name_, ": line ", line_, ": ", parts...);
  }

  bool has(std::string_view what, size_t at) const {
    return std::string_view(text_).substr(at).starts_with(what);
  }
  bool has(std::string_view what) const { return has(what, at_); }

  void move_to(size_t end) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                         text_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    if (end > at_) line_starts_ = text_[end - 1] == '\n';
    at_ = end;
  }

  void add(TokenKind kind, std::string text = "") {
    Token token;
    token.kind = kind;
    token.text = std::move(text);
    token.line = line_;
    tokens_.push_back(std::move(token));
  }

  size_t after_spaces(size_t at) const {
    while (at < text_.size()) {
      size_t next = at;
      if (!is_python_space(next_char(text_, next))) break;
      at = next;
    }
    return at;
  }

  static bool is_blank(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      if (!is_python_space(next_char(text, at))) return false;
    }
    return true;
  }

  // Returns the text before a tag, stripped as the tag's sign asks: '-', '+' or none.
  std::string_view before_tag(std::string_view data, char sign, bool is_print) const {
    if (sign == '-') {
      while (!data.empty() && is_python_space(last_char(data))) {
        std::string last;
        append_char(last, last_char(data));
        data.remove_suffix(last.size());
      }
      return data;
    }
    if (sign == '+' || is_print) return data;
    const size_t begin = data.rfind('\n') + 1;  // 0 if there is no newline
    const bool from_line_start = begin > 0 || line_starts_;
    return from_line_start && is_blank(data.substr(begin)) ? data.substr(0, begin) : data;
  }

  // Reads text up to the next tag, and that tag with its content.
  void read_data() {
    size_t tag = at_;
    for (; tag < text_.size(); ++tag) {
      tag = std::min(text_.find('{', tag), text_.size());
      if (tag + 1 < text_.size() &&
          std::string_view("{%#").find(text_[tag + 1]) != std::string_view::npos) {
        break;
      }
    }
    const std::string_view data = std::string_view(text_).substr(at_, tag - at_);
    if (tag >= text_.size()) {
      add_data(data);
      move_to(text_.size());
      return;
    }
    const char kind = text_[tag + 1];
    size_t begin = tag + 2;
    char sign = 0;
    if (begin < text_.size() && (text_[begin] == '-' || text_[begin] == '+')) sign = text_[begin++];
    add_data(before_tag(data, sign, kind == '{'));
    const size_t raw = kind == '%' ? end_of_raw_tag(begin) : 0;
    move_to(raw > 0 ? raw : begin);
    if (raw > 0) return read_raw();
    if (kind == '#') return skip_comment();
    add(kind == '{' ? TokenKind::print_begin : TokenKind::block_begin);
    read_tag(kind == '{');
  }

  void add_data(std::string_view data) {
    if (!data.empty()) add(TokenKind::data, std::string(data));
  }

  // Returns the place behind "raw %}", or 0 if the tag is another one.
  size_t end_of_raw_tag(size_t at) const {
    at = after_spaces(at);
    if (!has("raw", at)) return 0;
    at = after_spaces(at + 3);
    if (has("-%}", at)) return after_spaces(at + 3);
    return has("%}", at) ? at + 2 : 0;
  }

  // Returns the place behind the end of a tag, if "-%}", "+%}" or "%}" stands at `at`; else 0.
  size_t end_of_tag(size_t at, std::string_view mark) const {
    const bool is_print = mark == "}}";
    if (has("-", at) && has(mark, at + 1)) return after_spaces(at + 1 + mark.size());
    if (!is_print && has("+", at) && has(mark, at + 1)) return at + 1 + mark.size();
    if (!has(mark, at)) return 0;
    const size_t end = at + mark.size();
    return !is_print && has("\n", end) ? end + 1 : end;
  }

  void read_raw() {
    for (size_t at = text_.find("{%", at_); at != std::string::npos;
         at = text_.find("{%", at + 1)) {
      interrupt_.passed(at);
      size_t inner = at + 2;
      char sign = 0;
      if (has("-", inner) || has("+", inner)) sign = text_[inner++];
      inner = after_spaces(inner);
      if (!has("endraw", inner)) continue;
      const size_t end = end_of_tag(after_spaces(inner + 6), "%}");
      if (end == 0) continue;
      add_data(before_tag(std::string_view(text_).substr(at_, at - at_), sign, false));
      return move_to(end);
    }
    fail_here("missing end of raw directive");
  }

  void skip_comment() {
    const size_t mark = text_.find("#}", at_);
    if (mark == std::string::npos) fail_here("missing end of comment tag");
    const bool sign = mark > at_ && (text_[mark - 1] == '-' || text_[mark - 1] == '+');
    move_to(end_of_tag(sign ? mark - 1 : mark, "#}"));
  }

  void read_tag(bool is_print) {
    const std::string_view mark = is_print ? "}}" : "%}";
    while (at_ < text_.size()) {
      interrupt_.passed(at_);
      const size_t end = brackets_.empty() ? end_of_tag(at_, mark) : 0;
      if (end > 0) {
        add(is_print ? TokenKind::print_end : TokenKind::block_end);
        return move_to(end);
      }
      read_token();
    }
  }

  void read_token() {
    if (const size_t end = after_spaces(at_); end > at_) return move_to(end);
    if (read_real() || read_integer()) return;
    if (is_name_char(text_, at_)) {
      size_t end = at_;
      while (end < text_.size() && is_name_char(text_, end)) next_char(text_, end);
      add(TokenKind::name, text_.substr(at_, end - at_));
      return move_to(end);
    }
    if (text_[at_] == '"' || text_[at_] == '\'') return read_string();
    read_sign();
  }

  // Returns the place behind digits with single underscores between them; `at` if there are none.
  size_t after_digits(size_t at) const {
    size_t end = at;
    while (end < text_.size() && is_digit(text_[end])) {
      ++end;
      if (end + 1 < text_.size() && text_[end] == '_' && is_digit(text_[end + 1])) ++end;
    }
    return end;
  }

  std::string without_underscores(size_t end) const {
    std::string out = text_.substr(at_, end - at_);
    std::erase(out, '_');
    return out;
  }

  bool read_real() {
    if (at_ > 0 && text_[at_ - 1] == '.') return false;
    size_t end = after_digits(at_);
    if (end == at_) return false;
    bool real = false;
    if (has(".", end) && after_digits(end + 1) > end + 1) {
      end = after_digits(end + 1);
      real = true;
    }
    if (has("e", end) || has("E", end)) {
      const size_t sign = has("+", end + 1) || has("-", end + 1) ? 1 : 0;
      if (after_digits(end + 1 + sign) > end + 1 + sign) {
        end = after_digits(end + 1 + sign);
        real = true;
      }
    }
    if (!real) return false;
    add(TokenKind::real);
    tokens_.back().number = std::strtod(without_underscores(end).c_str(), nullptr);
    move_to(end);
    return true;
  }

  bool read_integer() {
    if (!is_digit(text_[at_])) return false;
    int base = 10;
    size_t end = after_digits(at_);
    if (text_[at_] == '0') {
      end = at_ + 1;
      while (end < text_.size() && (text_[end] == '0' || (text_[end] == '_' && has("0", end + 1))))
        ++end;
      const char letter = end == at_ + 1 && end < text_.size() ? text_[end] : ' ';
      if (std::string_view("xXoObB").find(letter) != std::string_view::npos) {
        fail_here("numbers in another base than 10 are not supported");
      }
    }
    const std::string digits = without_underscores(end);
    add(TokenKind::integer);
    const auto [after, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), tokens_.back().whole, base);
    if (error != std::errc()) fail_here("the number ", digits, " is more than 64 bits hold");
    move_to(end);
    return true;
  }

  void read_string() {
    const char mark = text_[at_];
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != mark) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail_here("a string has no end");
    const std::string_view inner = std::string_view(text_).substr(at_ + 1, end - at_ - 1);
    std::string value;
    if (!unescape(inner, value))
      fail_here("a string has a broken or unsupported escape: ", quote(inner));
    add(TokenKind::text, std::move(value));
    move_to(end + 1);
  }

  void read_sign() {
    constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    size_t size = 1;
    for (const std::string_view sign : kTwo) {
      if (has(sign)) size = 2;
    }
    const std::string sign = text_.substr(at_, size);
    if (size == 1 &&
        std::string_view("+-/*%~[](){}<>=.:|,;").find(sign[0]) == std::string_view::npos) {
      const size_t end = byte_of_char(text_, at_, 1);
      fail_here("unexpected character ", quote(std::string_view(text_).substr(at_, end - at_)));
    }
    balance(sign[0], size);
    add(TokenKind::sign, sign);
    move_to(at_ + size);
  }

  // Keeps track of open brackets, because a tag does not end within them.
  void balance(char sign, size_t size) {
    if (size != 1) return;
    const size_t open = std::string_view("([{").find(sign);
    if (open != std::string_view::npos) brackets_ += ")]}"[open];
    if (std::string_view(")]}").find(sign) == std::string_view::npos) return;
    if (brackets_.empty()) fail_here("unexpected '", sign, "'");
    if (brackets_.back() != sign)
      fail_here("unexpected '", sign, "', expected '", brackets_.back(), "'");
    brackets_.pop_back();
  }

  const std::string text_;
  const std::string& name_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;
  std::string brackets_;  // closing brackets that must follow
  std::vector<Token> tokens_;
  InterruptEvery interrupt_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source, const std::string& name) {
  if (size_t bad = 0; !is_utf8(source, &bad)) fail(name, ": not valid UTF-8 at byte ", bad);
  return Lexer(source, name).run();
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::data:
      return "text of the template";
    case TokenKind::block_begin:
      return "begin of statement block";
    case TokenKind::block_end:
      return "end of statement block";
    case TokenKind::print_begin:
      return "begin of print statement";
    case TokenKind::print_end:
      return "end of print statement";
    case TokenKind::text:
      return "a string";
    case TokenKind::integer:
    case TokenKind::real:
      return "a number";
    case TokenKind::end:
      return "end of template";
    case TokenKind::name:
    case TokenKind::sign:
      break;
  }
  return quote(token.text);
}

}  // namespace fp8kv::jinja
