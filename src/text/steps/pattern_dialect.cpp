// Translates Oniguruma's patterns (Ruby syntax, UTF-8) for PCRE2. Measured against the tokenizers
// library over every code point where the two differ:
//   \s  White_Space; PCRE2's also has U+180E.       \w  Alphabetic, M, Nd, Pc; PCRE2's: L, N, _.
//   \h  a hexadecimal digit; PCRE2's: a blank.      \v  U+000B; PCRE2's: any vertical space.
//   {n,m}+  repeats the repetition; PCRE2: makes it possessive.       {,m}  means {0,m}.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/steps/pattern.h"
#include "text/steps/pattern_classes.h"

namespace fp8kv {
namespace {

constexpr const char* kSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr const char* kNotSpace =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff})"
    R"(\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
// Outside of classes, \w and \b in Oniguruma use a Latin-1 table, which has these characters too.
constexpr const char* kLatinWord = R"(\x{b2}\x{b3}\x{b9}\x{bc}\x{bd}\x{be})";

class Translator {
 public:
  Translator(std::string_view regex, const std::string& where, bool exact, PatternClasses& classes)
      : in_(regex), where_(where), exact_(exact), classes_(classes) {}

  std::string run() {
    while (at_ < in_.size()) step();
    if (!groups_.empty()) refuse("(", "it is never closed");
    return std::move(out_);
  }

 private:
  struct Group {
    size_t begin;  // position in `out_`
    bool looks_around;
  };
  static constexpr size_t kNoAtom = std::string::npos;

  [[noreturn]] void refuse(std::string_view construct, std::string_view why = "") const {
    fail(where_, ": the pattern ", quote(in_), " uses ", quote(construct), " at byte ",
         std::min(at_, in_.size()), why.empty() ? ", which is not supported" : ": ", why);
  }

