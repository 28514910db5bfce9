// Reads the records of a data file, and the error for a file that cannot be read.
#pragma once

#include <string>
#include <vector>

#include "data/data_source.h"
#include "data/documents.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

// The records of a file. A text is one record; other records are JSON on one line.
inline std::vector<std::string> records_of(const std::filesystem::path& path,
                                           const std::string& column = "",
                                           size_t most = size_t(1) << 20) {
  std::vector<std::string> found;
  const DataSource source = open_data(path, column);
  for_each_document(source,
                    {[&] { return found.size() < most; },
                     [&](TextStream& text) { found.emplace_back(text.peek(size_t(1) << 30)); },
                     [&](const Json& record) {
                       JsonWriter json(JsonWriter::Layout::one_line);
                       found.push_back(json.value(record).text());
                     }});
  return found;
}

// The error for a file `name` with these bytes. FILE replaces the file's path in the message.
inline std::string data_error(const std::string& name, std::string_view bytes,
                              const std::string& column = "") {
  const TempDir folder;
  const std::filesystem::path file = folder.write(name, bytes);
  std::string message = error_of([&] { records_of(file, column); });
  const std::string path = quote(file.string());
  for (size_t at = 0; (at = message.find(path)) != message.npos;) {
    message.replace(at, path.size(), "FILE");
  }
  return message;
}

}  // namespace fp8kv::test
