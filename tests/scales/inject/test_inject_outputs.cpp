#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "files/output/copy_file.h"
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

TEST_CASE("inject: an output that exists is kept, unless replacing it was asked for") {
  const Workplace place;
  const KvScales scales = scales_for(place.config);
  place.inject(scales_for(place.config, 7));
  const std::string before = test::read_file(place.out() / kScaleShard);
  CHECK(place.error(scales) == "'out': already exists");
  CHECK(place.error(scales, {.target = "tgi", .dry_run = true}) == "'out': already exists");
  CHECK(test::read_file(place.out() / kScaleShard) == before);
  place.inject(scales, {.target = "tgi", .overwrite = true});
  CHECK(scales_at(Checkpoint::open(place.out())).scales.layers == scales.layers);
  CHECK(place.beside() == Strings{"out"});
}

TEST_CASE("inject: a folder that holds something else is never replaced") {
  const Workplace place;
  const std::string why =
      "'out': has no fp8kv-files.txt, which folders of fp8kv have, so 'out' is not replaced";
  for (const char* file : {"thesis.tex", "config.json"}) {
    place.folder.write(cat("out/", file), "mine");
    CHECK(place.error(scales_for(place.config), {.target = "tgi", .overwrite = true}) == why);
    CHECK(test::read_file(place.out() / file) == "mine");
  }
}

TEST_CASE("inject: the source, what is in it and what holds it are no output") {
  const Workplace place;
  fs::create_directory_symlink("model", place.folder / "link");
  const struct {
    std::string out;
    std::string message;
  } cases[] = {{"model", "'model': is the source 'model', which is never modified"},
               {"model/", "'model/': is the source 'model', which is never modified"},
               {"link", "'link': is the source 'model', which is never modified"},
               {"link/out", "'link/out': is within the source 'model', which is never modified"},
               {"model/sub/../out",
                "'model/sub/../out': is within the source 'model', which is never modified"}};
  for (const auto& wrong : cases) {
    const fs::path out = place.folder.path() / wrong.out;
    CHECK(place.without_folder(test::error_of(
              [&] {
                inject_scales(place.open(), scales_for(place.config), out,
                              {.target = "tgi", .overwrite = true});
              },
              ErrorKind::usage)) == wrong.message);
  }
  const std::string parent = place.folder.path().string();
  CHECK(test::error_of(
            [&] {
              inject_scales(place.open(), scales_for(place.config), parent,
                            {.target = "tgi", .overwrite = true});
            },
            ErrorKind::usage) == cat(quote(parent), ": holds the source ",
                                     quote(place.model().string()), ", which is never modified"));
}

TEST_CASE("inject: a name that begins like the source's is another folder") {
  const Workplace place;
  inject_scales(place.open(), scales_for(place.config), place.folder / "model-fp8/",
                {.target = "tgi"});
  CHECK(scales_at(Checkpoint::open(place.folder / "model-fp8")).scales.layers.size() == 2);
}

TEST_CASE("inject: a missing parent and an unknown target are refused") {
  const Workplace place;
  const KvScales scales = scales_for(place.config);
  CHECK(place.without_folder(test::error_of([&] {
    inject_scales(place.open(), scales, place.folder / "a/b", {.target = "tgi"});
  })) == "'a': no such folder");
  CHECK(test::error_of([&] { place.inject(scales, {.target = "tgl"}); }, ErrorKind::usage) ==
        "no target 'tgl' (did you mean 'tgi'?)");
}

// Limits the size of files until the end of the scope, like a full disk.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("inject: a disk that fills up on the way leaves nothing behind") {
  const Workplace place;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::string message;
  {
    const SmallDisk disk(8192);  // enough for config.json and the scales
    message = test::error_of(
        [&] { place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::copy}); },
        ErrorKind::resource);
  }
  std::signal(SIGXFSZ, handler);
  CHECK(place.without_folder(message) == cat("'out' was not made: 'out.fp8kv-tmp-", getpid(),
                                             "/model.safetensors': cannot write: File too large"));
  CHECK(place.beside().empty());
}

TEST_CASE("inject: killed on the way, it leaves nothing under the name of the output") {
  const Workplace place;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // writing past the limit kills the child with SIGXFSZ
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGXFSZ, SIG_DFL);
    const SmallDisk disk(8192);
    place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::copy});
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(place.beside() == Strings{cat("out.fp8kv-tmp-", child)});
  place.inject(scales_for(place.config));
  CHECK(scales_at(Checkpoint::open(place.out())).scales.layers.size() == 2);
}

TEST_CASE("inject: a model that changed since it was opened is refused, and nothing is left") {
  for (const char* target : {"tgi", "json"}) {
    const Workplace place;
    const Checkpoint checkpoint = place.open();
    std::fstream(place.model() / "model.safetensors", std::ios::in | std::ios::out)
        .seekp(-1, std::ios::end)
        .put('\1');
    CHECK(place.without_folder(test::error_of([&] {
      inject_scales(checkpoint, scales_for(place.config), place.out(), {.target = target});
    })) == "'model/model.safetensors': changed while it was read: it was written to");
    CHECK(place.beside().empty());
  }
}

}  // namespace
}  // namespace fp8kv