  char peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  bool take(std::string_view text) {
    if (in_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  void atom(std::string_view text) {
    atom_ = out_.size();
    out_ += text;
  }

  void step() {
    switch (peek()) {
      case '\\':
        return escape();
      case '[':
        return char_class();
      case '(':
        return open_group();
      case ')':
        return close_group();
      case '|':
      case '^':
      case '$':
        out_ += in_[at_++];
        atom_ = kNoAtom;
        return;
      case '*':
      case '+':
      case '?':
        return repeat();
      case '{':
        return interval();
      case ']':
      case '}':
        atom(std::string("\\") + in_[at_++]);
        return;
      default:
        return literal();
    }
  }

  void literal() {
    atom_ = out_.size();
    do {
      out_ += in_[at_++];
    } while ((static_cast<unsigned char>(peek()) & 0xC0) == 0x80);
  }

  void repeat() {
    if (atom_ == kNoAtom) refuse(in_.substr(at_, 1), "there is nothing to repeat");
    out_ += in_[at_++];
    if (peek() == '?' || peek() == '+') out_ += in_[at_++];
    // Repeating this repetition would need a group around it.
    if (peek() == '*' || peek() == '+' || peek() == '?') refuse(in_.substr(at_, 1));
  }

  // Reads "{n}", "{n,}", "{n,m}" or "{,m}". Anything else is a literal brace.
  void interval() {
    const size_t close = in_.find('}', at_);
    const std::string_view body = close == in_.npos ? "" : in_.substr(at_ + 1, close - at_ - 1);
    const size_t comma = body.find(',');
    const std::string_view low = body.substr(0, comma);
    const std::string_view high = comma == body.npos ? low : body.substr(comma + 1);
    const auto digits = [](std::string_view text) {
      return text.size() <= 5 && text.find_first_not_of("0123456789") == text.npos;
    };
    if (!digits(low) || !digits(high) || (low.empty() && high.empty())) {
      atom("\\{");
      ++at_;
      return;
    }
    const std::string whole(in_.substr(at_, close - at_ + 1));
    if (atom_ == kNoAtom) refuse(whole, "there is nothing to repeat");
    if (!high.empty() && !low.empty() &&
        std::stoi(std::string(low)) > std::stoi(std::string(high))) {
      refuse(whole);
    }
    at_ = close + 1;
    const std::string bounds = cat("{", low.empty() ? "0" : low, comma == body.npos ? "" : ",",
                                   comma == body.npos ? "" : high, "}");
    if (peek() == '+') {
      out_.insert(atom_, "(?:");
      out_ += bounds + ")";
      return;
    }
    out_ += bounds;
    if (peek() == '?') {
      if (comma == body.npos) refuse(whole + "?");
      out_ += in_[at_++];
    }
    if (peek() == '*' || peek() == '+' || peek() == '?') refuse(in_.substr(at_, 1));
  }

  void open_group() {
    const size_t begin = out_.size();
    if (at_ == 0 && take("(?i)")) {  // elsewhere the two disagree about its extent
      out_ += "(?i)";
      return;
    }
    for (const char* kind : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:", "(?-i:"}) {
      if (!take(kind)) continue;
      return begin_group(begin, kind);
    }
    if (peek(1) == '?' || peek(1) == '*') refuse(in_.substr(at_, 3));
    ++at_;
    begin_group(begin, "(?:");  // nothing can refer to the capture
  }

  void begin_group(size_t begin, const char* kind) {
    const std::string_view name = kind;
    const bool looks_around = name.ends_with('=') || name.ends_with('!');
    groups_.push_back({begin, looks_around});
    out_ += kind;
    atom_ = kNoAtom;
  }

  void close_group() {
    if (groups_.empty()) refuse(")", "no group is open");
    // Oniguruma does not repeat assertions.
    atom_ = groups_.back().looks_around ? kNoAtom : groups_.back().begin;
    groups_.pop_back();
    out_ += in_[at_++];
  }

  void escape() {
    if (at_ + 1 == in_.size()) refuse("\\", "nothing follows it");
    const char c = peek(1);
    switch (c) {
      case 's':
        return shorthand(cat("[", kSpace, "]"));
      case 'S':
        return shorthand(cat("[^", kSpace, "]"));
      case 'w':
        return shorthand(cat("[", latin_word(), "]"));
      case 'W':
        return shorthand(cat("[^", latin_word(), "]"));
      case 'h':
        return shorthand("[0-9a-fA-F]");
      case 'H':
        return shorthand("[^0-9a-fA-F]");
      case 'b':
        return assertion(boundary("(?:(?<=@)(?!@)|(?<!@)(?=@))"));
      case 'B':
        return assertion(boundary("(?:(?<=@)(?=@)|(?<!@)(?!@))"));
      case 'A':
      case 'z':
      case 'Z':
        return assertion(std::string(in_.substr(at_, 2)));
      case 'd':
        return shorthand(property_atom("Nd", false));
      case 'D':
        return shorthand(property_atom("Nd", true));
      case 'p':
      case 'P': {
        atom_ = out_.size();
        const auto [name, negated, end] = property();
        out_ += property_atom(name, negated);
        at_ = end;
        return;
      }
      default:
        atom_ = out_.size();
        out_ += shared_escape();
    }
  }

  std::string items(std::string_view property, bool negated = false) {
    const std::optional<PatternClasses::Items> found = classes_.items(property, negated);
    if (!found) {
      refuse(cat("\\p{", property, "}"), "it is not the name of a general category or a script");
    }
    return exact_ ? found->exact : found->fast;
  }
  std::string property_atom(std::string_view property, bool negated) {
    const std::string text = items(property, negated);
    return text.starts_with("\\p") || text.starts_with("\\P") ? text : cat("[", text, "]");
  }
  std::string word() { return items("Alphabetic") + items("M") + items("Nd") + items("Pc"); }
  std::string latin_word() { return word() + kLatinWord; }

  // Returns `form` with the set of \w in place of every "@".
  std::string boundary(std::string_view form) {
    const std::string set = cat("[", latin_word(), "]");
    std::string made;
    for (const char c : form) c == '@' ? made += set : made += c;
    return made;
  }

  void shorthand(const std::string& text) {
    atom(text);
    at_ += 2;
  }
  void assertion(const std::string& text) {
    out_ += text;
    atom_ = kNoAtom;
    at_ += 2;
  }

  // Translates an escape that means the same inside and outside of a class. Moves past it and
  // returns its PCRE2 spelling.
  std::string shared_escape() {
    const std::string_view rest = in_.substr(at_);
    const char c = rest[1];
    if (std::string_view("rntfea").find(c) != std::string_view::npos) {
      at_ += 2;
      return std::string(rest.substr(0, 2));
    }
    const auto done = [&](size_t length, std::string text) {
      at_ += length;
      return text;
    };
    if (c == 'v') return done(2, "\\x{b}");
    if (c == 'x' || c == 'u') return code_point();
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) || byte <= 0x20) refuse(rest.substr(0, 2));
    return done(2, std::string(rest.substr(0, 2)));
  }

  // Reads \p{L}, \P{L} or \p{^L}: general categories by one or two letters, scripts by name.
  struct Property {
    std::string_view name;
    bool negated;
    size_t end;  // position in `in_`
  };
  Property property() {
    const size_t close = in_.find('}', at_);
    if (peek(2) != '{' || close == in_.npos) refuse(in_.substr(at_, 2));
    std::string_view name = in_.substr(at_ + 3, close - at_ - 3);
    bool negated = peek(1) == 'P';
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.remove_prefix(1);
    }
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isalpha(c) || c == '_';
    });
    if (!plain) refuse(in_.substr(at_, close + 1 - at_));
    return {name, negated, close + 1};
  }

  // Reads \xHH below 0x80 (above, it would be a single byte), \x{H...} or \uHHHH.
  std::string code_point() {
    const size_t begin = at_;
    const bool braces = take("\\x{");
    if (!braces) at_ += 2;
    const size_t most = braces ? 8 : in_[begin + 1] == 'u' ? 4 : 2;
    const size_t digits_begin = at_;
    while (at_ - digits_begin < most && std::isxdigit(static_cast<unsigned char>(peek()))) ++at_;
    const std::string digits(in_.substr(digits_begin, at_ - digits_begin));
    const unsigned long value = digits.empty() ? 0 : std::stoul(digits, nullptr, 16);
    const bool closed = !braces || take("}");
    const std::string_view whole = in_.substr(begin, at_ - begin);
    const bool short_byte = in_[begin + 1] == 'x' && !braces;
    if (digits.empty() || !closed || (in_[begin + 1] == 'u' && digits.size() != 4) ||
        (short_byte && value >= 0x80)) {
      refuse(whole);
    }
    return cat("\\x{", digits, "}");
  }

  void char_class() {
    atom_ = out_.size();
    out_ += in_[at_++];
    if (peek() == '^') out_ += in_[at_++];
    if (peek() == ']') refuse("[]", "a class cannot be empty");
    bool after_set = false;  // the item before was a set such as \s, which cannot begin a range
    for (; at_ < in_.size() && peek() != ']';) {
      if (peek() == '[') refuse("[ inside a class");
      if (peek() == '&' && peek(1) == '&') refuse("&& inside a class");
      if (peek() == '-' && after_set && peek(1) != ']') refuse("- after a set inside a class");
      if (peek() == '-' && peek(1) == '\\' && is_set(peek(2))) {
        refuse("- before a set inside a class");
      }
      if (peek() == '\\') {
        after_set = is_set(peek(1));
        class_escape();
      } else {
        after_set = false;
        out_ += in_[at_++];
      }
    }
    if (at_ == in_.size()) refuse("[", "it is never closed");
    out_ += in_[at_++];
  }

  static bool is_set(char c) {
    return c != '\0' && std::string_view("sSdDwWhHpP").find(c) != std::string_view::npos;
  }

  void class_escape() {
    if (at_ + 1 == in_.size()) refuse("\\", "nothing follows it");
    const char c = peek(1);
    if (c == 'p' || c == 'P') {
      const auto [name, negated, end] = property();
      out_ += items(name, negated);
      at_ = end;
      return;
    }
    const std::string spelled = c == 's'               ? kSpace
                                : c == 'S'             ? kNotSpace
                                : c == 'w'             ? word()
                                : c == 'd' || c == 'D' ? items("Nd", c == 'D')
                                : c == 'h'             ? "0-9a-fA-F"
                                                       : "";
    if (!spelled.empty()) {
      out_ += spelled;
      at_ += 2;
    } else if (c == 'W' || c == 'H' || c == 'b') {
      refuse(cat(in_.substr(at_, 2), " inside a class"));
    } else {
      out_ += shared_escape();
    }
  }

  std::string_view in_;
  const std::string& where_;
  bool exact_;
  PatternClasses& classes_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_ = kNoAtom;      // position in `out_` of the last repeatable item
  std::vector<Group> groups_;  // open groups
};

}  // namespace

Pcre2Spelling pcre2_from_oniguruma(std::string_view regex, const std::string& where) {
  PatternClasses classes;
  Pcre2Spelling made;
  made.fast = Translator(regex, where, /*exact=*/false, classes).run();
  made.exact = Translator(regex, where, /*exact=*/true, classes).run();
  made.differences = classes.differences();
  return made;
}

}  // namespace fp8kv
