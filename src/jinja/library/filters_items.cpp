#include "jinja/library/filters_items.h"

#include <algorithm>

#include "jinja/library/access.h"
#include "jinja/library/template_tests.h"
#include "jinja/values/compare.h"
#include "jinja/values/iteration.h"
#include "jinja/values/operators.h"
#include "jinja/values/python_text.h"
#include "jinja/values/text_tools.h"

namespace fp8kv::jinja {
namespace {

// The key for comparing values: strings in lower case, unless `as_is`.
Value key_of(Runtime& runtime, const Value& value, bool as_is) {
  if (as_is || !value.string()) return value;
  return runtime.text(lower(runtime, *value.string()));
}

bool is_given(const Value* argument) {
  return argument != nullptr && !argument->is_none();
}

// The sort key of an item: one attribute, or the item itself.
Value key_by(Call& call, const Value& item, const Value* attribute, bool as_is) {
  const Value of = is_given(attribute) ? at_path(call.runtime, item, *attribute) : item;
  return key_of(call.runtime, of, as_is);
}

// The sort key for several attributes, separated by commas. A list, as in Jinja2: comparing lists
// needs no order for elements that are equal.
Value keys_by(Call& call, const Value& item, const Value* attribute, bool as_is) {
  if (!is_given(attribute) || !attribute->string()) {
    return Value::list({key_by(call, item, attribute, as_is)});
  }
  const std::string_view names = attribute->string()->bytes();
  call.runtime.spend(1 + names.size() / 16);
  Values keys;
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find(',', at), names.size());
    const Value path = Value::text(names.substr(at, end - at));
    keys.push_back(key_by(call, item, &path, as_is));
    at = end + 1;
  }
  return Value::list(std::move(keys));
}

// Merge sort. std::sort needs a consistent order, which NaN does not have.
Values sorted_by(Runtime& runtime, const Values& items, const Values& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<size_t> merged(order.size());
  for (size_t width = 1; width < order.size(); width *= 2) {
    for (size_t begin = 0; begin < order.size(); begin += 2 * width) {
      size_t a = begin;
      size_t b = std::min(begin + width, order.size());
      const size_t middle = b;
      const size_t end = std::min(begin + 2 * width, order.size());
      for (size_t out = begin; out < end; ++out) {
        const bool take_b =
            a == middle ||
            (b < end && (reverse ? is_less(runtime, keys[order[a]], keys[order[b]])
                                 : is_less(runtime, keys[order[b]], keys[order[a]])));
        merged[out] = take_b ? order[b++] : order[a++];
      }
    }
    order.swap(merged);
  }
  Values out;
  for (const size_t i : order) out.push_back(items[i]);
  return out;
}

Value sorted(Call& call, const Items& items, const Value* attribute, bool as_is, bool reverse) {
  Values keys;
  for (const Value& item : *items) keys.push_back(keys_by(call, item, attribute, as_is));
  return call.runtime.list(sorted_by(call.runtime, *items, keys, reverse));
}

Value extreme(Call& call, bool largest) {
  const Items items = items_of(call.runtime, call.self);
  if (items->empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const bool as_is = call.flag(0, false);
  size_t best = 0;
  Value best_key = key_by(call, (*items)[0], call.args[1], as_is);
  for (size_t i = 1; i < items->size(); ++i) {
    Value key = key_by(call, (*items)[i], call.args[1], as_is);
    const bool better =
        largest ? is_less(call.runtime, best_key, key) : is_less(call.runtime, key, best_key);
    if (!better) continue;
    best = i;
    best_key = std::move(key);
  }
  return (*items)[best];
}

// A generator that yields items one by one, on demand.
template <typename Keep>
Value kept(Call& call, Keep keep) {
  Runtime& runtime = call.runtime;
  if (!is_true(call.self)) return runtime.generator([] { return std::optional<Value>(); }, 0);
  const auto next = [&runtime, self = call.self, keep, items = Items(),
                     at = size_t{0}]() mutable -> std::optional<Value> {
    if (!items) items = items_of(runtime, self);
    while (at < items->size()) {
      const Value& item = (*items)[at++];
      runtime.spend();
      const Runtime::Level level(runtime);
      if (keep(item)) return item;
    }
    return std::nullopt;
  };
  return runtime.generator(next, nesting_of(call.self));
}

Value one_by_one(Runtime& runtime, Values items, int nesting) {
  const auto next = [items = std::move(items), at = size_t{0}]() mutable -> std::optional<Value> {
    return at < items.size() ? std::optional(items[at++]) : std::nullopt;
  };
  return runtime.generator(next, nesting);
}

// Implements select, reject, selectattr and rejectattr: by a test of the value or of an attribute.
Value run_select(Call& call, bool by_attribute, bool wanted) {
  const Values& given = call.raw.positional;
  const size_t first = by_attribute ? 1 : 0;
  if (given.size() < first) call.runtime.fail("missing parameter for attribute name");
  const bool has_test = given.size() > first;
  if (has_test && !given[first].string()) call.runtime.fail("the name of a test is a string");
  Runtime& runtime = call.runtime;
  Arguments rest = {
      has_test ? Values(given.begin() + static_cast<ptrdiff_t>(first) + 1, given.end()) : Values(),
      call.raw.named};
  const Value path = by_attribute ? given[0] : Value();
  const std::string test = has_test ? given[first].string()->bytes() : "";
  return kept(
      call, [&runtime, rest, path, test, has_test, by_attribute, wanted](const Value& item) {
        const Value asked = by_attribute ? at_path(runtime, item, path) : item;
        return (has_test ? passes_test(runtime, test, asked, rest) : is_true(asked)) == wanted;
      });
}

}  // namespace

