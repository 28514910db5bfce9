#include "about/man_page.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "base/text.h"

namespace fp8kv {
namespace {

// Escapes `text` for roff: no line is a request, backslashes stay, and hyphens can be copied.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool begins_line = out.empty() || out.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else {
      out += c;
    }
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string head(const std::string& page) {
  return cat(".TH ", roff(upper(page)), " 1 \"\" \"fp8kv ", FP8KV_VERSION, "\" \"fp8kv\"\n");
}

// One entry of a list: a term, and the text about it.
std::string item(const std::string& left, const std::string& text) {
  return cat(".TP\n", left, "\n", roff(text), "\n");
}

std::string bold(const std::string& text) {
  return cat("\\fB", roff(text), "\\fR");
}

std::string left_of(const ArgumentRow& row) {
  std::string names;
  for (const std::string& name : {row.short_name, row.long_name}) {
    if (!name.empty()) names += (names.empty() ? "" : ", ") + bold(name);
  }
  const std::string value = row.metavar.empty() ? "" : cat("\\fI", roff(row.metavar), "\\fR");
  return names + (names.empty() || value.empty() ? "" : " ") + value;
}

std::string items(const std::string& title, const std::vector<ArgumentRow>& rows) {
  if (rows.empty()) return "";
  std::string text = cat(".SH ", title, "\n");
  for (const ArgumentRow& row : rows) text += item(left_of(row), row.text);
  return text;
}

// Formats the indented lines of a footer, from `at` on. A line is either an example to copy or a
// row of a table. In a row the text follows two blanks, and may continue on lines below.
std::string indented_part(const std::vector<std::string>& lines, size_t& at) {
  std::string text;
  bool copied = false;
  for (; at < lines.size() && lines[at].starts_with("  "); ++at) {
    std::string line = lines[at].substr(2);
    while (at + 1 < lines.size() && lines[at + 1].starts_with("   ")) {
      ++at;
      line += cat(line.find("  ") == line.npos ? "  " : " ",
                  lines[at].substr(lines[at].find_first_not_of(' ')));
    }
    const size_t gap = line.find("  ");
    const bool is_row = gap != line.npos;
    if (is_row && copied) text += ".fi\n";
    if (!is_row && !copied) text += cat(text.empty() ? "" : ".PP\n", ".nf\n");
    copied = !is_row;
    const size_t begin = is_row ? line.find_first_not_of(' ', gap) : 0;
    text += is_row ? item(bold(line.substr(0, gap)), line.substr(begin)) : roff(line) + "\n";
  }
  return text + (copied ? ".fi\n" : "");
}

// The head of a section from "Forms that are read (what follows ...)". The text in brackets becomes
// a sentence below it.
std::string section_head(const std::string& title) {
  const size_t bracket = title.find(" (");
  const std::string head = cat(".SH ", roff(upper(title.substr(0, bracket))), "\n");
  return bracket == title.npos ? head : cat(head, roff(title.substr(bracket + 1)), "\n");
}

// Formats the footer of a help text. "Title:" with indented lines becomes a section, other
// sentences become NOTES.
std::string footer(const std::string& help) {
  std::istringstream in(help);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::string sections, notes;
  for (size_t at = 0; at < lines.size();) {
    const std::string& line = lines[at++];
    if (line.ends_with(":") && at < lines.size() && lines[at].starts_with("  ")) {
      sections += section_head(line.substr(0, line.size() - 1)) + indented_part(lines, at);
    } else if (line.empty()) {
      if (!notes.empty() && !notes.ends_with(".PP\n")) notes += ".PP\n";
    } else {
      notes += roff(line) + "\n";
    }
  }
  return sections + (notes.empty() ? "" : ".SH NOTES\n" + notes);
}

}  // namespace

std::string program_page(const CommandTable& table) {
  const CommandRow& program = table.program;
  std::string text = cat(head("fp8kv"), ".SH NAME\nfp8kv \\- ", roff(program.summary),
                         "\n.SH SYNOPSIS\n", roff(program.usage), "\n.SH COMMANDS\n");
  std::string others;
  for (const CommandRow& command : table.commands) {
    const std::string name =
        command.hidden ? bold(command.usage.substr(program.name.size() + 1)) : bold(command.name);
    text += item(name, command.summary);
    if (!command.hidden) {
      others += cat(others.empty() ? "" : ",\n", ".BR fp8kv\\-", command.name, " (1)");
    }
  }
  return text + items("OPTIONS", program.flags) + footer(program.footer) + ".SH SEE ALSO\n" +
         others + "\n";
}

std::string command_page(const CommandRow& command) {
  const std::string page = "fp8kv-" + command.name;
  return cat(head(page), ".SH NAME\n", roff(page), " \\- ", roff(command.summary),
             "\n.SH SYNOPSIS\n", roff(command.usage), "\n", items("ARGUMENTS", command.arguments),
             items("OPTIONS", command.flags), footer(command.footer),
             ".SH SEE ALSO\n.BR fp8kv (1)\n");
}

}  // namespace fp8kv
