#include "io/inject.h"

#include <algorithm>
#include <array>
#include <map>
#include <system_error>

#include "base/error.h"
#include "base/interrupt.h"
#include "io/architectures.h"
#include "io/dialects.h"
#include "io/fingerprint.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

// One file of the output, before anything is written.
struct PlannedFile {
  fs::path from;                          // to link; unused when there are contents
  const std::string* contents = nullptr;  // to write
  uint64_t bytes = 0;
};

struct Plan {
  std::map<fs::path, PlannedFile> files;  // by path below the output
  std::vector<std::string> skipped;
};

const InjectTarget& target_at(const std::string& name) {
  std::vector<std::string> names;
  for (const InjectTarget& target : inject_targets()) {
    if (target.name == name) return target;
    names.push_back(target.name);
  }
  throw Error(cat("no target ", quote(name), did_you_mean(name, names)),
              cat("scales can be written for ", join(names, " or ")), ErrorKind::usage);
}

void check_free_of_scales(const Checkpoint& checkpoint) {
  const std::string folder = quote(checkpoint.folder().string());
  const std::string help =
      "inject into the original model; 'fp8kv extract' takes the scales out of this one";
  if (const auto found = find_scales(checkpoint)) {
    throw Error(cat(folder, ": already carries scales (", found->dialect, ")"), help);
  }
  if (fs::exists(checkpoint.folder() / kScaleShard)) {
    throw Error(cat(folder, ": already has a file ", quote(kScaleShard)), help);
  }
}

// Whether `inner` is `outer` or lies in it. Both absolute and free of links.
bool is_within(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

// The output's path with its parent resolved, so that it can be compared with the source's.
fs::path resolved_output(const fs::path& out) {
  const fs::path absolute = fs::absolute(out).lexically_normal();
  const fs::path named = absolute.filename().empty() ? absolute.parent_path() : absolute;
  if (fs::is_directory(named)) return fs::canonical(named);
  if (!fs::is_directory(named.parent_path())) {
    throw Error(cat(quote(named.parent_path().string()), ": no such folder"),
                cat("make it first: mkdir -p ", quote(named.parent_path().string())));
  }
  return fs::canonical(named.parent_path()) / named.filename();
}

void check_output(const Checkpoint& checkpoint, const fs::path& out, bool overwrite) {
  const fs::path source = fs::canonical(checkpoint.folder());
  const fs::path target = resolved_output(out);
  const std::string shown = quote(out.string());
  if (is_within(target, source) || is_within(source, target)) {
    throw Error(
        cat(shown, ": ",
            target == source            ? "is"
            : is_within(target, source) ? "is within"
                                        : "holds",
            " the source ", quote(checkpoint.folder().string()), ", which is never modified"),
        "choose an output elsewhere", ErrorKind::usage);
  }
  if (!fs::exists(fs::symlink_status(target))) return;
  if (!overwrite) {
    throw Error(cat(shown, ": already exists"),
                "choose another output, or pass --force to replace it");
  }
  if (fs::is_directory(target) && !fs::exists(target / "config.json") && !fs::is_empty(target)) {
    throw Error(cat(shown, ": is not a model folder, and is not replaced"),
                "choose another output, or remove it yourself");
  }
}

// Adds what is in `folder`, at `below` the source.
void plan_folder(const fs::path& folder, const fs::path& below, Plan& plan) {
  std::vector<fs::directory_entry> entries(fs::directory_iterator(folder), {});
  std::sort(entries.begin(), entries.end());
  for (const fs::directory_entry& entry : entries) {
    check_interrupt();
    const fs::path name = below / entry.path().filename();
    const std::string shown = quote(name.string());
    if (plan.files.contains(name)) continue;  // one that is written anew
    if (entry.is_directory()) {
      const bool hidden = name.filename().string().starts_with('.');
      if (hidden || entry.is_symlink()) {
        plan.skipped.push_back(cat(shown, hidden ? ": a hidden folder" : ": a link to a folder"));
      } else {
        plan_folder(entry.path(), name, plan);
      }
    } else if (entry.is_regular_file()) {
      plan.files[name] = {entry.path(), nullptr, entry.file_size()};
    } else {
      plan.skipped.push_back(cat(shown, entry.is_symlink() ? ": a link that leads nowhere"
                                                           : ": neither a file nor a folder"));
    }
  }
}

Plan make_plan(const Checkpoint& checkpoint, const ScalePatch& patch) {
  Plan plan;
  plan.files["config.json"] = {{}, &patch.config, patch.config.size()};
  plan.files[kIndexFile] = {{}, &patch.index, patch.index.size()};
  plan.files[kScaleShard] = {{}, &patch.shard, patch.shard.size()};
  plan_folder(checkpoint.folder(), {}, plan);
  return plan;
}

const char* planned_how(LinkMode mode) {
  switch (mode) {
    case LinkMode::automatic:
      return "linked or copied";
    case LinkMode::reflink:
      return "reflinked";
    case LinkMode::hard:
      return "hard-linked";
    case LinkMode::copy:
      break;
  }
  return "copied";
}

const char* done_how(LinkResult result) {
  switch (result) {
    case LinkResult::reflinked:
      return "reflinked";
    case LinkResult::hard_linked:
      return "hard-linked";
    case LinkResult::copied:
      break;
  }
  return "copied";
}

// Brings one file to `to`, and says how.
const char* carry_out(const PlannedFile& file, const fs::path& to, LinkMode link) {
  fs::create_directories(to.parent_path());
  if (!file.contents) return done_how(link_or_copy(file.from, to, link));
  write_new_file(to, *file.contents);
  return "written";
}

void add_to(InjectReport& report, const fs::path& name, std::string how, uint64_t bytes) {
  if (how == "written" || how == "copied") report.written_bytes += bytes;
  report.files.push_back({name.string(), std::move(how), bytes});
}

// File operations of the standard library throw their own type.
template <typename Work>
auto as_our_error(Work&& work) {
  try {
    return work();
  } catch (const fs::filesystem_error& error) {
    fail_system(error.path1().string(), "use", error.code().value());
  }
}

}  // namespace

std::span<const InjectTarget> inject_targets() {
  static const std::array<InjectTarget, 1> kTargets = {{
      {"tgi", "Text Generation Inference: kv_scale, k_scale and v_scale", tgi_patch},
  }};
  return kTargets;
}

InjectReport inject_scales(const Checkpoint& checkpoint, const KvScales& scales,
                           const fs::path& out, const InjectOptions& options) {
  return as_our_error([&] {
    const InjectTarget& target = target_at(options.target);
    check_output(checkpoint, out, options.overwrite);
    check_free_of_scales(checkpoint);
    check_made_for(scales, checkpoint, parse_model_shape(checkpoint.config()), options.scales_name);
    const ScalePatch patch = target.patch(checkpoint, scales);
    const Plan plan = make_plan(checkpoint, patch);
    InjectReport report;
    report.skipped = plan.skipped;
    report.notes = patch.notes;
    if (options.dry_run) {
      for (const auto& [name, file] : plan.files) {
        add_to(report, name, file.contents ? "written" : planned_how(options.link), file.bytes);
      }
      return report;
    }
    StagedDirectory staged(out, options.overwrite);
    for (const auto& [name, file] : plan.files) {
      check_interrupt();
      add_to(report, name, carry_out(file, staged.path() / name, options.link), file.bytes);
    }
    staged.publish();
    return report;
  });
}

}  // namespace fp8kv