Value filter_attr(Call& call) {
  if (!call.args[0]->string()) call.runtime.fail("attr needs the name of an attribute");
  const std::string& name = call.args[0]->string()->bytes();
  // Members are no attributes. A dict only has methods, and an empty dict has the same ones.
  if (call.self.dict()) {
    const Value method = attribute_of(call.runtime, Value::dict({}), name);
    if (method.is_undefined()) return method;
  }
  return attribute_of(call.runtime, call.self, name);
}

Value filter_batch(Call& call) {
  const Items items = items_of(call.runtime, call.self);
  const int64_t size = call.whole(0, 1);
  if (size < 1) call.runtime.fail("batch needs a positive number");
  Values batches;
  for (size_t at = 0; at < items->size(); at += static_cast<size_t>(size)) {
    const size_t end = std::min(items->size(), at + static_cast<size_t>(size));
    Values batch(items->begin() + static_cast<ptrdiff_t>(at),
                 items->begin() + static_cast<ptrdiff_t>(end));
    if (is_given(call.args[1])) {
      call.runtime.spend_items(static_cast<uint64_t>(size));
      batch.resize(static_cast<size_t>(size), *call.args[1]);
    }
    batches.push_back(call.runtime.list(std::move(batch)));
  }
  return call.runtime.list(std::move(batches));
}

Value filter_slice(Call& call) {
  const Items items = items_of(call.runtime, call.self);
  const int64_t slices = call.whole(0, 1);
  if (slices < 1) call.runtime.fail("slice needs a positive number");
  call.runtime.spend_items(static_cast<uint64_t>(slices));
  const auto count = static_cast<size_t>(slices);
  const size_t each = items->size() / count;
  const size_t longer = items->size() % count;
  Values made;
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = each + (i < longer ? 1 : 0);
    Values slice(items->begin() + static_cast<ptrdiff_t>(at),
                 items->begin() + static_cast<ptrdiff_t>(at + size));
    if (is_given(call.args[1]) && i >= longer) slice.push_back(*call.args[1]);
    made.push_back(call.runtime.list(std::move(slice)));
    at += size;
  }
  return call.runtime.list(std::move(made));
}

Value filter_dictsort(Call& call) {
  const Dict* dict = call.self.dict();
  if (dict == nullptr) call.runtime.fail("dictsort needs a dict, not ", type_name(call.self));
  const bool as_is = call.flag(0, false);
  const std::string by =
      call.args[1] && call.args[1]->string() ? call.args[1]->string()->bytes() : "key";
  if (by != "key" && by != "value") {
    call.runtime.fail("You can only sort by either \"key\" or \"value\"");
  }
  Values items;
  Values keys;
  for (const auto& [key, value] : dict->members) {
    items.push_back(Value::list({key, value}, SequenceKind::tuple));
    keys.push_back(key_of(call.runtime, by == "key" ? key : value, as_is));
  }
  return call.runtime.list(sorted_by(call.runtime, items, keys, call.flag(2, false)));
}

Value filter_first(Call& call) {
  if (const auto* generator = call.self.get<Generator*>()) {
    auto item = (*generator)->next();
    return item ? *item : Value::undefined("No first item, sequence was empty.");
  }
  const Items items = items_of(call.runtime, call.self);
  return items->empty() ? Value::undefined("No first item, sequence was empty.") : items->front();
}

Value filter_last(Call& call) {
  if (call.self.get<Generator*>()) call.runtime.fail("'generator' object is not reversible");
  const Items items = items_of(call.runtime, call.self);
  return items->empty() ? Value::undefined("No last item, sequence was empty.") : items->back();
}

