// What the pages of this room have in common: their head, their sections and lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/scales.h"

namespace fp8kv {

// Tables with a row for every layer are unfolded up to here.
inline constexpr int64_t kFewLayers = 8;

struct PageHead {
  std::string kind;          // "What the FP8 KV cache costs"
  std::string name;          // of the model
  std::string date;          // "2026-11-22", or ""
  std::string tool_version;  // or ""
};
std::string page_head(const PageHead& head);

// The first lines of a page, the first of them the headline. `css_class` is "good", "unsure" or
// "bad"; lines are plain.
std::string verdict_box(const std::string& css_class, const std::vector<std::string>& lines);

// A section with its heading; "" without content, which is markup here and below.
std::string section(const char* id, const char* heading, const std::string& content);

// What opens by a click; "" without content.
std::string folded(const char* summary, const std::string& content, bool open);

// A paragraph of plain text.
std::string paragraph(const std::string& text);

// Commands to copy, one a line.
std::string command_box(const std::vector<std::string>& commands);

// Adds a name and what it stands for to the items of a list; nothing without text.
void add_item(std::string& list, const char* name, const std::string& text);
std::string definition_list(const std::string& items);

// "a.txt, 4,096 bytes, SHA-256 12ab; b.txt, ...".
std::string files_text(const std::vector<DataFile>& files);

// The last part of a path: "models/Llama-3/" is Llama-3.
std::string last_part(const std::string& path);

}  // namespace fp8kv
