#include "about/completions.h"
#include "base/text.h"

namespace fp8kv {
namespace {

// Escapes text inside single quotes, where _arguments and _describe interpret brackets and colons.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// The value of a flag for _arguments: ":FILE:_files".
std::string zsh_value(const ArgumentRow& row) {
  const std::string name = cat(":", zsh_text(row.metavar), ":");
  switch (row.kind) {
    case ValueKind::none:
      return "";
    case ValueKind::path:
      return name + "_files";
    case ValueKind::words:
      return cat(name, "(", with_blanks(row.words), ")");
    case ValueKind::list:
      return cat(name, "{_values -s , value ", with_blanks(row.words), "}");
    case ValueKind::other:
      break;
  }
  return name + " ";
}

std::string flag_spec(const ArgumentRow& flag) {
  const bool takes_value = flag.kind != ValueKind::none;
  const std::string about = cat("[", zsh_text(first_clause(flag.text)), "]", zsh_value(flag), "'");
  const std::string long_name = flag.long_name + (takes_value ? "=" : "");
  const std::string again = flag.repeats ? "*" : "";
  if (flag.short_name.empty()) return cat("'", again, long_name, about);
  const std::string short_name = flag.short_name + (takes_value ? "+" : "");
  const std::string once = cat("(", flag.short_name, " ", flag.long_name, ")");
  return cat("'", flag.repeats ? again : once, "'{", short_name, ",", long_name, "}'", about);
}

std::string arguments_of(const CommandRow& command) {
  std::string text = cat("        ", command.name, ")\n          _arguments -s");
  for (const ArgumentRow& flag : command.flags) text += " \\\n            " + flag_spec(flag);
  for (const ArgumentRow& argument : command.arguments) {
    text += cat(" \\\n            '", argument.repeats ? "*" : "", zsh_value(argument), "'");
  }
  return text + " && ret=0\n          ;;\n";
}

}  // namespace

std::string zsh_completions(const CommandTable& table) {
  std::string text =
      "#compdef fp8kv\n# Completions of fp8kv for zsh, made by 'fp8kv completions zsh'.\n"
      "_fp8kv() {\n  local curcontext=$curcontext state line ret=1\n  local -A opt_args\n"
      "  local -a commands=(\n";
  for (const CommandRow& command : table.commands) {
    text += cat("    '", command.name, ":", zsh_text(command.summary), "'\n");
  }
  text += "  )\n  _arguments -C";
  for (const ArgumentRow& flag : table.program.flags) text += " \\\n    " + flag_spec(flag);
  text +=
      " \\\n    '1: :->command' '*:: :->arguments' && ret=0\n  case $state in\n    command) "
      "_describe -t commands command commands && ret=0 ;;\n    arguments)\n      case $words[1] "
      "in\n";
  for (const CommandRow& command : table.commands) text += arguments_of(command);
  return text +
         "      esac\n      ;;\n  esac\n  return ret\n}\n"
         "# Called by the completion system that has loaded this file, or else sourced.\n"
         "if [[ $funcstack[1] == _fp8kv ]]; then _fp8kv \"$@\"; else compdef _fp8kv fp8kv; fi\n";
}

}  // namespace fp8kv
