#include "jinja/values/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "jinja/values/compare.h"
#include "jinja/values/python_text.h"
#include "jinja/values/runtime.h"
#include "unicode/characters.h"

namespace fp8kv::jinja {
namespace {

void append_unit(std::string& out, uint32_t unit) {
  out += "\\u";
  for (int i = 3; i >= 0; --i) out += "0123456789abcdef"[(unit >> (4 * i)) & 15];
}

void append_escaped(std::string& out, char32_t c, bool ascii) {
  constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
  constexpr std::string_view kLetters = "\"\\nrtfb";
  const size_t at = c < 0x80 ? kShort.find(static_cast<char>(c)) : kShort.npos;
  if (at != kShort.npos) {
    out += '\\';
    out += kLetters[at];
  } else if (c < 0x20 || (ascii && c > 0x7F && c < 0x10000)) {
    append_unit(out, c);
  } else if (ascii && c >= 0x10000) {
    append_unit(out, 0xD800 + ((c - 0x10000) >> 10));
    append_unit(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
  } else {
    append_char(out, c);
  }
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return python_float(value);
}

class DumpWriter {
 public:
  DumpWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  void add(const Value& value, size_t level) {
    runtime_.spend();
    if (const MarkedText* text = value.string()) return add_string(*text);
    if (const Dict* dict = value.dict()) return add_dict(*dict, level);
    const Sequence* sequence = value.sequence();
    if (sequence && sequence->kind <= SequenceKind::tuple) return add_list(*sequence, level);
    const std::optional<std::string> plain = plain_text(value);
    if (!plain) {
      runtime_.fail("object of type ", type_name(value), " is not JSON serializable");
    }
    ours(*plain);
  }

  MarkedText take() { return std::move(out_); }

 private:
  static std::optional<std::string> plain_text(const Value& value) {
    if (value.is_none()) return "null";
    if (const bool* flag = value.get<bool>()) return *flag ? "true" : "false";
    if (const auto* whole = value.get<int64_t>()) return cat(*whole);
    if (const auto* real = value.get<double>()) return json_float(*real);
    return std::nullopt;
  }

  void ours(std::string_view text) { out_.append(text, kOurs); }

  void add_string(const MarkedText& text) {
    runtime_.spend_bytes(out_.size() < kLong ? text.size() : out_.size() / 64 + text.size());
    ours("\"");
    text.for_each_run(0, text.size(), [&](std::string_view bytes, Origin origin) {
      std::string escaped;
      for (size_t at = 0; at < bytes.size();) {
        append_escaped(escaped, next_char(bytes, at), style_.ascii);
      }
      out_.append(escaped, origin);
    });
    ours("\"");
  }

  void new_line(size_t level) {
    if (!style_.indent) return;
    ours("\n");
    for (size_t i = 0; i < level; ++i) add_own(*style_.indent);
  }

  // Appends text of the style, which can have any length.
  void add_own(const MarkedText& text) {
    runtime_.spend(1 + text.size() / 16);
    runtime_.check_size(out_.size() + text.size());
    out_.append(text);
  }

  void separate(size_t level) {
    if (style_.item_separator) {
      add_own(*style_.item_separator);
    } else {
      ours(style_.indent ? "," : ", ");
    }
    new_line(level);
  }

  void add_list(const Sequence& list, size_t level) {
    ours("[");
    for (size_t i = 0; i < list.items.size(); ++i) {
      i == 0 ? new_line(level + 1) : separate(level + 1);
      add(list.items[i], level + 1);
    }
    if (!list.items.empty()) new_line(level);
    ours("]");
  }

  void add_dict(const Dict& dict, size_t level) {
    std::vector<const std::pair<Value, Value>*> members;
    for (const auto& member : dict.members) members.push_back(&member);
    if (style_.sorted) {
      std::stable_sort(members.begin(), members.end(), [&](const auto* a, const auto* b) {
        return is_less(runtime_, a->first, b->first);
      });
    }
    ours("{");
    for (size_t i = 0; i < members.size(); ++i) {
      i == 0 ? new_line(level + 1) : separate(level + 1);
      add_key(members[i]->first);
      style_.key_separator ? add_own(*style_.key_separator) : ours(": ");
      add(members[i]->second, level + 1);
    }
    if (!members.empty()) new_line(level);
    ours("}");
  }

  void add_key(const Value& key) {
    if (const MarkedText* text = key.string()) return add_string(*text);
    const std::optional<std::string> plain = plain_text(key);
    if (!plain) runtime_.fail("keys must be str, int, float, bool or None, not ", type_name(key));
    ours(cat("\"", *plain, "\""));
  }

  static constexpr size_t kLong = size_t{1} << 20;

  Runtime& runtime_;
  const JsonStyle& style_;
  MarkedText out_;
};

Value number_of(const Json& json) {
  const std::string text = json.number_text();
  if (text.find_first_of(".eEnNI") != text.npos) return Value(json.as_double());
  int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error(cat(json.where(), ": ", text, " is more than 64 bits hold"),
                "write it as a string");
  }
  return Value(whole);
}

}  // namespace

MarkedText json_text(Runtime& runtime, const Value& value, const JsonStyle& style) {
  DumpWriter writer(runtime, style);
  writer.add(value, 0);
  return writer.take();
}

Value value_of(const Json& json, Origin origin) {
  if (json.is_null()) return Value(None{});
  if (json.is_bool()) return Value(json.as_bool());
  if (json.is_number()) return number_of(json);
  if (json.is_string()) return Value::text(MarkedText(json.as_string(), origin));
  if (json.is_array()) {
    Values items;
    for (size_t i = 0; i < json.size(); ++i) items.push_back(value_of(json[i], origin));
    return Value::list(std::move(items));
  }
  std::vector<std::pair<Value, Value>> members;
  for (size_t i = 0; i < json.size(); ++i) {
    members.emplace_back(Value::text(MarkedText(json.key(i), origin)),
                         value_of(json.value(i), origin));
  }
  return Value::dict(std::move(members));
}

}  // namespace fp8kv::jinja
