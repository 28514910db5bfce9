#include "about/completions.h"
#include "base/text.h"

namespace fp8kv {
namespace {

// The script up to the rows of commands. Bash splits "--out=a" into three words.
constexpr const char* kBashHead =
    R"(# Completions of fp8kv for bash, made by 'fp8kv completions bash'.
_fp8kv() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  local words='' kind='' before=''
  COMPREPLY=()
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if ((COMP_CWORD == 1)); then command=''; fi
  case "$command $prev" in
)";

constexpr const char* kBashTail = R"(  esac
  if [[ $kind == list && $cur == *,* ]]; then
    before=${cur%,*},
    cur=${cur##*,}
  fi
  if [[ $kind == path ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  elif [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "$cur")
  fi
}
complete -F _fp8kv fp8kv
)";

std::string assignment(const ArgumentRow& row) {
  if (row.kind == ValueKind::path) return "kind=path";
  const std::string words = cat("words='", with_blanks(row.words), "'");
  if (row.kind == ValueKind::list) return "kind=list " + words;
  return row.kind == ValueKind::words ? words : ":";
}

std::vector<std::string> names_of(const ArgumentRow& row) {
  std::vector<std::string> names;
  for (const std::string& name : {row.long_name, row.short_name}) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> flag_names(const CommandRow& command) {
  std::vector<std::string> names;
  for (const ArgumentRow& flag : command.flags) {
    for (const std::string& name : names_of(flag)) names.push_back(name);
  }
  return names;
}

// The case for words that are not the value of a flag. After a dash it offers flags, else the
// values of the first argument that has some. A flag that takes several files may be followed by
// more.
std::string otherwise(const CommandRow& command) {
  std::string offer;
  for (const ArgumentRow& row : command.arguments) {
    if (offer.empty() && assignment(row) != ":") offer = assignment(row);
  }
  return cat("    \"", command.name, " \"*)\n      if [[ $cur == -* ]]; then\n        words='",
             with_blanks(flag_names(command)), "'\n      else\n        ",
             offer.empty() ? ":" : offer, "\n      fi\n      ;;\n");
}

std::string cases_of(const CommandRow& command) {
  std::string text;
  for (const ArgumentRow& flag : command.flags) {
    if (flag.kind == ValueKind::none) continue;
    std::string patterns;
    for (const std::string& name : names_of(flag)) {
      patterns += cat(patterns.empty() ? "" : " | ", "\"", command.name, " ", name, "\"");
    }
    text += cat("    ", patterns, ") ", assignment(flag), " ;;\n");
  }
  return text + otherwise(command);
}

}  // namespace

std::string bash_completions(const CommandTable& table) {
  std::vector<std::string> first;
  for (const CommandRow& command : table.commands) first.push_back(command.name);
  for (const std::string& name : flag_names(table.program)) first.push_back(name);
  std::string text = cat(kBashHead, "    \" \"*) words='", with_blanks(first), "' ;;\n");
  for (const CommandRow& command : table.commands) text += cases_of(command);
  return text + kBashTail;
}

}  // namespace fp8kv
