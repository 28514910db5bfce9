#include "options/output_files.h"

#include "base/error.h"
#include "base/shell.h"
#include "files/output/special_file.h"
#include "files/output/temporary.h"
#include "files/output/write_file.h"

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

void report_leftovers(const std::vector<OutputFile>& files, Log& log) {
  for (const OutputFile& file : files) {
    if (file.path.empty() || file.path == "-" || is_special_file(file.path)) continue;
    for (const Leftover& left : find_leftovers(behind_links(file.path))) {
      const std::string name = quote(left.path.string());
      log.warn(left.in_use
                   ? cat(name, ": another run is writing ", quote(file.path.string()), " now")
                   : cat(name,
                         ": left by a run that was killed, unless one on another machine is "
                         "writing it; to remove it: rm -r ",
                         shell_path(left.path.string())));
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
