#include "cli/output_files.h"

#include "base/error.h"
#include "files/file.h"

namespace fp8kv {

void check_output_files(const std::vector<OutputFile>& files, bool force) {
  for (size_t i = 0; i < files.size(); ++i) {
    with_way_out(kReplaceOutput, [&] { check_output_file(files[i].path, force); });
    for (size_t j = 0; j < i; ++j) {
      if (!same_output(files[j].path, files[i].path)) continue;
      throw Error(cat(files[j].flag, " and ", files[i].flag, " are the same file: ",
                      quote(files[j].path.string()), " and ", quote(files[i].path.string())),
                  "name another file for one of them", ErrorKind::usage);
    }
  }
}

void write_output_file(const std::filesystem::path& path, std::string_view bytes, bool force) {
  with_way_out(kReplaceOutput, [&] { write_file_atomically(path, bytes, force); });
}

void check_json_apart(bool json, const std::filesystem::path& out) {
  if (!json || out != "-") return;
  throw Error("--json: standard output is where --out writes the scales",
              "name a file with --out, or leave out --json", ErrorKind::usage);
}

}  // namespace fp8kv
