#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "files/output/copy_file.h"
#include "json/json.h"
#include "scales/read/find_scales.h"
#include "scales/write/inject.h"
#include "scales/write/scale_patch.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"
#include "support/workplaces/inject_workplace.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using test::scales_for;
using test::Workplace;

// The parts of a tree that must not change: names, contents and times.
std::map<std::string, std::pair<std::string, fs::file_time_type>> snapshot(const fs::path& folder) {
  std::map<std::string, std::pair<std::string, fs::file_time_type>> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    out[name] = {entry.is_regular_file() ? test::read_file(entry.path()) : "",
                 entry.last_write_time()};
  }
  out["."] = {"", fs::last_write_time(folder)};
  return out;
}

std::string how_of(const InjectReport& report, const std::string& name) {
  for (const InjectedFile& file : report.files) {
    if (file.name == name) return made_name(file.made);
  }
  return "not there";
}

TEST_CASE("inject: everything else comes along, but for hidden folders and what is no file") {
  const Workplace place;
  place.folder.write("model/tokenizer.json", "{}");
  place.folder.write("model/.gitattributes", "x");
  place.folder.write("model/original/params.json", "{\"dim\": 1}");
  place.folder.write("model/.git/HEAD", "x");
  place.folder.write("model/original/LICENSE", "of the model");
  fs::create_symlink("original/LICENSE", place.model() / "LICENSE");
  fs::create_symlink("nowhere", place.model() / "gone");
  fs::create_directory_symlink("..", place.model() / "up");
  const InjectReport report =
      place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::copy});
  Strings names;
  for (const InjectedFile& file : report.files) names.push_back(file.name);
  CHECK(names == Strings{".gitattributes", "LICENSE", "config.json", "model-kv-scales.safetensors",
                         "model.safetensors", "model.safetensors.index.json", "original/LICENSE",
                         "original/params.json", "tokenizer.json"});
  CHECK(report.skipped == Strings{"'.git': a hidden folder", "'gone': a link that leads nowhere",
                                  "'up': a link to a folder"});
  CHECK(test::read_file(place.out() / "original/params.json") == "{\"dim\": 1}");
  CHECK(test::read_file(place.out() / "LICENSE") == "of the model");
  CHECK_FALSE(fs::is_symlink(place.out() / "LICENSE"));
  CHECK_FALSE(fs::exists(place.out() / ".git"));
}

TEST_CASE("inject: the way of linking is the one asked for, and what it costs is counted") {
  const Workplace place;
  const InjectReport hard =
      place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::hard});
  CHECK(how_of(hard, "model.safetensors") == "hard-linked");
  CHECK(how_of(hard, "config.json") == "written");
  CHECK(fs::equivalent(place.out() / "model.safetensors", place.model() / "model.safetensors"));
  const InjectReport copy = place.inject(
      scales_for(place.config), {.target = "tgi", .link = LinkMode::copy, .overwrite = true});
  CHECK(how_of(copy, "model.safetensors") == "copied");
  CHECK_FALSE(
      fs::equivalent(place.out() / "model.safetensors", place.model() / "model.safetensors"));
  CHECK(copy.written_bytes ==
        hard.written_bytes + fs::file_size(place.model() / "model.safetensors"));
}

TEST_CASE(
    "inject: what holds no tensors is a file of its own, however large and whatever is asked for") {
  const Workplace place;
  place.folder.write("model/chat_template.jinja", "of the source");
  place.folder.write("model/tokenizer.json", std::string(1 << 17, ' '));
  const auto is_same = [&](const char* name) {
    return fs::equivalent(place.out() / name, place.model() / name);
  };
  const InjectReport report = place.inject(scales_for(place.config));
  CHECK(how_of(report, "chat_template.jinja") == "copied");
  std::ofstream(place.out() / "chat_template.jinja") << "edited in place";
  CHECK(test::read_file(place.model() / "chat_template.jinja") == "of the source");
  CHECK(how_of(report, "tokenizer.json") == "copied");
  fs::remove_all(place.out());
  const InjectReport hard =
      place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::hard});
  CHECK(how_of(hard, "tokenizer.json") == "copied");
  for (const char* name : {"chat_template.jinja", "tokenizer.json"}) CHECK_FALSE(is_same(name));
  CHECK(is_same("model.safetensors"));
  std::ofstream(place.out() / "tokenizer.json") << "edited in place";
  CHECK(test::read_file(place.model() / "tokenizer.json") == std::string(1 << 17, ' '));
}

