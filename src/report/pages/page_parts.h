// The parts that this room's pages share: head, sections and lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/scales/scales.h"

namespace fp8kv {

// The most layers for which tables with a row per layer start unfolded.
inline constexpr int64_t kFewLayers = 8;

struct PageHead {
  std::string kind;          // "What the FP8 KV cache costs"
  std::string name;          // of the model
  std::string date;          // "2026-11-22", or ""
  std::string tool_version;  // or ""
};
std::string page_head(const PageHead& head);

// The first lines of a page; the first one is the headline. `css_class` is "good", "unsure" or
// "bad". Lines are plain text.
std::string verdict_box(const std::string& css_class, const std::vector<std::string>& lines);

// A section with its heading; "" without content. `content` is markup, here and below.
std::string section(const char* id, const char* heading, const std::string& content);

// Content that opens with a click; "" without content.
std::string folded(const char* summary, const std::string& content, bool open);

// A paragraph of plain text.
std::string paragraph(const std::string& text);

// Commands to copy, one per line.
std::string command_box(const std::vector<std::string>& commands);

// Adds a name with its text to the items of a list; adds nothing if the text is "".
void add_item(std::string& list, const char* name, const std::string& text);
std::string definition_list(const std::string& items);

// "a.txt, 4,096 bytes, SHA-256 12ab; b.txt, ...".
std::string files_text(const std::vector<DataFile>& files);

// The last part of a path: "models/Llama-3/" is Llama-3.
std::string last_part(const std::string& path);

}  // namespace fp8kv
