#include "jinja/library/filters.h"

#include <array>

#include "jinja/library/access.h"
#include "jinja/library/filters_items.h"
#include "jinja/library/filters_text.h"
#include "jinja/values/iteration.h"

namespace fp8kv::jinja {
namespace {

// Maps by an attribute, or by a filter. It is in this file because it can call any filter.
Value filter_map(Call& call) {
  Runtime& runtime = call.runtime;
  const Arguments given = call.raw;
  const bool by_attribute = given.positional.empty() && !given.named.empty();
  if (!by_attribute && (given.positional.empty() || !given.positional[0].string())) {
    runtime.fail("map requires a filter argument");
  }
  Value path;
  Value otherwise;
  for (const auto& [name, value] : given.named) {
    if (!by_attribute) break;
    if (name != "attribute" && name != "default") {
      runtime.fail("map: unexpected keyword argument '", name, "'");
    }
    (name == "attribute" ? path : otherwise) = value;
  }
  Arguments rest = given;
  if (!by_attribute) rest.positional.erase(rest.positional.begin());
  const auto mapped = [&runtime, by_attribute, given, rest, path, otherwise](const Value& item) {
    if (!by_attribute) {
      return filtered(runtime, given.positional[0].string()->bytes(), item, rest);
    }
    return at_path(runtime, item, path, otherwise);
  };
  const auto next = [&runtime, self = call.self, mapped, items = Items(),
                     at = size_t{0}]() mutable -> std::optional<Value> {
    if (!items) items = items_of(runtime, self);
    if (at >= items->size()) return std::nullopt;
    runtime.spend();
    const Runtime::Level level(runtime);
    return mapped((*items)[at++]);
  };
  return runtime.generator(next, nesting_of(call.self));
}

// Sorted by name.
constexpr std::array<BuiltinRow, 54> kRows = {{
    {"abs", "", filter_abs},
    {"attr", "name", filter_attr},
    {"batch", "linecount fill_with?", filter_batch},
    {"capitalize", "", filter_capitalize},
    {"center", "width?", filter_center},
    {"count", "", filter_length},
    {"d", "default_value? boolean?", filter_default},
    {"default", "default_value? boolean?", filter_default},
    {"dictsort", "case_sensitive? by? reverse?", filter_dictsort},
    {"e", "", filter_escape},
    {"escape", "", filter_escape},
    {"filesizeformat", "*", nullptr},
    {"first", "", filter_first},
    {"float", "default?", filter_float},
    {"forceescape", "", filter_forceescape},
    {"format", "*", filter_format},
    {"groupby", "attribute default? case_sensitive?", filter_groupby},
    {"indent", "width? first? blank?", filter_indent},
    {"int", "default? base?", filter_int},
    {"items", "", filter_items},
    {"join", "d? attribute?", filter_join},
    {"last", "", filter_last},
    {"length", "", filter_length},
    {"list", "", filter_list},
    {"lower", "", filter_lower},
    {"map", "*", filter_map},
    {"max", "case_sensitive? attribute?", filter_max},
    {"min", "case_sensitive? attribute?", filter_min},
    {"pprint", "*", nullptr},
    {"random", "*", nullptr},
    {"reject", "*", filter_reject},
    {"rejectattr", "*", filter_rejectattr},
    {"replace", "old new count?", filter_replace},
    {"reverse", "", filter_reverse},
    {"round", "precision? method?", filter_round},
    {"safe", "", filter_safe},
    {"select", "*", filter_select},
    {"selectattr", "*", filter_selectattr},
    {"slice", "slices fill_with?", filter_slice},
    {"sort", "reverse? case_sensitive? attribute?", filter_sort},
    {"string", "", filter_string},
    {"striptags", "*", nullptr},
    {"sum", "attribute? start?", filter_sum},
    {"title", "", filter_title},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", filter_tojson},
    {"trim", "chars?", filter_trim},
    {"truncate", "length? killwords? end? leeway?", filter_truncate},
    {"unique", "case_sensitive? attribute?", filter_unique},
    {"upper", "", filter_upper},
    {"urlencode", "*", nullptr},
    {"urlize", "*", nullptr},
    {"wordcount", "", filter_wordcount},
    {"wordwrap", "*", nullptr},
    {"xmlattr", "*", nullptr},
}};

}  // namespace

const BuiltinRow* find_filter(std::string_view name) {
  return find_row(kRows, name);
}

Value filtered(Runtime& runtime, std::string_view name, const Value& value,
               const Arguments& arguments) {
  const BuiltinRow* row = find_filter(name);
  if (row == nullptr) runtime.fail("no filter named '", name, "'");
  return call_row(runtime, *row, "filter", value, arguments);
}

}  // namespace fp8kv::jinja
