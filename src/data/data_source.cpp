#include "data/data_source.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "data/files/data_kind.h"
#include "data/read_ahead.h"
#include "files/file.h"
#include "files/lfs_pointer.h"
#include "json/json.h"
#include "unpack/unpacker.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr size_t kDigestedAtOnce = size_t(1) << 20;  // bytes between two checks for an interrupt
constexpr size_t kUnpackedAtOnce = size_t(1) << 20;
constexpr size_t kUnpackedAhead = size_t(4) << 20;

// Maps regular files. Reads standard input, pipes and files of unknown size, as in /proc, as a
// whole.
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

// The command that converts Arrow data into a file that fp8kv can read.
std::string arrow_help(const fs::path& path, bool is_stream) {
  const std::string name = path == "-" ? "FILE.arrow" : plain(path.string());
  return cat(
      "convert it: python3 -c \"import pyarrow as a, pyarrow.parquet as p; p.write_table(a.",
      is_stream ? "ipc.open_stream" : "ipc.open_file", "('", name, "').read_all(), '",
      plain(path == "-" ? "FILE.parquet" : fs::path(path).replace_extension(".parquet").string()),
      "')\"");
}

// Parquet files with encrypted metadata begin with "PARE"; the Parquet reader refuses them.
bool is_parquet(const DataSource& source) {
  return source.text.starts_with("PAR1") || source.text.starts_with("PARE");
}

// Refuses files that look like data only by their name.
void refuse_foreign(const DataSource& source, const fs::path& path) {
  refuse_lfs_pointer(source.text, source.label);
  const bool arrow_file = source.text.starts_with("ARROW1");
  if (arrow_file || (data_kind(path) == DataKind::arrow && source.text.size() > 0)) {
    throw Error(cat(source.label, ": is Arrow data, expected text, JSON, CSV or Parquet"),
                arrow_help(path, !arrow_file));
  }
  if (data_kind(path) == DataKind::parquet && !is_parquet(source) && !source.text.empty()) {
    throw Error(cat(source.label, ": is no Parquet file, which begins with PAR1"),
                "fetch or write it again, or give it the suffix of what it is");
  }
  if (source.text.starts_with("\xFF\xFE")) {
    throw Error(cat(source.label, ": is UTF-16 text, expected text, JSON, CSV or Parquet"),
                "convert it: iconv -f UTF-16 -t UTF-8 FILE");
  }
  const PackedForm* const packed = packed_form(source.text);
  if (packed && packed->packing == Packing::none) {
    throw Error(cat(source.label, ": is ", packed->name,
                    ", expected gzip or Zstandard, or what is not packed"),
                std::string(packed->help));
  }
}

