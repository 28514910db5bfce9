// One file of calibration data: its bytes, checked and digested, and how they are laid out.
// Reads no records and knows nothing of tokens.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/scales.h"
#include "data/text_stream.h"
#include "files/file.h"
#include "unpack/packing.h"

namespace fp8kv {

enum class DataLayout { text, json_lines, json_array, json_record, csv, tsv, parquet };

// "plain text", "JSON lines", ...
std::string data_layout_name(DataLayout layout);

struct DataSource {
  std::string label;  // for messages: the quoted path, or "standard input"
  DataFile file;      // of all bytes, whatever part is used later
  DataLayout layout = DataLayout::text;
  Packing packing = Packing::none;
  std::string_view text;  // as it lies in the file, packed or not; valid while keep_alive lives
  std::shared_ptr<const void> keep_alive;
  std::optional<MappedFile> mapped;  // absent for what was read whole
  std::string column;                // the field of records that is taken; "": by their form

  // The text from its begin, unpacked. REQUIRES this to outlive it. See TextStream for `where`.
  TextStream open_text(TextStream::Where where = {}) const;
  // The same text, of which some is unpacked by another thread before it is asked for.
  TextStream open_text_ahead(TextStream::Where where = {}) const;

  // Throws "'FILE': changed while it was read" where that may be so.
  void check_unchanged() const {
    if (mapped) mapped->check_unchanged();
  }
};

// Opens `path`, or standard input for "-". What the bytes say decides whether the file is packed,
// and whether it is a Parquet file.
// The name, without .gz or .zst, decides for .jsonl and .ndjson (JSON lines), .json (JSON), .csv,
// .tsv and .txt (text); anything else is JSON when it begins like an object or an array of
// objects, {" or [{, else text. JSON that is not lines by name is an array when it begins with [,
// lines when its first line is a whole value, else a single record.
// Throws for what cannot be read, is empty, of another kind, or not UTF-8 (with the offset; what is
// packed is looked at where it is read), and for a `column` of a text.
DataSource open_data(const std::filesystem::path& path, const std::string& column = "");

// The same for a large file of which only parts are read: the digest is of its first and its last
// MiB, and its encoding is not checked.
DataSource open_data_for_parts(const std::filesystem::path& path, const std::string& column = "");

}  // namespace fp8kv
