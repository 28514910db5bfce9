#include "jinja/values/percent_format.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "jinja/values/chars.h"
#include "jinja/values/compare.h"
#include "jinja/values/python_text.h"
#include "jinja/values/runtime.h"

namespace fp8kv::jinja {
namespace {

constexpr size_t kWidest = 1000;

// The parts of a conversion such as "%-08.3f".
struct Conversion {
  std::string flags;
  size_t width = 0;
  std::optional<size_t> precision;
  char kind = 0;
};

std::string formatted_number(Runtime& runtime, const Conversion& how, const Value& value) {
  const bool is_whole = std::string_view("dixXo").find(how.kind) != std::string_view::npos;
  if (value.is_undefined()) runtime.fail_undefined(value);
  if (!value.number()) {
    runtime.fail("%", std::string(1, how.kind), " format: a number is required, not ",
                 type_name(value));
  }
  const std::string precision = how.precision ? cat(".", *how.precision) : "";
  const std::string pattern = cat("%", how.flags, how.width, precision, is_whole ? "ll" : "");
  char buffer[2 * kWidest + 512];
  if (is_whole) {
    const double real = *value.number();
    if (!value.integer() && !(real > -9.2e18 && real < 9.2e18)) {
      runtime.fail("a number is more than 64 bits hold");
    }
    const long long whole = value.integer() ? *value.integer() : static_cast<long long>(real);
    const char kind = how.kind == 'i' ? 'd' : how.kind;
    std::snprintf(buffer, sizeof buffer, (pattern + kind).c_str(), whole);
  } else {
    std::snprintf(buffer, sizeof buffer, (pattern + how.kind).c_str(), *value.number());
  }
  return buffer;
}

void append_padded(Runtime& runtime, MarkedText& out, const MarkedText& text, size_t width,
                   char align) {
  const size_t chars = char_count(text.bytes());
  const size_t missing = width > chars ? width - chars : 0;
  const size_t before = align == '<' ? 0 : align == '>' ? missing : missing / 2;
  runtime.spend_bytes(out.size() / 64 + text.size() + missing);
  out.append(std::string(before, ' '), kOurs);
  out.append(text);
  out.append(std::string(missing - before, ' '), kOurs);
}

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const MarkedText& format, const Value& values)
      : runtime_(runtime), format_(format), values_(values) {
    const Sequence* sequence = values.sequence();
    tuple_ = sequence && sequence->kind == SequenceKind::tuple ? sequence : nullptr;
  }

  Value run() {
    const std::string& text = format_.bytes();
    for (at_ = 0; at_ < text.size();) {
      const size_t mark = std::min(text.find('%', at_), text.size());
      out_.append(format_, at_, mark);
      at_ = mark + 1;
      if (mark < text.size()) convert();
    }
    const size_t given = tuple_ ? tuple_->items.size() : 1;
    const bool may_be_left = values_.dict() || (!tuple_ && values_.sequence());
    if (used_ < given && !may_be_left) {
      runtime_.fail("not all arguments converted during string formatting");
    }
    return runtime_.text(std::move(out_));
  }

 private:
  char take() {
    if (at_ >= format_.size()) runtime_.fail("incomplete format");
    return format_.bytes()[at_++];
  }

  size_t take_number() {
    const std::string& text = format_.bytes();
    size_t number = 0;
    for (; at_ < text.size() && text[at_] >= '0' && text[at_] <= '9'; ++at_) {
      number = number * 10 + static_cast<size_t>(text[at_] - '0');
      if (number > kWidest) runtime_.fail("a field wider than ", kWidest, " is not supported");
    }
    return number;
  }

  const Value& next_value() {
    if (!tuple_) {
      if (used_++ > 0) runtime_.fail("not enough arguments for format string");
      return values_;
    }
    if (used_ >= tuple_->items.size()) runtime_.fail("not enough arguments for format string");
    return tuple_->items[used_++];
  }

  const Value& named_value() {
    const size_t end = format_.bytes().find(')', at_);
    if (end == std::string::npos) runtime_.fail("incomplete format key");
    const std::string name = format_.bytes().substr(at_, end - at_);
    at_ = end + 1;
    if (!values_.dict()) runtime_.fail("format requires a mapping");
    const Value* value = find_member(runtime_, *values_.dict(), name);
    if (value == nullptr) runtime_.fail("format has no value for '", name, "'");
    return *value;
  }

  void convert() {
    const Value* named = nullptr;
    if (at_ < format_.size() && format_.bytes()[at_] == '(') {
      ++at_;
      named = &named_value();
    }
    Conversion how;
    char c = take();
    for (; std::string_view("#0- +").find(c) != std::string_view::npos; c = take()) {
      if (how.flags.find(c) == std::string::npos) how.flags += c;
    }
    --at_;
    how.width = take_number();
    if (at_ < format_.size() && format_.bytes()[at_] == '.') {
      ++at_;
      how.precision = take_number();
    }
    how.kind = take();
    if (how.kind == '%') return out_.append("%", kOurs);
    add(how, named ? *named : next_value());
  }