// Checks the encoding of an unpacked text, and digests the whole file, whichever part is used
// later.
std::string checked_digest(const DataSource& source) {
  const bool is_text = source.packing == Packing::none && source.layout != DataLayout::parquet;
  Sha256 digest;
  for (size_t at = 0; at < source.text.size();) {
    check_interrupt();
    size_t end = std::min(at + kDigestedAtOnce, source.text.size());
    // Steps back over at most three continuation bytes, so that no character is split.
    for (int i = 0;
         is_text && i < 3 && end < source.text.size() && (source.text[end] & 0xC0) == 0x80; ++i) {
      --end;
    }
    const std::string_view block = source.text.substr(at, end - at);
    if (size_t bad = 0; is_text && !is_utf8(block, &bad)) {
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

// Skips white space. Returns false if the rest of the text is blank.
bool skip_blank(TextStream& text) {
  for (;;) {
    const std::string_view next = text.peek(1);
    const size_t blank = skip_space(next, 0);
    const bool found = blank < next.size();
    if (next.empty()) return false;
    text.skip(blank);
    if (found) return true;
    check_interrupt();
  }
}

bool begins_like_json(std::string_view text) {
  const size_t first = skip_space(text, 0);
  const size_t second = skip_space(text, first + 1);
  if (second >= text.size()) return false;
  return (text[first] == '{' && (text[second] == '"' || text[second] == '}')) ||
         (text[first] == '[' && (text[second] == '{' || text[second] == ']'));
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

// Chooses the layout by the name, and by the first bytes. REQUIRES `text` to begin with a non-space
// character.
DataLayout layout_of(TextStream& text, DataKind kind) {
  if (kind == DataKind::csv) return DataLayout::csv;
  if (kind == DataKind::tsv) return DataLayout::tsv;
  const bool lines_by_name = kind == DataKind::json_lines;
  const bool json_by_name = lines_by_name || kind == DataKind::json;
  const std::string_view begin = text.peek(2);
  if (kind == DataKind::text || (!json_by_name && !begins_like_json(begin))) {
    return DataLayout::text;
  }
  if (begin[0] == '[') return DataLayout::json_array;
  if (lines_by_name || is_whole_json(*text.line())) return DataLayout::json_lines;
  return DataLayout::json_record;
}

std::string digest_of_ends(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes.substr(0, kDigestedAtOnce));
  digest.add(bytes.substr(bytes.size() - std::min(bytes.size(), kDigestedAtOnce)));
  return digest.hex();
}

// Fills in what is known of the file: its packing, layout, size and digest.
void check_and_digest(DataSource& source, const fs::path& path, bool whole) {
  refuse_foreign(source, path);
  if (const PackedForm* packed = packed_form(source.text)) source.packing = packed->packing;
  if (is_parquet(source)) source.layout = DataLayout::parquet;
  source.file = {utf8_name(path.filename().string()), source.text.size(),
                 whole ? checked_digest(source) : digest_of_ends(source.text)};
  if (source.layout == DataLayout::parquet) return;
  with_context(source.label, [&] {
    TextStream text = source.open_text();
    if (!skip_blank(text)) fail("is empty");
    source.layout = layout_of(text, data_kind(path));
  });
  if (source.layout == DataLayout::text && !source.column.empty()) {
    throw Error(cat(source.label, ": is plain text, which has no column ", quote(source.column)),
                "leave out --column, or name a file with records");
  }
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
      return "a JSON record";
    case DataLayout::csv:
      return "CSV";
    case DataLayout::tsv:
      return "TSV";
    case DataLayout::parquet:
      break;
  }
  return "Parquet";
}

TextStream DataSource::open_text(TextStream::Where where) const {
  if (packing == Packing::none) {
    return TextStream(text.substr(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0));
  }
  const auto unpacker = std::make_shared<Unpacker>(packing, text);
  return TextStream([unpacker](std::string& out) { return unpacker->more(out, kUnpackedAtOnce); },
                    std::move(where));
}

TextStream DataSource::open_text_ahead(TextStream::Where where) const {
  if (packing == Packing::none) return open_text(std::move(where));
  const auto unpack = [packing = packing, packed = text](const ReadAhead<std::string>::Put& put) {
    Unpacker unpacker(packing, packed);
    for (std::string part; unpacker.more(part, kUnpackedAtOnce); part.clear()) {
      const size_t bytes = part.size();
      if (!put(std::move(part), bytes)) return;
    }
  };
  std::shared_ptr<ReadAhead<std::string>> ahead;
  try {
    ahead = std::make_shared<ReadAhead<std::string>>(kUnpackedAhead, unpack);
  } catch (const std::system_error&) {
    return open_text(std::move(where));  // no thread could be started
  }
  return TextStream(
      [ahead](std::string& out) {
        const std::optional<std::string> part = ahead->next();
        if (part) out += *part;
        return part.has_value();
      },
      std::move(where));
}

namespace {

DataSource open_checked(const fs::path& path, const std::string& column, bool whole) {
  DataSource source = open_bytes(path);
  source.column = column;
  with_unchanged(source, [&] { check_and_digest(source, path, whole); });
  return source;
}

}  // namespace

DataSource open_data(const fs::path& path, const std::string& column) {
  return open_checked(path, column, true);
}

DataSource open_data_for_parts(const fs::path& path, const std::string& column) {
  return open_checked(path, column, false);
}

}  // namespace fp8kv
