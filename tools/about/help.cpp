#include "about/help.h"

#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>

#include "base/text.h"

namespace fp8kv {
namespace {

constexpr size_t kWidth = 80;
constexpr char kGlue = '\x1F';  // a blank where no line breaks

struct Row {
  std::string left;
  std::string text;
};

// Breaks `text` at blanks into lines of at most `kWidth` columns, indented to `indent`. The first
// line starts at column `used`.
std::string wrapped(const std::string& text, size_t indent, size_t used) {
  std::string out = std::string(used < indent ? indent - used : 0, ' ');
  size_t column = indent;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::replace(word.begin(), word.end(), kGlue, ' ');
    const bool first = column == indent;
    if (!first && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ') + word;
      column = indent + word.size();
    } else {
      out += (first ? "" : " ") + word;
      column += (first ? 0 : 1) + word.size();
    }
  }
  return out + "\n";
}

std::string section(const std::string& title, const std::vector<Row>& rows) {
  constexpr size_t kWidestLeft = 30;  // a longer left side has its text on the next line
  if (rows.empty()) return "";
  size_t widest = 0;
  for (const Row& row : rows) {
    if (row.left.size() <= kWidestLeft) widest = std::max(widest, row.left.size());
  }
  std::string out = "\n" + title + ":\n";
  for (const Row& row : rows) {
    const size_t indent = 2 + widest + 2;
    const bool fits = row.left.size() <= widest;
    out += "  " + row.left + (fits ? "" : "\n") +
           wrapped(row.text, indent, fits ? 2 + row.left.size() : 0);
  }
  return out;
}

bool is_flag(const CLI::Option& option) {
  return option.get_items_expected_max() == 0;
}

std::string metavar(const CLI::Option& option) {
  return is_flag(option) ? "" : option.get_type_name();
}

// "-o, --out FILE". Long names line up under one another.
std::string left_of(const CLI::Option& option) {
  if (option.nonpositional()) {
    const auto& short_names = option.get_snames();
    return (short_names.empty() ? "    " : "-" + short_names[0] + ", ") + spelling(option);
  }
  return spelling(option);
}

// Keeps "[default: X]" on one line.
std::string unbroken_default(std::string text) {
  const size_t at = text.rfind(" [default: ");
  if (at != text.npos) text[text.find(' ', at + 1)] = kGlue;
  return text;
}

}  // namespace

std::string spelling(const CLI::Option& option) {
  if (!option.nonpositional()) return metavar(option);
  const std::string name =
      option.get_lnames().empty() ? "-" + option.get_snames()[0] : "--" + option.get_lnames()[0];
  return is_flag(option) ? name : cat(name, " ", metavar(option));
}

std::string option_text(const CLI::Option& option) {
  const std::string& otherwise = option.get_default_str();
  if (is_flag(option) || otherwise.empty()) return option.get_description();
  return cat(option.get_description(), " [default: ", otherwise, "]");
}

std::string usage_line(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "fp8kv COMMAND [OPTIONS]";
  std::string line = cat("fp8kv ", app.get_name());
  std::string optional;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required()) {
      line += " " + spelling(*option);
    } else if (option->get_positional()) {
      optional += cat(" [", spelling(*option), "]");
    }
  }
  return line + optional + " [OPTIONS]";
}

void hide(CLI::App& command) {
  command.group("");
}

bool is_hidden(const CLI::App& command) {
  return command.get_group().empty();
}

std::string help_text(const CLI::App& app) {
  std::vector<Row> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!is_hidden(*command)) commands.push_back({command->get_name(), command->get_description()});
  }
  std::vector<Row> arguments;
  std::vector<Row> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option == app.get_help_ptr()) continue;
    (option->nonpositional() ? options : arguments)
        .push_back({left_of(*option), unbroken_default(option_text(*option))});
  }
  options.push_back({left_of(*app.get_help_ptr()), kHelpText});
  return cat("Usage: ", usage_line(app), "\n\n") + wrapped(app.get_description(), 0, 0) +
         section("Commands", commands) + section("Arguments", arguments) +
         section("Options", options) + app.get_footer();
}

void set_examples(CLI::App& app, const std::vector<std::string>& lines) {
  std::string text = "\nExamples:\n";
  for (const std::string& line : lines) text += cat("  ", line, "\n");
  app.footer(text);
}

void add_help_table(CLI::App& app, const std::string& title,
                    const std::vector<std::pair<std::string, std::string>>& rows) {
  std::vector<Row> table;
  for (const auto& [name, text] : rows) table.push_back({name, text});
  app.footer(section(title, table) + app.get_footer());
}

}  // namespace fp8kv