  void add(const Conversion& how, const Value& value) {
    if (how.kind == 's' || how.kind == 'r') {
      MarkedText text =
          how.kind == 's' ? *python_str(runtime_, value) : python_repr(runtime_, value);
      if (how.precision) text = text.part(0, byte_of_char(text.bytes(), 0, *how.precision));
      const bool left = how.flags.find('-') != std::string::npos;
      return append_padded(runtime_, out_, text, how.width, left ? '<' : '>');
    }
    if (std::string_view("dixXofFeEgG").find(how.kind) == std::string_view::npos) {
      runtime_.fail("unsupported format character '", quote(std::string(1, how.kind)), "'");
    }
    out_.append(formatted_number(runtime_, how, value), kOurs);
  }

  Runtime& runtime_;
  const MarkedText& format_;
  const Value& values_;
  const Sequence* tuple_ = nullptr;
  size_t at_ = 0;
  size_t used_ = 0;
  MarkedText out_;
};

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const MarkedText& format, const Arguments& values)
      : runtime_(runtime), format_(format), values_(values) {}

  Value run() {
    const std::string& text = format_.bytes();
    for (size_t at = 0; at < text.size();) {
      const size_t mark = std::min(text.find_first_of("{}", at), text.size());
      out_.append(format_, at, mark);
      if (mark == text.size()) break;
      if (mark + 1 < text.size() && text[mark + 1] == text[mark]) {
        out_.append(format_, mark, mark + 1);
        at = mark + 2;
        continue;
      }
      const size_t end = text.find('}', mark);
      if (text[mark] == '}') runtime_.fail("single '}' encountered in format string");
      if (end == text.npos) runtime_.fail("single '{' encountered in format string");
      add_field(std::string_view(text).substr(mark + 1, end - mark - 1));
      at = end + 1;
    }
    return runtime_.text(std::move(out_));
  }

 private:
  [[noreturn]] void refuse(std::string_view field) {
    runtime_.fail("the format field ", quote(field), " is not supported");
  }

  const Value& value_of_field(std::string_view name) {
    size_t index = next_;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    if (name.empty()) ++next_;
    const bool by_number = !name.empty() && error == std::errc();
    by_number_ |= by_number;
    if (by_number_ && next_ > 0) {
      runtime_.fail("cannot switch between fields in turn and fields by number");
    }
    if (name.empty() || (error == std::errc() && end == name.data() + name.size())) {
      if (index < values_.positional.size()) return values_.positional[index];
      runtime_.fail("format has no value ", index);
    }
    for (const auto& [each, value] : values_.named) {
      if (each == name) return value;
    }
    runtime_.fail("format has no value ", quote(name));
  }

  // Applies a format such as "<10": the alignment, and the minimum width.
  void add_aligned(const Value& value, const MarkedText& text, std::string_view how,
                   std::string_view field) {
    char align = value.number() ? '>' : '<';
    if (!how.empty() && std::string_view("<>^").find(how[0]) != how.npos) {
      align = how[0];
      how.remove_prefix(1);
    }
    size_t width = 0;
    const auto [end, error] = std::from_chars(how.data(), how.data() + how.size(), width);
    const bool whole = how.empty() || (error == std::errc() && end == how.data() + how.size());
    const bool zeros = !how.empty() && how[0] == '0';
    if (!whole || zeros || width > kWidest) refuse(field);
    append_padded(runtime_, out_, text, width, align);
  }

  void add_field(std::string_view field) {
    const size_t colon = std::min(field.find(':'), field.size());
    const size_t bang = std::min(field.find('!'), colon);
    if (field.substr(0, bang).find_first_of(".[{") != field.npos) refuse(field);
    const std::string_view conversion = field.substr(bang, colon - bang);
    if (!conversion.empty() && conversion != "!s" && conversion != "!r") refuse(field);
    const Value& value = value_of_field(field.substr(0, bang));
    const MarkedText text =
        conversion == "!r" ? python_repr(runtime_, value) : *python_str(runtime_, value);
    add_aligned(value, text, colon < field.size() ? field.substr(colon + 1) : "", field);
  }

  Runtime& runtime_;
  const MarkedText& format_;
  const Arguments& values_;
  size_t next_ = 0;
  bool by_number_ = false;
  MarkedText out_;
};

}  // namespace

Value percent_formatted(Runtime& runtime, const MarkedText& format, const Value& values) {
  runtime.spend_bytes(format.size());
  return PercentFormatter(runtime, format, values).run();
}

Value brace_formatted(Runtime& runtime, const MarkedText& format, const Arguments& values) {
  runtime.spend_bytes(format.size());
  return BraceFormatter(runtime, format, values).run();
}

}  // namespace fp8kv::jinja