Value filter_groupby(Call& call) {
  const Items items = items_of(call.runtime, call.self);
  const bool as_is = call.flag(2, false);
  Values keys;
  Values found;
  for (const Value& item : *items) {
    const Value value = at_path(call.runtime, item, *call.args[0], call.get(1, Value()));
    keys.push_back(key_of(call.runtime, value, as_is));
    found.push_back(Value::list({item, keys.back(), value}));
  }
  const Values in_order = sorted_by(call.runtime, found, keys, false);
  Values groups;
  for (size_t at = 0; at < in_order.size();) {
    const Values& first = in_order[at].sequence()->items;
    Values members;
    while (at < in_order.size() &&
           are_equal(call.runtime, in_order[at].sequence()->items[1], first[1])) {
      members.push_back(in_order[at++].sequence()->items[0]);
    }
    groups.push_back(
        Value::list({first[2], call.runtime.list(std::move(members))}, SequenceKind::group));
  }
  return call.runtime.list(std::move(groups));
}

Value filter_items(Call& call) {
  if (call.self.is_undefined()) return one_by_one(call.runtime, {}, 0);
  const Dict* dict = call.self.dict();
  if (dict == nullptr) call.runtime.fail("Can only get item pairs from a mapping.");
  call.runtime.spend_items(3 * dict->members.size());
  Values items;
  for (const auto& [key, value] : dict->members) {
    items.push_back(Value::list({key, value}, SequenceKind::tuple));
  }
  return one_by_one(call.runtime, std::move(items), nesting_of(call.self));
}

Value filter_join(Call& call) {
  const Items items = items_of(call.runtime, call.self);
  const auto separator = python_str(call.runtime, call.get(0, Value::text("")));
  MarkedText out;
  for (size_t i = 0; i < items->size(); ++i) {
    Value item = (*items)[i];
    if (is_given(call.args[1])) item = at_path(call.runtime, item, *call.args[1]);
    const auto text = python_str(call.runtime, item);
    call.runtime.spend(1 + (text->size() + separator->size()) / 16);
    call.runtime.check_size(out.size() + text->size() + separator->size());
    if (i > 0) out.append(*separator);
    out.append(*text);
  }
  return call.runtime.text(std::move(out));
}

Value filter_length(Call& call) {
  return Value(static_cast<int64_t>(length_of(call.runtime, call.self)));
}

Value filter_list(Call& call) {
  return call.runtime.list(*items_of(call.runtime, call.self));
}

Value filter_max(Call& call) {
  return extreme(call, true);
}
Value filter_min(Call& call) {
  return extreme(call, false);
}

Value filter_select(Call& call) {
  return run_select(call, false, true);
}
Value filter_reject(Call& call) {
  return run_select(call, false, false);
}
Value filter_selectattr(Call& call) {
  return run_select(call, true, true);
}
Value filter_rejectattr(Call& call) {
  return run_select(call, true, false);
}

Value filter_reverse(Call& call) {
  if (call.self.string()) {
    return slice_of(call.runtime, call.self, {Value(), Value(), Value(int64_t{-1})});
  }
  Values items = *items_of(call.runtime, call.self);
  std::reverse(items.begin(), items.end());
  call.runtime.spend(items.size());
  return one_by_one(call.runtime, std::move(items), nesting_of(call.self));
}

Value filter_sort(Call& call) {
  return sorted(call, items_of(call.runtime, call.self), call.args[2], call.flag(1, false),
                call.flag(0, false));
}

Value filter_sum(Call& call) {
  const Items items = items_of(call.runtime, call.self);
  Value sum = call.get(1, Value(int64_t{0}));
  if (sum.string()) call.runtime.fail("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : *items) {
    const Value each = is_given(call.args[0]) ? at_path(call.runtime, item, *call.args[0]) : item;
    sum = apply(call.runtime, Operator::add, sum, each);
  }
  return sum;
}

Value filter_unique(Call& call) {
  const Items items = items_of(call.runtime, call.self);
  const bool as_is = call.flag(0, false);
  Values seen;
  Values kept_items;
  for (const Value& item : *items) {
    const Value of = is_given(call.args[1]) ? at_path(call.runtime, item, *call.args[1]) : item;
    const Value key = key_of(call.runtime, of, as_is);
    check_hashable(call.runtime, key);
    const bool known = std::any_of(seen.begin(), seen.end(), [&](const Value& each) {
      return are_equal(call.runtime, each, key);
    });
    if (known) continue;
    seen.push_back(key);
    kept_items.push_back(item);
  }
  return one_by_one(call.runtime, std::move(kept_items), nesting_of(call.self));
}

}  // namespace fp8kv::jinja
