#include "jinja/library/filters_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "jinja/values/chars.h"
#include "jinja/values/json_text.h"
#include "jinja/values/operators.h"
#include "jinja/values/percent_format.h"
#include "jinja/values/python_text.h"
#include "jinja/values/text_tools.h"
#include "unicode/characters.h"

namespace fp8kv::jinja {
namespace {

std::shared_ptr<const MarkedText> text_of(const Call& call) {
  return python_str(call.runtime, call.self);
}

// Returns text for `call`. It stays markup if the input was, like with Python's own method.
Value made_like(Call& call, MarkedText text) {
  call.runtime.spend_bytes(text.size());
  const bool markup = call.self.is_string() && call.self.get<String>()->is_markup;
  return Value(String{std::make_shared<const MarkedText>(std::move(text)), markup});
}

// The text that Python's int() and float() parse: without surrounding white space, and with _
// allowed between digits.
std::optional<std::string> number_text(const MarkedText& text) {
  std::string_view bytes = text.bytes();
  const auto space = [](char c) {
    return std::string_view(" \t\n\r\v\f").find(c) != std::string_view::npos;
  };
  while (!bytes.empty() && space(bytes.front())) bytes.remove_prefix(1);
  while (!bytes.empty() && space(bytes.back())) bytes.remove_suffix(1);
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const bool between = i > 0 && i + 1 < bytes.size() &&
                         std::isdigit(static_cast<unsigned char>(bytes[i - 1])) &&
                         std::isdigit(static_cast<unsigned char>(bytes[i + 1]));
    if (bytes[i] == '_' && between) continue;
    out += bytes[i];
  }
  if (out.starts_with('+')) out.erase(0, 1);
  const bool bad = out.empty() || out[0] == '+' || out.find_first_of("_xXpP()") != out.npos;
  return bad ? std::nullopt : std::optional(out);
}

std::optional<double> read_float(Call& call) {
  const Value& value = call.self;
  if (value.number()) return value.number();
  if (!value.string()) return std::nullopt;
  call.runtime.spend_bytes(value.string()->size());
  const auto text = number_text(*value.string());
  if (!text) return std::nullopt;
  double out = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out);
  if (end != text->data() + text->size() || error == std::errc::invalid_argument) {
    return std::nullopt;
  }
  return error == std::errc::result_out_of_range ? std::strtod(text->c_str(), nullptr) : out;
}

std::optional<int64_t> read_int(Call& call, int base) {
  const MarkedText* text = call.self.string();
  call.runtime.spend_bytes(text->size());
  const auto digits = number_text(*text);
  if (!digits) return std::nullopt;
  int64_t out = 0;
  const auto [end, error] =
      std::from_chars(digits->data(), digits->data() + digits->size(), out, base);
  if (end != digits->data() + digits->size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    call.runtime.fail("a number is more than 64 bits hold");
  }
  return error == std::errc() ? std::optional(out) : std::nullopt;
}

}  // namespace

Value filter_abs(Call& call) {
  if (call.self.integer()) {
    return *call.self.integer() < 0 ? negated(call.runtime, call.self)
                                    : Value(*call.self.integer());
  }
  if (call.self.number()) return Value(std::fabs(*call.self.number()));
  if (call.self.is_undefined()) call.runtime.fail_undefined(call.self);
  call.runtime.fail("bad operand type for abs(): '", type_name(call.self), "'");
}

Value filter_capitalize(Call& call) {
  return made_like(call, capitalized(call.runtime, *text_of(call)));
}

Value filter_center(Call& call) {
  return made_like(call, centered(call.runtime, *text_of(call), call.whole(0, 80)));
}

Value filter_default(Call& call) {
  const bool missing = call.self.is_undefined() || (call.flag(1, false) && !is_true(call.self));
  return missing ? call.get(0, Value::text("")) : call.self;
}

Value filter_escape(Call& call) {
  return escaped(call.runtime, call.self);
}

Value filter_forceescape(Call& call) {
  return escaped(call.runtime, Value(String{text_of(call), false}));
}

Value filter_float(Call& call) {
  const auto number = read_float(call);
  return number ? Value(*number) : call.get(0, Value(0.0));
}

