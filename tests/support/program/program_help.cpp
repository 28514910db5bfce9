#include "support/program/program_help.h"

#include "docs/markdown.h"
#include "support/program/run_cli.h"

namespace fp8kv::test {

std::string stripped(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

void add_text(std::string& to, const std::string& text) {
  to += (to.empty() || text.empty() ? "" : " ") + text;
}

Help help_of(const std::vector<std::string>& arguments) {
  Help help;
  std::vector<std::vector<std::string>>* rows = nullptr;
  bool in_summary = false;
  for (const std::string& line : lines_of(run_cli(arguments).out)) {
    const size_t indent = line.find_first_not_of(' ');
    if (line.starts_with("Usage: ")) {
      help.usage = line.substr(7);
      in_summary = true;
    } else if (line == "Commands:" || line == "Arguments:" || line == "Options:") {
      rows = line == "Commands:" ? &help.commands : &help.arguments;
      in_summary = false;
    } else if (indent == 0) {
      if (in_summary) add_text(help.summary, line);
      if (!in_summary) rows = nullptr;
    } else if (rows && indent != line.npos) {
      const bool begins = indent == 2 || (indent == 6 && line.substr(6).starts_with("--"));
      const size_t gap = begins ? line.find("  ", indent) : indent;
      if (begins) rows->push_back({stripped(line.substr(0, gap)), ""});
      if (gap != line.npos) add_text(rows->back()[1], stripped(line.substr(gap)));
    }
  }
  return help;
}

const std::vector<std::pair<std::string, Help>>& commands() {
  static const std::vector<std::pair<std::string, Help>> kCommands = [] {
    std::vector<std::pair<std::string, Help>> found;
    for (const std::vector<std::string>& row : help_of({"--help"}).commands) {
      found.emplace_back(row[0], help_of({row[0], "--help"}));
    }
    return found;
  }();
  return kCommands;
}

std::set<std::string> flags_of(const Help& help) {
  std::set<std::string> flags;
  for (const std::vector<std::string>& row : help.arguments) {
    std::string word;
    for (const char c : row[0] + " ") {
      if (c != ' ' && c != ',') {
        word += c;
        continue;
      }
      if (word.size() > 1 && word[0] == '-') flags.insert(word);
      word.clear();
    }
  }
  return flags;
}

}  // namespace fp8kv::test
