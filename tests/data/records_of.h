// What is in a data file, record by record, and what is said of one that cannot be read.
#pragma once

#include <string>
#include <vector>

#include "data/data_source.h"
#include "data/documents.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

// Of a text the text itself; of each record its JSON in one line.
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

// Of a file `name` of these bytes. The file's path stands as FILE in the message.
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
