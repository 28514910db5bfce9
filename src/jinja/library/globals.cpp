#include "jinja/library/globals.h"

#include <array>
#include <ctime>

#include "jinja/library/builtin.h"
#include "jinja/values/compare.h"
#include "jinja/values/python_text.h"

namespace fp8kv::jinja {
namespace {

constexpr uint64_t kLongestRange = 100'000;  // the limit of Jinja's sandbox

Value make_range(Call& call) {
  int64_t begin = call.whole(0, 0);
  int64_t end = 0;
  const int64_t step = call.whole(2, 1);
  if (call.args[1] == nullptr) {
    std::swap(begin, end);
  } else {
    end = call.whole(1, 0);
  }
  if (step == 0) call.runtime.fail("range() arg 3 must not be zero");
  Values items;
  for (int64_t at = begin; step > 0 ? at < end : at > end;) {
    if (items.size() >= kLongestRange) {
      call.runtime.fail("a range of more than ", grouped(kLongestRange), " numbers");
    }
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return call.runtime.list(std::move(items), SequenceKind::range);
}

// The members for dict(...) and namespace(...): those of a dict, then the named arguments.
std::vector<std::pair<Value, Value>> members_of(Call& call) {
  std::vector<std::pair<Value, Value>> members;
  if (call.raw.positional.size() > 1) call.runtime.fail("expected at most 1 argument");
  if (!call.raw.positional.empty()) {
    const Dict* dict = call.raw.positional[0].dict();
    if (dict == nullptr) {
      call.runtime.fail("a dict can only be made of a dict and of named arguments");
    }
    members = dict->members;
  }
  for (const auto& [name, value] : call.raw.named) members.emplace_back(Value::text(name), value);
  return members;
}

Value make_dict(Call& call) {
  return dict_of(call.runtime, members_of(call));
}

Value make_namespace(Call& call) {
  Value made = call.runtime.name_space();
  for (auto& [key, value] : members_of(call)) {
    if (!key.string()) call.runtime.fail("namespace: the names of members are strings");
    set_member(call.runtime, **made.get<Namespace*>(), key.string()->bytes(), value);
  }
  return made;
}

Value raise(Call& call) {
  call.runtime.fail("the template says: ", plain(python_str(call.runtime, *call.args[0])->bytes()));
}

Value time_now(Call& call) {
  if (!call.args[0]->string()) call.runtime.fail("strftime_now needs a format");
  const std::string& format = call.args[0]->string()->bytes();
  if (format.size() > 1000) call.runtime.fail("strftime_now: the format is too long");
  const std::time_t seconds = call.runtime.now();
  std::tm when{};
  localtime_r(&seconds, &when);
  char buffer[16384];
  const size_t size = std::strftime(buffer, sizeof buffer, format.c_str(), &when);
  return call.runtime.text(MarkedText(std::string(buffer, size), Origin::from_template));
}

// Sorted by name.
constexpr std::array<BuiltinRow, 8> kRows = {{{"cycler", "*", nullptr},
                                              {"dict", "*", make_dict},
                                              {"joiner", "*", nullptr},
                                              {"lipsum", "*", nullptr},
                                              {"namespace", "*", make_namespace},
                                              {"raise_exception", "message", raise},
                                              {"range", "start stop? step?", make_range},
                                              {"strftime_now", "format", time_now}}};

}  // namespace

std::optional<Value> global_of(Runtime& runtime, std::string_view name) {
  const BuiltinRow* row = find_row(kRows, name);
  if (row == nullptr) return std::nullopt;
  const auto call = [&runtime, row](const Arguments& arguments) {
    return call_row(runtime, *row, "function", Value(), arguments);
  };
  return Value(std::make_shared<const Function>(Function{std::string(name), call}));
}

void set_member(Runtime& runtime, Namespace& space, const std::string& name, Value value) {
  runtime.spend(1 + space.members.size() / 8);
  if (name.starts_with('_')) {
    runtime.fail("a namespace may not have a member that begins with an underscore, '", name, "'");
  }
  for (auto& [each, held] : space.members) {
    if (each != name) continue;
    held = std::move(value);
    return;
  }
  space.members.emplace_back(name, std::move(value));
}

}  // namespace fp8kv::jinja
