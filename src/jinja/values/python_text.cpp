#include "jinja/values/python_text.h"

#include <charconv>
#include <cmath>

#include "base/text.h"
#include "jinja/values/runtime.h"
#include "unicode/characters.h"
#include "unicode/unicode_tables.h"

namespace fp8kv::jinja {
namespace {

// Not printable: the categories C and Z, except the space.
bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const char kind = unicode::kCategoryNames[unicode::value_in(unicode::kCategoryRuns, c)][0];
  return kind != 'C' && kind != 'Z';
}

std::string hex_escape(char32_t c) {
  const int digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
  std::string out = c < 0x100 ? "\\x" : c < 0x10000 ? "\\u" : "\\U";
  for (int i = digits - 1; i >= 0; --i) out += "0123456789abcdef"[(c >> (4 * i)) & 15];
  return out;
}

void append_escaped(std::string& out, char32_t c, char quote_mark) {
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\\':
      out += "\\\\";
      return;
    default:
      break;
  }
  if (c == static_cast<char32_t>(quote_mark)) {
    out += '\\';
    out += quote_mark;
  } else if (is_printable(c)) {
    append_char(out, c);
  } else {
    out += hex_escape(c);
  }
}

class ReprWriter {
 public:
  explicit ReprWriter(Runtime& runtime) : runtime_(runtime) {}

  void add(const Value& value) {
    runtime_.spend_bytes(out_.size() > kBetween + last_ ? (last_ = out_.size()) : 0);
    if (const MarkedText* text = value.string()) {
      if (value.get<String>()->is_markup) ours("Markup(");
      add_string(*text);
      if (value.get<String>()->is_markup) ours(")");
    } else if (const Sequence* sequence = value.sequence()) {
      add_sequence(*sequence);
    } else if (const Dict* dict = value.dict()) {
      add_dict(*dict);
    } else {
      add_plain(value);
    }
  }

  MarkedText take() { return std::move(out_); }

 private:
  static constexpr size_t kBetween = 4096;

  void ours(std::string_view text) { out_.append(text, kOurs); }

  void add_string(const MarkedText& text) {
    runtime_.spend_bytes(text.size());
    const bool single = text.bytes().find('\'') != std::string::npos;
    const bool other = text.bytes().find('"') != std::string::npos;
    const char mark = single && !other ? '"' : '\'';
    ours(std::string_view(&mark, 1));
    text.for_each_run(0, text.size(), [&](std::string_view bytes, Origin origin) {
      std::string escaped;
      for (size_t at = 0; at < bytes.size();) append_escaped(escaped, next_char(bytes, at), mark);
      out_.append(escaped, origin);
    });
    ours(std::string_view(&mark, 1));
  }

  void add_items(const Values& items, std::string_view open, std::string_view close) {
    ours(open);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) ours(", ");
      add(items[i]);
    }
    ours(close);
  }

  void add_sequence(const Sequence& sequence) {
    const Values& items = sequence.items;
    switch (sequence.kind) {
      case SequenceKind::list:
        return add_items(items, "[", "]");
      case SequenceKind::tuple:
      case SequenceKind::group:
        return add_items(items, "(", items.size() == 1 ? ",)" : ")");
      case SequenceKind::keys:
        return add_items(items, "dict_keys([", "])");
      case SequenceKind::values:
        return add_items(items, "dict_values([", "])");
      case SequenceKind::items:
        return add_items(items, "dict_items([", "])");
      case SequenceKind::range:
        break;
    }
    runtime_.fail("a range cannot be printed; make a list of it");
  }

  void add_dict(const Dict& dict) {
    ours("{");
    for (size_t i = 0; i < dict.members.size(); ++i) {
      if (i > 0) ours(", ");
      add(dict.members[i].first);
      ours(": ");
      add(dict.members[i].second);
    }
    ours("}");
  }

  void add_plain(const Value& value) {
    if (value.is_undefined()) return ours("Undefined");
    if (value.is_none()) return ours("None");
    if (const bool* flag = value.get<bool>()) return ours(*flag ? "True" : "False");
    if (const auto* whole = value.get<int64_t>()) return ours(cat(*whole));
    if (const auto* real = value.get<double>()) return ours(python_float(*real));
    // Python would print a memory address, or something that only Python has.
    runtime_.fail("a ", type_name(value), " cannot be printed");
  }

  Runtime& runtime_;
  MarkedText out_;
  size_t last_ = 0;
};

}  // namespace

std::shared_ptr<const MarkedText> python_str(Runtime& runtime, const Value& value) {
  if (const auto* text = value.get<String>()) return text->text;
  if (value.is_undefined()) return std::make_shared<const MarkedText>();
  return std::make_shared<const MarkedText>(python_repr(runtime, value));
}

MarkedText python_repr(Runtime& runtime, const Value& value) {
  ReprWriter writer(runtime);
  writer.add(value);
  return writer.take();
}

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(),
                  exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);
  const auto fixed_end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  std::string out(buffer, static_cast<size_t>(fixed_end - buffer));
  return out.find('.') == out.npos ? out + ".0" : out;
}

}  // namespace fp8kv::jinja
