#include "scales/write/output_folder.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/shell.h"
#include "files/output/made_folder.h"
#include "files/output/special_file.h"
#include "files/output/write_file.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

// The output's path with its parent resolved, so that it compares with the source's path.
fs::path resolved_output(const fs::path& out) {
  const fs::path absolute = fs::absolute(out).lexically_normal();
  const fs::path named = absolute.filename().empty() ? absolute.parent_path() : absolute;
  if (fs::is_directory(named)) return fs::canonical(named);
  if (!fs::is_directory(named.parent_path())) {
    throw Error(cat(quote(named.parent_path().string()), ": no such folder"),
                cat("make it first: mkdir -p ", shell_path(named.parent_path().string())));
  }
  return fs::canonical(named.parent_path()) / named.filename();
}

// Editing a setting of the output in place must not change the source. So only tensor files, which
// nobody edits, may be hard links.
LinkMode mode_of(const PlannedFile& file, LinkMode asked) {
  const bool links = asked == LinkMode::automatic || asked == LinkMode::hard;
  return links && !holds_tensors(file.from) ? LinkMode::copy : asked;
}

FileMade planned(LinkMode mode) {
  switch (mode) {
    case LinkMode::automatic:
      return FileMade::linked_or_copied;
    case LinkMode::reflink:
      return FileMade::reflinked;
    case LinkMode::hard:
      return FileMade::hard_linked;
    case LinkMode::copy:
      break;
  }
  return FileMade::copied;
}

FileMade made_by(LinkResult result) {
  switch (result) {
    case LinkResult::reflinked:
      return FileMade::reflinked;
    case LinkResult::hard_linked:
      return FileMade::hard_linked;
    case LinkResult::copied:
      break;
  }
  return FileMade::copied;
}

FileMade made_by_writing(const PlannedFile& file) {
  return file.parts.empty() ? FileMade::written : FileMade::rewritten;
}

}  // namespace

bool holds_tensors(const fs::path& file) {
  static const std::set<std::string> kEndings = {".bin",  ".ckpt", ".gguf", ".h5",  ".msgpack",
                                                 ".onnx", ".ot",   ".pt",   ".pth", ".safetensors"};
  return kEndings.contains(file.extension().string());
}

void check_output(const fs::path& source_folder, const fs::path& out, bool is_file,
                  bool overwrite) {
  if (is_file && is_special_file(out)) return;
  const fs::path source = fs::canonical(source_folder);
  const fs::path target = resolved_output(out);
  const std::string shown = quote(out.string());
  if (is_within(target, source) || is_within(source, target)) {
    throw Error(cat(shown, ": ",
                    target == source            ? "is"
                    : is_within(target, source) ? "is within"
                                                : "holds",
                    " the source ", quote(source_folder.string()), ", which is never modified"),
                "choose an output elsewhere", ErrorKind::usage);
  }
  if (!fs::exists(fs::symlink_status(target))) return;
  if (!overwrite) throw already_exists(out);
  if (is_file && fs::is_directory(target)) {
    throw Error(cat(shown, ": is a folder, expected a scale file to write"),
                "name a file, such as kv_cache_scales.json");
  }
  if (fs::is_directory(target)) check_made_folder(target, out);
}

FileMade planned_making(const PlannedFile& file, LinkMode link) {
  return file.is_linked() ? planned(mode_of(file, link)) : made_by_writing(file);
}

FileMade carry_out(const PlannedFile& file, const fs::path& to, LinkMode link) {
  fs::create_directories(to.parent_path());
  if (file.is_linked()) return made_by(link_or_copy(file.from, to, mode_of(file, link)));
  if (file.parts.empty()) {
    write_new_file(to, file.contents);
  } else {
    write_new_file(to, file.contents, file.from, file.parts);
  }
  return made_by_writing(file);
}

const char* made_name(FileMade made) {
  switch (made) {
    case FileMade::written:
      return "written";
    case FileMade::rewritten:
      return "rewritten";
    case FileMade::reflinked:
      return "reflinked";
    case FileMade::hard_linked:
      return "hard-linked";
    case FileMade::copied:
      return "copied";
    case FileMade::linked_or_copied:
      break;
  }
  return "linked or copied";
}

}  // namespace fp8kv