Value filter_format(Call& call) {
  const Arguments& given = call.raw;
  if (!given.positional.empty() && !given.named.empty()) {
    call.runtime.fail("can't handle positional and keyword arguments at the same time");
  }
  if (given.named.empty()) {
    const Value values = Value::list(given.positional, SequenceKind::tuple);
    return percent_formatted(call.runtime, *text_of(call), values);
  }
  std::vector<std::pair<Value, Value>> members;
  for (const auto& [name, value] : given.named) members.emplace_back(Value::text(name), value);
  return percent_formatted(call.runtime, *text_of(call), Value::dict(std::move(members)));
}

Value filter_indent(Call& call) {
  MarkedText indent(std::string(4, ' '), Origin::from_template);
  if (call.args[0] && call.args[0]->string()) {
    indent = *call.args[0]->string();
  } else if (call.args[0]) {
    const int64_t width = call.whole(0, 4);
    call.runtime.spend_bytes(static_cast<size_t>(std::max<int64_t>(width, 0)));
    indent = MarkedText(std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '),
                        Origin::from_template);
  }
  if (call.self.is_undefined()) call.runtime.fail_undefined(call.self);
  if (!call.self.string()) call.runtime.fail("indent needs a string, not ", type_name(call.self));
  const bool first = call.flag(1, false);
  const bool blank = call.flag(2, false);
  MarkedText text = *call.self.string();
  text.append("\n", Origin::from_template);
  const std::vector<MarkedText> lines = lines_of(call.runtime, text, false);
  MarkedText out;
  for (size_t i = 0; i < lines.size(); ++i) {
    call.runtime.spend_bytes(indent.size());
    call.runtime.check_size(out.size() + indent.size() + lines[i].size());
    if (i > 0) out.append("\n", Origin::from_template);
    if (i == 0 ? first : blank || !lines[i].empty()) out.append(indent);
    out.append(lines[i]);
  }
  return made_like(call, std::move(out));
}

Value filter_int(Call& call) {
  const int64_t base = call.whole(1, 10);
  const Value otherwise = call.get(0, Value(int64_t{0}));
  if (call.self.integer()) return Value(*call.self.integer());
  if (call.self.string()) {
    if (base < 2 || base > 36) call.runtime.fail("int with base ", base, " is not supported");
    if (const auto whole = read_int(call, static_cast<int>(base))) return Value(*whole);
  }
  const auto real = read_float(call);
  if (!real || std::isnan(*real) || std::isinf(*real)) return otherwise;
  if (*real < -9.2e18 || *real > 9.2e18) call.runtime.fail("a number is more than 64 bits hold");
  return Value(static_cast<int64_t>(*real));
}

Value filter_lower(Call& call) {
  return made_like(call, lower(call.runtime, *text_of(call)));
}

Value filter_upper(Call& call) {
  return made_like(call, upper(call.runtime, *text_of(call)));
}

Value filter_replace(Call& call) {
  const auto old = python_str(call.runtime, *call.args[0]);
  const auto by = python_str(call.runtime, *call.args[1]);
  const bool all = call.args[2] == nullptr || call.args[2]->is_none();
  return call.runtime.text(replaced(call.runtime, *text_of(call), *old, *by,
                                    all ? -1 : std::max<int64_t>(call.whole(2, -1), -1)));
}

Value filter_round(Call& call) {
  const int64_t digits = call.whole(0, 0);
  const std::string method =
      call.args[1] && call.args[1]->string() ? call.args[1]->string()->bytes() : "common";
  if (call.self.is_undefined()) call.runtime.fail_undefined(call.self);
  if (!call.self.number()) {
    call.runtime.fail("type ", type_name(call.self), " doesn't define __round__ method");
  }
  if (digits < 0 || digits > 15) {
    call.runtime.fail("round to ", digits, " digits is not supported");
  }
  const double value = *call.self.number();
  if (method == "common") {
    if (call.self.integer()) return Value(*call.self.integer());
    char buffer[512];
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), value);
    return Value(std::strtod(buffer, nullptr));
  }
  if (method != "ceil" && method != "floor") {
    call.runtime.fail("method must be common, ceil or floor");
  }
  const double by = std::pow(10, static_cast<double>(digits));
  return Value((method == "ceil" ? std::ceil(value * by) : std::floor(value * by)) / by);
}

Value filter_safe(Call& call) {
  return Value(String{text_of(call), true});
}

