#include "about/completions.h"
#include "base/text.h"

namespace fp8kv {
namespace {

constexpr const char* kFishHead =
    R"(# Completions of fp8kv for fish, made by 'fp8kv completions fish'.
function __fp8kv_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and contains -- $words[2] $argv
end
function __fp8kv_begins
    test (count (commandline -opc)) -eq 1
end
complete -c fp8kv -f
)";

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// The flags of fish's `complete` for a value: -F offers files, -x takes a value and offers no file.
std::string fish_value(const ArgumentRow& row) {
  switch (row.kind) {
    case ValueKind::none:
      return "";
    case ValueKind::path:
      return " -r -F";
    case ValueKind::words:
      return " -x -a " + quoted(with_blanks(row.words));
    case ValueKind::list:
      return " -x -a " + quoted(cat("(__fish_append , ", with_blanks(row.words), ")"));
    case ValueKind::other:
      break;
  }
  return " -x";
}

std::string fish_flag(const std::string& where, const ArgumentRow& flag) {
  const std::string short_name =
      flag.short_name.empty() ? "" : cat(" -s ", flag.short_name.substr(1));
  return cat("complete -c fp8kv -n ", where, short_name, " -l ", flag.long_name.substr(2),
             fish_value(flag), " -d ", quoted(first_clause(flag.text)), "\n");
}

std::string fish_argument(const std::string& where, const ArgumentRow& argument) {
  if (argument.kind == ValueKind::path) return cat("complete -c fp8kv -n ", where, " -F\n");
  if (argument.kind != ValueKind::words) return "";
  return cat("complete -c fp8kv -n ", where, " -a ", quoted(with_blanks(argument.words)), "\n");
}

}  // namespace

std::string fish_completions(const CommandTable& table) {
  std::string text = kFishHead;
  for (const ArgumentRow& flag : table.program.flags) text += fish_flag("__fp8kv_begins", flag);
  for (const CommandRow& command : table.commands) {
    text += cat("complete -c fp8kv -n __fp8kv_begins -a ", command.name, " -d ",
                quoted(command.summary), "\n");
  }
  for (const CommandRow& command : table.commands) {
    const std::string where = quoted("__fp8kv_is " + command.name);
    for (const ArgumentRow& argument : command.arguments) text += fish_argument(where, argument);
    for (const ArgumentRow& flag : command.flags) text += fish_flag(where, flag);
  }
  return text;
}

}  // namespace fp8kv
