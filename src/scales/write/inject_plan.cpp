#include "scales/write/inject_plan.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/interrupt.h"
#include "files/output/made_folder.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

// The places of a model's files: its folder and, for a snapshot in the hub cache, the blobs beside
// it.
struct Home {
  explicit Home(const fs::path& model) : folder(fs::canonical(model)) {
    const fs::path above = folder.parent_path();
    if (above.filename() == "snapshots") blobs = above.parent_path() / "blobs";
  }

  fs::path folder;
  fs::path blobs;  // "" outside the hub cache
};

// Throws for links out of the model: they could bring any local file into a folder that is then
// shared.
void check_at_home(const fs::path& file, const Home& home) {
  const fs::path real = fs::canonical(file);
  if (is_within(real, home.folder)) return;
  if (!home.blobs.empty() && is_within(real, home.blobs)) return;
  throw Error(cat(quote(file.string()), ": is a link to ", quote(real.string()),
                  ", outside the model's folder"),
              "if that belongs to the model, put a copy of it there in place of the link");
}

fs::path name_in(const InjectPlan& plan, const fs::path& name) {
  const auto renamed = plan.renamed.find(name.string());
  return renamed == plan.renamed.end() ? name : fs::path(renamed->second);
}

// Adds the contents of `folder`. `below` is its path relative to the source.
void plan_folder(const fs::path& folder, const fs::path& below, const Home& home,
                 InjectPlan& plan) {
  std::vector<fs::directory_entry> entries(fs::directory_iterator(folder), {});
  std::sort(entries.begin(), entries.end());
  for (const fs::directory_entry& entry : entries) {
    check_interrupt();
    const fs::path name = name_in(plan, below / entry.path().filename());
    const std::string shown = quote(name.string());
    if (entry.is_regular_file()) check_at_home(entry.path(), home);
    if (plan.files.contains(name) || plan.left_out.contains(name)) continue;
    if (entry.is_directory()) {
      const bool hidden = name.filename().string().starts_with('.');
      if (hidden || entry.is_symlink()) {
        plan.skipped.push_back(cat(shown, hidden ? ": a hidden folder" : ": a link to a folder"));
      } else {
        plan_folder(entry.path(), name, home, plan);
      }
    } else if (entry.is_regular_file()) {
      plan.files[name] = {entry.path(), "", {}, entry.file_size()};
    } else {
      plan.skipped.push_back(cat(shown, entry.is_symlink() ? ": a link that leads nowhere"
                                                           : ": neither a file nor a folder"));
    }
  }
}

// A shard without some of its tensors; nullopt if none are left.
std::optional<PlannedFile> without_tensors(const Checkpoint& checkpoint, const Shard& shard,
                                           const std::set<std::string>& dropped) {
  PlannedFile file;
  file.from = checkpoint.folder() / shard.file;
  std::vector<TensorEntry> kept;
  for (const TensorEntry& entry : shard.header.tensors) {
    if (dropped.contains(entry.name)) continue;
    kept.push_back(entry);
    file.bytes += entry.end - entry.begin;
    const bool adjoins = !file.parts.empty() && file.parts.back().end == entry.begin;
    if (adjoins) file.parts.back().end = entry.end;
    if (!adjoins && entry.begin < entry.end) file.parts.push_back({entry.begin, entry.end});
  }
  if (kept.empty()) return std::nullopt;
  file.contents = safetensors_head(kept, shard.header.metadata);
  file.bytes += file.contents.size();
  return file;
}

// Plans the shards with dropped tensors: written again without them, or left out.
void plan_shards(const Checkpoint& checkpoint, const std::vector<std::string>& names,
                 InjectPlan& plan) {
  const std::set<std::string> dropped(names.begin(), names.end());
  std::set<size_t> shards;
  for (const std::string& name : names) shards.insert(checkpoint.tensors().at(name).shard);
  for (const size_t index : shards) {
    const Shard& shard = checkpoint.shards()[index];
    if (shard.file == kScaleShard) continue;
    if (auto file = without_tensors(checkpoint, shard, dropped)) {
      plan.files[name_in(plan, shard.file)] = *std::move(file);
    } else {
      plan.left_out.insert(shard.file);
      plan.skipped.push_back(cat(quote(shard.file), ": held nothing but scales"));
    }
  }
}

}  // namespace

InjectPlan plan_injection(const Checkpoint& checkpoint, const ScalePatch& patch) {
  InjectPlan plan;
  plan.renamed = patch.changes.renamed;
  plan.left_out.insert(kMadeFolderRecord);  // the output gets its own record
  for (const auto& [name, contents] : patch.files) {
    plan.files[name] = {{}, contents, {}, contents.size()};
  }
  plan_shards(checkpoint, patch.changes.dropped, plan);
  plan_folder(checkpoint.folder(), {}, Home(checkpoint.folder()), plan);
  return plan;
}

bool is_within(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace fp8kv
