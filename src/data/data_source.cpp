#include "data/data_source.h"

#include <algorithm>
#include <cctype>

#include "base/digest.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "files/file.h"
#include "files/lfs_pointer.h"
#include "json/json.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr size_t kDigestedAtOnce = size_t(1) << 20;  // between two looks for an interrupt
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string extension_of(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

// Regular files are mapped; standard input, pipes and what the system only claims to be an empty
// file, as in /proc, are read whole.
DataSource open_bytes(const fs::path& path) {
  DataSource source;
  source.label = path == "-" ? "standard input" : quote(path.string());
  if (path != "-" && fs::is_regular_file(path) && fs::file_size(path) > 0) {
    const MappedFile& file = source.mapped.emplace(MappedFile::open(path));
    source.keep_alive = file.keep_alive();
    source.text = {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  } else {
    const auto bytes = std::make_shared<const std::string>(read_text(path));
    source.text = *bytes;
    source.keep_alive = bytes;
  }
  return source;
}

// Files people have that look like data by their name only.
void refuse_packed(const DataSource& source) {
  refuse_lfs_pointer(source.text, source.label);
  const struct {
    std::string_view magic;
    const char* what;
    const char* help;
  } formats[] = {
      {"\x1F\x8B", "gzip data", "unpack it, into a pipe if you like: gzip -dc FILE"},
      {"\x28\xB5\x2F\xFD", "Zstandard data", "unpack it, into a pipe if you like: zstd -dc FILE"},
      {"PAR1", "a Parquet file", "write it as JSON lines with a 'text' or 'messages' field"},
      {"\xFF\xFE", "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE"},
  };
  for (const auto& format : formats) {
    if (!source.text.starts_with(format.magic)) continue;
    throw Error(cat(source.label, ": is ", format.what, ", expected text or JSON"), format.help);
  }
}

// Checks the encoding and digests the whole file, whatever part of it is used later.
std::string checked_digest(const DataSource& source) {
  Sha256 digest;
  for (size_t at = 0; at < source.text.size();) {
    check_interrupt();
    size_t end = std::min(at + kDigestedAtOnce, source.text.size());
    // Not within a character: back over at most three continuation bytes.
    for (int i = 0; i < 3 && end < source.text.size() && (source.text[end] & 0xC0) == 0x80; ++i) {
      --end;
    }
    const std::string_view block = source.text.substr(at, end - at);
    if (size_t bad = 0; !is_utf8(block, &bad)) {
      const std::string_view before = source.text.substr(0, at + bad);
      throw Error(cat(source.label, ": not valid UTF-8 at byte ", before.size(), ", line ",
                      std::count(before.begin(), before.end(), '\n') + 1),
                  "convert it, for instance with: iconv -f LATIN1 -t UTF-8 FILE");
    }
    digest.add(block);
    at = end;
  }
  return digest.hex();
}

size_t skip_space(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

bool is_blank(std::string_view text) {
  return skip_space(text, 0) == text.size();
}

bool begins_like_json(std::string_view text) {
  const size_t first = skip_space(text, 0);
  const size_t second = skip_space(text, first + 1);
  if (second >= text.size()) return false;
  return (text[first] == '{' && (text[second] == '"' || text[second] == '}')) ||
         (text[first] == '[' && (text[second] == '{' || text[second] == ']'));
}

// The first line that is not blank.
std::string_view first_line(std::string_view text) {
  const size_t begin = skip_space(text, 0);
  return text.substr(begin, text.find('\n', begin) - begin);
}

bool is_whole_json(std::string_view text) {
  try {
    Json::parse(text, "");
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    return false;
  }
}

DataLayout layout_of(std::string_view text, const std::string& extension) {
  const bool lines_by_name = extension == ".jsonl" || extension == ".ndjson";
  const bool json_by_name = lines_by_name || extension == ".json";
  if (extension == ".txt" || (!json_by_name && !begins_like_json(text))) return DataLayout::text;
  if (text[skip_space(text, 0)] == '[') return DataLayout::json_array;
  if (lines_by_name || is_whole_json(first_line(text))) return DataLayout::json_lines;
  return DataLayout::json_record;
}

// What is known of the whole file.
void check_and_digest(DataSource& source, const fs::path& path) {
  refuse_packed(source);
  source.file = {utf8_name(path.filename().string()), source.text.size(), checked_digest(source)};
  if (source.text.starts_with(kByteOrderMark)) source.text.remove_prefix(kByteOrderMark.size());
  if (is_blank(source.text)) fail(source.label, ": is empty");
  source.layout = layout_of(source.text, extension_of(path));
}

}  // namespace

std::string data_layout_name(DataLayout layout) {
  switch (layout) {
    case DataLayout::text:
      return "plain text";
    case DataLayout::json_lines:
      return "JSON lines";
    case DataLayout::json_array:
      return "a JSON array";
    case DataLayout::json_record:
      break;
  }
  return "a JSON record";
}

DataSource open_data(const fs::path& path) {
  DataSource source = open_bytes(path);
  with_unchanged(source, [&] { check_and_digest(source, path); });
  return source;
}

}  // namespace fp8kv
