#include "report/pages/page_parts.h"

#include <filesystem>

#include "base/text.h"
#include "draw/html.h"

namespace fp8kv {
namespace {

// Keeps a percent sign on the same line as its number.
std::string unbroken(std::string text) {
  for (size_t at = text.find(" %"); at != text.npos; at = text.find(" %", at)) {
    text.replace(at, 1, "&nbsp;");
  }
  return text;
}

// "2026-11-22, fp8kv 1.2.3".
std::string made_line(const PageHead& head) {
  std::string line = head.date;
  if (!head.tool_version.empty()) {
    line += cat(line.empty() ? "" : ", ", "fp8kv ", head.tool_version);
  }
  return line.empty() ? "" : element("p", "class=\"note\"", escape_html(line)) + "\n";
}

}  // namespace

std::string page_head(const PageHead& head) {
  return element("p", "class=\"kind\"", escape_html(head.kind)) + "\n" +
         element("h1", "", escape_html(head.name)) + "\n" + made_line(head);
}

std::string verdict_box(const std::string& css_class, const std::vector<std::string>& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    text += element("p", i == 0 ? "class=\"first\"" : "", unbroken(escape_html(lines[i]))) + "\n";
  }
  return element("section", cat("class=\"verdict ", css_class, "\""), text) + "\n";
}

std::string section(const char* id, const char* heading, const std::string& content) {
  if (content.empty()) return "";
  return element("section", cat("aria-labelledby=\"", id, "\""),
                 cat("\n", element("h2", cat("id=\"", id, "\""), heading), "\n", content)) +
         "\n";
}

std::string folded(const char* summary, const std::string& content, bool open) {
  if (content.empty()) return "";
  return element("details", open ? "open" : "", element("summary", "", summary) + "\n" + content) +
         "\n";
}

std::string paragraph(const std::string& text) {
  return element("p", "", escape_html(text)) + "\n";
}

std::string command_box(const std::vector<std::string>& commands) {
  std::string lines;
  for (const std::string& each : commands) {
    lines += (lines.empty() ? "" : "\n") + element("code", "", escape_html(each));
  }
  return element("pre", "", lines) + "\n";
}

void add_item(std::string& list, const char* name, const std::string& text) {
  if (text.empty()) return;
  list += element("dt", "", name) + element("dd", "", escape_html(text)) + "\n";
}

std::string definition_list(const std::string& items) {
  return element("dl", "", "\n" + items) + "\n";
}

std::string files_text(const std::vector<DataFile>& files) {
  std::string text;
  for (const DataFile& file : files) {
    text += cat(text.empty() ? "" : "; ", file.name, ", ", grouped(file.bytes), " bytes, SHA-256 ",
                file.sha256);
  }
  return text;
}

std::string last_part(const std::string& path) {
  const std::filesystem::path full(path);
  const std::string name =
      full.has_filename() ? full.filename().string() : full.parent_path().filename().string();
  return name.empty() || name == "." || name == ".." ? path : name;
}

}  // namespace fp8kv
