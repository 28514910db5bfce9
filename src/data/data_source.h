// One file of calibration data: its bytes, checked and digested, and their layout. Reads no records
// and knows nothing of tokens.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/scales/scales.h"
#include "data/text_stream.h"
#include "files/file.h"
#include "unpack/packing.h"

namespace fp8kv {

enum class DataLayout { text, json_lines, json_array, json_record, csv, tsv, parquet };

// "plain text", "JSON lines", ...
std::string data_layout_name(DataLayout layout);

struct DataSource {
  std::string label;  // for messages: the quoted path, or "standard input"
  DataFile file;      // digest of all bytes, whichever part is used later
  DataLayout layout = DataLayout::text;
  Packing packing = Packing::none;
  std::string_view text;  // the file's bytes, packed or not; valid while keep_alive lives
  std::shared_ptr<const void> keep_alive;
  std::optional<MappedFile> mapped;  // absent if the file was read as a whole
  std::string column;                // the field to take from records; "": by their form

  // Opens the text from its beginning, unpacked. This object must outlive it. TextStream explains
  // `where`.
  TextStream open_text(TextStream::Where where = {}) const;
  // Opens the same text, but another thread unpacks some of it ahead.
  TextStream open_text_ahead(TextStream::Where where = {}) const;

  // Throws "'FILE': changed while it was read" if the mapped file changed.
  void check_unchanged() const {
    if (mapped) mapped->check_unchanged();
  }
};

// Opens `path`, or standard input for "-". The bytes decide whether the file is packed, and whether
// it is a Parquet file.
//
// The name without .gz or .zst decides for .jsonl and .ndjson (JSON lines), .json (JSON), .csv,
// .tsv and .txt (text). Any other file is JSON if it begins like an object or an array of objects,
// {" or [{, and text if not. JSON without a name for lines is an array if it begins with [. It is
// lines if its first line is a complete value, else a single record.
//
// Throws for files that cannot be read, are empty or of another kind, and for text that is not
// UTF-8 (with the offset). Packed text is checked only when it is read. Throws for a `column` of a
// plain text.
DataSource open_data(const std::filesystem::path& path, const std::string& column = "");

// Opens a large file of which only parts are read. The digest covers its first and last MiB, and
// its encoding is not checked.
DataSource open_data_for_parts(const std::filesystem::path& path, const std::string& column = "");

}  // namespace fp8kv
