#include "files/output/staged_directory.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <utility>

#include "base/interrupt.h"
#include "files/file.h"
#include "files/output/made_folder.h"
#include "files/output/output_steps.h"
#include "files/output/temporary.h"
#include "files/output/write_file.h"

namespace fp8kv {

namespace fs = std::filesystem;

namespace {

// Syncs the folder after everything is written, since the first sync also writes the journal for
// the rest.
void sync_tree(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) {
      sync_tree(entry.path());
    } else if (entry.hard_link_count() == 1) {
      sync_file(open_for_reading(entry.path()), entry.path());
    }
  }
  sync_directory(folder);
}

}  // namespace

StagedDirectory::StagedDirectory(fs::path target, bool overwrite)
    : target_(std::move(target)), overwrite_(overwrite) {
  // "out/" and "out" are the same folder; only the second has a name to put a suffix on.
  if (target_.filename().empty()) target_ = target_.parent_path();
  if (exists_at(target_) && !overwrite_) throw already_exists(target_);
  target_ = behind_links(target_);
  if (exists_at(target_) && !fs::is_directory(target_)) {
    fail(quote(target_.string()), ": is a file, expected a folder");
  }
  check_parent(target_);
  temporary_ = std::make_unique<Temporary>(Temporary::folder(target_));
}

StagedDirectory::~StagedDirectory() = default;

const fs::path& StagedDirectory::path() const {
  return temporary_->path();
}

void StagedDirectory::publish() {
  make_final();
  if (overwrite_ && exists_at(target_)) {
    replace_target();
  } else {
    rename_into_place(path(), target_, false);
    temporary_->keep();
  }
  sync_directory(parent_of(target_));
}

void StagedDirectory::publish_as(const fs::path& target) {
  make_final();
  rename_into_place(path(), target, false);
  temporary_->keep();
  sync_directory(parent_of(target));
}

void StagedDirectory::make_final() {
  check_interrupt();
  write_made_folder_record(path());
  sync_tree(path());
}

void StagedDirectory::replace_target() {
  check_made_folder(target_, target_);
  const fs::path& staging = path();
  // An exchange loses nothing: the old folder gets the temporary's name.
  if (::renameat2(AT_FDCWD, staging.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) {
      fail_system(target_.string(), "rename into place", errno);
    }
    throw Error(cat(quote(target_.string()), ": this file system cannot exchange two folders"),
                "remove the output folder yourself, then run again", ErrorKind::resource);
  }
  temporary_->keep();
  with_context(cat(quote(target_.string()), " is made, but the folder before it is not removed"),
               [&] { remove_made_folder(staging); });
}

}  // namespace fp8kv
