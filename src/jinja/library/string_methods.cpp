// Implements the methods of Python's str.
#include <algorithm>
#include <array>

#include "jinja/library/methods.h"
#include "jinja/library/string_predicates.h"
#include "jinja/values/chars.h"
#include "jinja/values/iteration.h"
#include "jinja/values/percent_format.h"
#include "jinja/values/text_search.h"
#include "jinja/values/text_tools.h"
#include "unicode/characters.h"

namespace fp8kv::jinja {
namespace {

const MarkedText& self_of(const Call& call) {
  return *call.self.string();
}

// Returns an argument that must be a string.
const MarkedText& text_of(const Call& call, size_t index) {
  const Value& value = *call.args[index];
  if (value.is_undefined()) call.runtime.fail_undefined(value);
  if (!value.string()) {
    call.runtime.fail("expected a string, not '", type_name(value), "'");
  }
  return *value.string();
}

// Returns a string argument; nullptr if it was not given or is none.
const MarkedText* maybe_text(const Call& call, size_t index) {
  const bool given = call.args[index] != nullptr && !call.args[index]->is_none();
  return given ? &text_of(call, index) : nullptr;
}

Value made(Call& call, MarkedText text) {
  return call.runtime.text(std::move(text));
}

Value made_list(Call& call, std::vector<MarkedText> texts) {
  Values items;
  call.runtime.spend(4 * texts.size());
  for (MarkedText& text : texts) items.push_back(Value::text(std::move(text)));
  return call.runtime.list(std::move(items));
}

Value run_strip(Call& call, Side side) {
  const MarkedText* chars = maybe_text(call, 0);
  return made(call, stripped(call.runtime, self_of(call), chars ? &chars->bytes() : nullptr, side));
}
Value strip(Call& call) {
  return run_strip(call, Side::both);
}
Value lstrip(Call& call) {
  return run_strip(call, Side::left);
}
Value rstrip(Call& call) {
  return run_strip(call, Side::right);
}

Value lower_method(Call& call) {
  return made(call, lower(call.runtime, self_of(call)));
}
Value upper_method(Call& call) {
  return made(call, upper(call.runtime, self_of(call)));
}
Value capitalize(Call& call) {
  return made(call, capitalized(call.runtime, self_of(call)));
}

Value replace(Call& call) {
  return made(call, replaced(call.runtime, self_of(call), text_of(call, 0), text_of(call, 1),
                             std::max<int64_t>(call.whole(2, -1), -1)));
}

// Implements str.startswith and endswith, for one text or any text of a tuple.
template <typename Matches>
Value run_affix(Call& call, const Matches& matches) {
  if (call.args[1] != nullptr || call.args[2] != nullptr) {
    call.runtime.fail("startswith and endswith with a place are not supported");
  }
  const Sequence* tuple = call.args[0]->sequence();
  if (tuple == nullptr || tuple->kind != SequenceKind::tuple) {
    call.runtime.spend(text_of(call, 0).size() / 64);
    return Value(matches(self_of(call).bytes(), text_of(call, 0).bytes()));
  }
  for (const Value& each : tuple->items) {
    if (!each.string()) call.runtime.fail("a tuple of strings is expected");
    call.runtime.spend(1 + each.string()->size() / 64);
    if (matches(self_of(call).bytes(), each.string()->bytes())) return Value(true);
  }
  return Value(false);
}
Value startswith(Call& call) {
  return run_affix(call, [](const auto& text, const auto& part) { return text.starts_with(part); });
}
Value endswith(Call& call) {
  return run_affix(call, [](const auto& text, const auto& part) { return text.ends_with(part); });
}

Value removeprefix(Call& call) {
  const MarkedText& text = self_of(call);
  const std::string& part = text_of(call, 0).bytes();
  return made(call, text.bytes().starts_with(part) ? text.part(part.size(), text.size()) : text);
}
Value removesuffix(Call& call) {
  const MarkedText& text = self_of(call);
  const std::string& part = text_of(call, 0).bytes();
  return made(call, text.bytes().ends_with(part) ? text.part(0, text.size() - part.size()) : text);
}

// Splits at white space from the left. After `most` splits, the rest keeps its white space.
std::vector<MarkedText> words_of(const MarkedText& text, int64_t most) {
  const std::string_view bytes = text.bytes();
  std::vector<MarkedText> words;
  const auto skip = [&](size_t at, bool spaces) {
    while (at < bytes.size()) {
      size_t next = at;
      if (is_python_space(next_char(bytes, next)) != spaces) break;
      at = next;
    }
    return at;
  };
  for (size_t at = skip(0, true); at < bytes.size(); at = skip(at, true)) {
    if (most >= 0 && static_cast<int64_t>(words.size()) == most) {
      words.push_back(text.part(at, bytes.size()));
      break;
    }
    const size_t end = skip(at, false);
    words.push_back(text.part(at, end));
    at = end;
  }
  return words;
}

Value split(Call& call) {
  const MarkedText& text = self_of(call);
  const MarkedText* separator = maybe_text(call, 0);
  int64_t most = std::max<int64_t>(call.whole(1, -1), -1);
  if (separator == nullptr) {
    call.runtime.spend_bytes(text.size());
    return made_list(call, words_of(text, most));
  }
  if (separator->empty()) call.runtime.fail("empty separator");
  const TextSearch search(call.runtime, text.bytes(), separator->bytes());
  std::vector<MarkedText> parts;
  size_t at = 0;
  for (; most != 0; --most) {
    const size_t found = search.find(at);
    if (found == std::string::npos) break;
    call.runtime.spend(4);
    parts.push_back(text.part(at, found));
    at = found + separator->size();
  }
  parts.push_back(text.part(at, text.size()));
  return made_list(call, std::move(parts));
}

Value rsplit(Call& call) {
  const MarkedText& text = self_of(call);
  const MarkedText* separator = maybe_text(call, 0);
  int64_t most = std::max<int64_t>(call.whole(1, -1), -1);
  if (most < 0) return split(call);
  if (separator == nullptr) call.runtime.fail("rsplit at white space is not supported");
  if (separator->empty()) call.runtime.fail("empty separator");
  const TextSearch search(call.runtime, text.bytes(), separator->bytes());
  std::vector<MarkedText> parts;
  size_t end = text.size();
  for (; most > 0; --most) {
    const size_t found = search.find_last(end);
    if (found == std::string::npos) break;
    call.runtime.spend(4);
    parts.push_back(text.part(found + separator->size(), end));
    end = found;
  }
  parts.push_back(text.part(0, end));
  std::reverse(parts.begin(), parts.end());
  return made_list(call, std::move(parts));
}

Value run_partition(Call& call, bool from_right) {
  const MarkedText& text = self_of(call);
  const MarkedText& separator = text_of(call, 0);
  if (separator.empty()) call.runtime.fail("empty separator");
  const TextSearch search(call.runtime, text.bytes(), separator.bytes());
  const size_t found = from_right ? search.find_last(text.size()) : search.find(0);
  std::vector<MarkedText> parts(3);
  if (found == std::string::npos) {
    parts[from_right ? 2 : 0] = text;
  } else {
    const size_t after = found + separator.size();
    parts = {text.part(0, found), text.part(found, after), text.part(after, text.size())};
  }
  Values items;
  for (MarkedText& part : parts) items.push_back(Value::text(std::move(part)));
  return call.runtime.list(std::move(items), SequenceKind::tuple);
}
Value partition(Call& call) {
  return run_partition(call, false);
}
Value rpartition(Call& call) {
  return run_partition(call, true);
}

Value splitlines(Call& call) {
  return made_list(call, lines_of(call.runtime, self_of(call), call.flag(0, false)));
}

Value join(Call& call) {
  const Items items = items_of(call.runtime, *call.args[0]);
  MarkedText out;
  for (size_t i = 0; i < items->size(); ++i) {
    const MarkedText* item = (*items)[i].string();
    if (item == nullptr) {
      call.runtime.fail("sequence item ", i, ": expected str instance, ", type_name((*items)[i]),
                        " found");
    }
    call.runtime.spend(1 + (item->size() + self_of(call).size()) / 16);
    call.runtime.check_size(out.size() + item->size() + self_of(call).size());
    if (i > 0) out.append(self_of(call));
    out.append(*item);
  }
  return made(call, std::move(out));
}

// The position in characters; -1 if the part is not found.
int64_t place_of(Call& call, bool from_right) {
  const std::string& text = self_of(call).bytes();
  if (call.args[1] != nullptr || call.args[2] != nullptr) {
    call.runtime.fail("find and index with a place are not supported");
  }
  const TextSearch search(call.runtime, text, text_of(call, 0).bytes());
  const size_t found = from_right ? search.find_last(text.size()) : search.find(0);
  if (found == std::string::npos) return -1;
  return static_cast<int64_t>(char_count(std::string_view(text).substr(0, found)));
}
Value find(Call& call) {
  return Value(place_of(call, false));
}
Value rfind(Call& call) {
  return Value(place_of(call, true));
}
Value found_index(Call& call, bool from_right) {
  const int64_t at = place_of(call, from_right);
  if (at < 0) call.runtime.fail("substring not found");
  return Value(at);
}
Value index(Call& call) {
  return found_index(call, false);
}
Value rindex(Call& call) {
  return found_index(call, true);
}

Value count(Call& call) {
  const std::string& text = self_of(call).bytes();
  const std::string& part = text_of(call, 0).bytes();
  const TextSearch search(call.runtime, text, part);
  if (part.empty()) return Value(static_cast<int64_t>(char_count(text) + 1));
  int64_t found = 0;
  for (size_t at = search.find(0); at != text.npos; at = search.find(at + part.size())) ++found;
  return Value(found);
}

Value center(Call& call) {
  return made(call, centered(call.runtime, self_of(call), call.whole(0, 0)));
}

Value pad(Call& call, bool left) {
  const auto chars = static_cast<int64_t>(char_count(self_of(call).bytes()));
  const int64_t missing = std::max(call.whole(0, 0), chars) - chars;
  call.runtime.spend_bytes(self_of(call).size() + static_cast<size_t>(missing));
  const MarkedText spaces(std::string(static_cast<size_t>(missing), ' '), Origin::from_template);
  MarkedText out = left ? spaces : self_of(call);
  out.append(left ? self_of(call) : spaces);
  return made(call, std::move(out));
}
Value ljust(Call& call) {
  return pad(call, false);
}
Value rjust(Call& call) {
  return pad(call, true);
}

Value format(Call& call) {
  return brace_formatted(call.runtime, self_of(call), call.raw);
}

// Sorted by name.
constexpr std::array<BuiltinRow, 47> kRows = {{
    {"capitalize", "", capitalize},
    {"casefold", "*", nullptr},
    {"center", "width", center},
    {"count", "part", count},
    {"encode", "*", nullptr},
    {"endswith", "suffix begin? end?", endswith},
    {"expandtabs", "*", nullptr},
    {"find", "part begin? end?", find},
    {"format", "*", format},
    {"format_map", "*", nullptr},
    {"index", "part begin? end?", index},
    {"isalnum", "", isalnum},
    {"isalpha", "", isalpha},
    {"isascii", "", isascii},
    {"isdecimal", "", isdecimal},
    {"isdigit", "", isdigit},
    {"isidentifier", "*", nullptr},
    {"islower", "", islower},
    {"isnumeric", "*", nullptr},
    {"isprintable", "*", nullptr},
    {"isspace", "", isspace},
    {"istitle", "*", nullptr},
    {"isupper", "", isupper},
    {"join", "items", join},
    {"ljust", "width", ljust},
    {"lower", "", lower_method},
    {"lstrip", "chars?", lstrip},
    {"maketrans", "*", nullptr},
    {"partition", "separator", partition},
    {"removeprefix", "prefix", removeprefix},
    {"removesuffix", "suffix", removesuffix},
    {"replace", "old new count?", replace},
    {"rfind", "part begin? end?", rfind},
    {"rindex", "part begin? end?", rindex},
    {"rjust", "width", rjust},
    {"rpartition", "separator", rpartition},
    {"rsplit", "sep? maxsplit?", rsplit},
    {"rstrip", "chars?", rstrip},
    {"split", "sep? maxsplit?", split},
    {"splitlines", "keepends?", splitlines},
    {"startswith", "prefix begin? end?", startswith},
    {"strip", "chars?", strip},
    {"swapcase", "*", nullptr},
    {"title", "*", nullptr},
    {"translate", "*", nullptr},
    {"upper", "", upper_method},
    {"zfill", "*", nullptr},
}};

}  // namespace

std::span<const BuiltinRow> string_methods() {
  return kRows;
}

}  // namespace fp8kv::jinja