Value filter_string(Call& call) {
  return call.self.is_string() ? call.self : Value(String{text_of(call), false});
}

// Words begin behind white space and each of - ( { [ <
Value filter_title(Call& call) {
  const auto text = text_of(call);
  const std::string_view bytes = text->bytes();
  const auto divides = [](char32_t c) {
    return is_python_space(c) ||
           (c < 0x80 && std::string_view("-({[<").find(static_cast<char>(c)) != std::string::npos);
  };
  call.runtime.spend_bytes(3 * text->size());
  MarkedText out;
  for (size_t at = 0; at < bytes.size();) {
    size_t begin = at;
    const bool between = divides(next_char(bytes, at));
    const size_t first_end = at;
    for (size_t end = at; end < bytes.size(); at = end) {
      if (divides(next_char(bytes, end)) != between) break;
    }
    if (!between) {
      out.append(upper(call.runtime, text->part(begin, first_end)));
      begin = first_end;
    }
    out.append(lower(call.runtime, text->part(begin, at)));
  }
  return made_like(call, std::move(out));
}

Value filter_tojson(Call& call) {
  JsonStyle style;
  style.ascii = call.flag(0, false);
  if (call.args[1] && !call.args[1]->is_none()) {
    const int64_t width = call.args[1]->string() ? 0 : std::max<int64_t>(call.whole(1, 0), 0);
    if (width > 1000) call.runtime.fail("tojson with an indent of ", width, " is not supported");
    style.indent = call.args[1]->string() ? *call.args[1]->string()
                                          : MarkedText(std::string(static_cast<size_t>(width), ' '),
                                                       Origin::from_template);
  }
  if (call.args[2] && !call.args[2]->is_none()) {
    const Sequence* two = call.args[2]->sequence();
    if (!two || two->items.size() != 2 || !two->items[0].string() || !two->items[1].string()) {
      call.runtime.fail("tojson: separators are two strings");
    }
    style.item_separator = *two->items[0].string();
    style.key_separator = *two->items[1].string();
  }
  style.sorted = call.flag(3, false);
  return call.runtime.text(json_text(call.runtime, call.self, style));
}

Value filter_trim(Call& call) {
  const bool given = call.args[0] && !call.args[0]->is_none();
  if (given && !call.args[0]->string()) call.runtime.fail("trim needs a string of characters");
  return made_like(call, stripped(call.runtime, *text_of(call),
                                  given ? &call.args[0]->string()->bytes() : nullptr, Side::both));
}

Value filter_truncate(Call& call) {
  if (!call.self.string()) call.runtime.fail("truncate needs a string");
  const MarkedText& text = *call.self.string();
  call.runtime.spend_bytes(text.size());
  const int64_t length = call.whole(0, 255);
  const Value end_value = call.get(2, Value::text("..."));
  if (!end_value.string()) call.runtime.fail("truncate: end is a string");
  const MarkedText& end = *end_value.string();
  call.runtime.spend_bytes(end.size());
  const auto end_chars = static_cast<int64_t>(char_count(end.bytes()));
  if (length < end_chars) call.runtime.fail("expected length >= ", end_chars, ", got ", length);
  // A leeway beyond the length of the text makes no difference.
  const auto chars = static_cast<int64_t>(char_count(text.bytes()));
  const int64_t leeway = std::min(call.whole(3, 5), chars);
  if (leeway < 0) call.runtime.fail("expected leeway >= 0, got ", leeway);
  if (length >= chars - leeway) return call.self;
  MarkedText out =
      text.part(0, byte_of_char(text.bytes(), 0, static_cast<size_t>(length - end_chars)));
  if (!call.flag(1, false)) {
    const size_t space = out.bytes().rfind(' ');
    if (space != std::string::npos) out = out.part(0, space);
  }
  out.append(end);
  return made_like(call, std::move(out));
}

// Counts runs of word characters.
Value filter_wordcount(Call& call) {
  const auto text = text_of(call);
  call.runtime.spend_bytes(text->size());
  int64_t words = 0;
  bool within = false;
  for (size_t at = 0; at < text->size();) {
    const bool now = is_word(next_char(text->bytes(), at));
    if (now && !within) ++words;
    within = now;
  }
  return Value(words);
}

}  // namespace fp8kv::jinja