TEST_CASE("inject: links that leave the model's folder are refused") {
  const Workplace place;
  place.folder.write("secret", "of this machine");
  for (const char* name : {"LICENSE", "sub/notes.txt", "extra.safetensors"}) {
    CAPTURE(name);
    fs::create_directories((place.model() / name).parent_path());
    fs::create_symlink(place.folder / "secret", place.model() / name);
    CHECK(place.error(scales_for(place.config), {.target = "tgi"}) ==
          cat("'model/", name, "': is a link to 'secret', outside the model's folder"));
    fs::remove(place.model() / name);
  }
  // A shard that is such a link is refused too, whatever its contents.
  fs::rename(place.model() / "model.safetensors", place.folder / "weights");
  fs::create_symlink("../weights", place.model() / "model.safetensors");
  CHECK(place.error(scales_for(place.config), {.target = "tgi"}) ==
        "'model/model.safetensors': is a link to 'weights', outside the model's folder");
  CHECK(place.beside().size() == 2);  // the secret, and the weights moved out of the model
}

TEST_CASE("inject: a snapshot of the hub's cache has its blobs beside it, and nothing else") {
  const Workplace place;
  const fs::path cache = place.folder / "models--a--b";
  const fs::path snapshot = cache / "snapshots/0123";
  fs::create_directories(cache / "blobs");
  fs::create_directories(cache / "snapshots");
  fs::rename(place.model(), snapshot);
  fs::rename(snapshot / "model.safetensors", cache / "blobs/aa");
  fs::create_symlink("../../blobs/aa", snapshot / "model.safetensors");
  place.folder.write("models--a--b/refs/main", "0123");
  const KvScales scales = scales_for(place.config);
  inject_scales(Checkpoint::open(snapshot), scales, place.out(), {.target = "tgi"});
  CHECK(test::read_file(place.out() / "model.safetensors") == test::read_file(cache / "blobs/aa"));
  CHECK_FALSE(fs::is_symlink(place.out() / "model.safetensors"));
  fs::create_symlink("../../refs/main", snapshot / "notes");
  CHECK(place.without_folder(test::error_of([&] {
    inject_scales(Checkpoint::open(snapshot), scales, place.folder / "again", {.target = "tgi"});
  })) == "'models--a--b/snapshots/0123/notes': is a link to 'models--a--b/refs/main', outside "
         "the model's folder");
}

TEST_CASE("inject: copies have the mode of their source, new files that of the umask") {
  const Workplace place;
  place.folder.write("model/tokenizer.json", "{}");
  fs::permissions(place.model() / "tokenizer.json", fs::perms{0640});
  fs::permissions(place.model() / "model.safetensors", fs::perms{0440});
  const mode_t before = umask(022);
  place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::copy});
  umask(before);
  const auto mode_of = [&](const char* name) {
    return fs::status(place.out() / name).permissions();
  };
  CHECK(mode_of("tokenizer.json") == fs::perms{0640});
  CHECK(mode_of("model.safetensors") == fs::perms{0440});
  CHECK(mode_of(kScaleShard) == fs::perms{0644});
}

TEST_CASE("inject: the source is not modified, whatever the way of linking") {
  for (const LinkMode mode : {LinkMode::automatic, LinkMode::hard, LinkMode::copy}) {
    const Workplace place(test::tiny_config(), {.n_shards = 2});
    place.folder.write("model/sub/file", "x");
    const auto before = snapshot(place.model());
    place.inject(scales_for(place.config), {.target = "tgi", .link = mode});
    CHECK((snapshot(place.model()) == before));
  }
}

TEST_CASE("inject: a dry run plans the same and writes nothing") {
  const Workplace place;
  const auto before = snapshot(place.folder.path());
  const InjectReport plan =
      place.inject(scales_for(place.config), {.target = "tgi", .dry_run = true});
  CHECK((snapshot(place.folder.path()) == before));
  const InjectReport done =
      place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::hard});
  REQUIRE(plan.files.size() == done.files.size());
  for (size_t i = 0; i < plan.files.size(); ++i) {
    CHECK(plan.files[i].name == done.files[i].name);
    CHECK(plan.files[i].bytes == done.files[i].bytes);
    CHECK(done.files[i].bytes == fs::file_size(place.out() / done.files[i].name));
  }
  CHECK(how_of(plan, "model.safetensors") == "linked or copied");
  CHECK(plan.written_bytes == done.written_bytes);
  CHECK(plan.notes == done.notes);
}

}  // namespace
}  // namespace fp8kv
