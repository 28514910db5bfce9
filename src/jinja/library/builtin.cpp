#include "jinja/library/builtin.h"

#include <algorithm>

namespace fp8kv::jinja {
namespace {

struct Parameter {
  std::string_view name;
  bool optional;
};

std::vector<Parameter> parameters_of(std::string_view list) {
  std::vector<Parameter> parameters;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    std::string_view name = list.substr(0, end);
    const bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    parameters.push_back({name, optional});
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parameters;
}

}  // namespace

bool Call::flag(size_t index, bool otherwise) const {
  return args[index] ? is_true(*args[index]) : otherwise;
}

int64_t Call::whole(size_t index, int64_t otherwise) const {
  if (args[index] == nullptr) return otherwise;
  if (args[index]->is_undefined()) runtime.fail_undefined(*args[index]);
  const std::optional<int64_t> number = args[index]->integer();
  if (!number) {
    runtime.fail("'", type_name(*args[index]), "' object cannot be interpreted as an integer");
  }
  return *number;
}

const BuiltinRow* find_row(std::span<const BuiltinRow> rows, std::string_view name) {
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), name,
                       [](const BuiltinRow& row, std::string_view key) { return row.name < key; });
  return found != rows.end() && found->name == name ? &*found : nullptr;
}

Value call_row(Runtime& runtime, const BuiltinRow& row, std::string_view kind, const Value& self,
               const Arguments& arguments) {
  runtime.spend();
  if (row.run == nullptr) runtime.fail("the ", kind, " '", row.name, "' is not supported");
  Call call{runtime, self, arguments, {}};
  if (row.parameters == "*") return row.run(call);
  const std::vector<Parameter> parameters = parameters_of(row.parameters);
  const size_t given = arguments.positional.size();
  if (given > parameters.size()) {
    runtime.fail("the ", kind, " '", row.name, "' takes at most ",
                 count_of(parameters.size(), "argument"), ", ", given, " given");
  }
  call.args.resize(parameters.size(), nullptr);
  for (size_t i = 0; i < given; ++i) call.args[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::find_if(parameters.begin(), parameters.end(),
                                 [&](const Parameter& each) { return each.name == name; });
    const auto index = static_cast<size_t>(at - parameters.begin());
    if (at == parameters.end() || call.args[index] != nullptr) {
      runtime.fail("the ", kind, " '", row.name, "' takes no ",
                   at == parameters.end() ? "" : "second ", "argument '", name, "'");
    }
    call.args[index] = &value;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (call.args[i] != nullptr || parameters[i].optional) continue;
    runtime.fail("the ", kind, " '", row.name, "' needs an argument '", parameters[i].name, "'");
  }
  return row.run(call);
}

}  // namespace fp8kv::jinja
