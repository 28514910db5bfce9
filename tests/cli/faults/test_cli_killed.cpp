// What signals, limits and killed runs leave behind.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "files/temporary.h"
#include "support/models/tiny_checkpoint.h"
#include "support/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

struct Workplace {
  Workplace() {
    test::write_tiny_checkpoint(temp / "model", test::tiny_config(), {.n_shards = 2});
    temp.write("data.jsonl", "{\"input_ids\": [1, 5, 9, 33, 7, 12, 60, 2]}\n");
  }
  test::CliResult run(const Strings& arguments, test::CliSetup setup = {}) const {
    setup.folder = temp.path();
    return test::run_cli(arguments, setup);
  }
  Strings names() const {
    Strings found;
    for (const auto& entry : fs::directory_iterator(temp.path())) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  test::TempDir temp;
};

// Ends a program that hangs, which then has another exit code than any test expects.
test::CliSetup within_seconds(int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  return {.interrupt_when = [end](const auto&) { return std::chrono::steady_clock::now() > end; },
          .signal_number = SIGKILL};
}

}  // namespace

TEST_CASE("cli killed: a terminal that hangs up ends the work, and leaves nothing") {
  const Workplace at;
  const test::CliSetup hang_up{
      .input = "{\"input_ids\": [1, 2, 3]}\n",
      .interrupt_when = [](const auto& so_far) { return so_far.err.find("windows of") == 0; },
      .signal_number = SIGHUP};
  const Strings command = {"calibrate", "model", "--data", "-", "-o", "new.json"};
  CHECK(at.run(command, hang_up).exit_code == 130);
  CHECK(at.names() == Strings{"data.jsonl", "model"});
  // As under nohup. The data ends after the signal, and the work goes on to its end.
  const auto handler = std::signal(SIGHUP, SIG_IGN);
  const test::CliResult result = at.run(command, hang_up);
  std::signal(SIGHUP, handler);
  CHECK(result.exit_code == 0);
  CHECK(at.names() == Strings{"data.jsonl", "model", "new.json"});
}

TEST_CASE("cli killed: what killed runs have left is removed and named, whatever writes there") {
  const Workplace at;
  const Strings calibrate = {"calibrate", "model",  "--data",       "data.jsonl",
                             "-o",        "s.json", "--histograms", "h.hist"};
  for (const char* name : {"s.json.tmp-1", "s.json.partial.tmp-2", "h.hist.tmp-3"}) {
    at.temp.write(name, "left");
  }
  const std::string said = at.run(calibrate).err;
  const auto removed = [](const std::string& name) {
    return cat("removed '", name, "', which a run that was killed has left\n");
  };
  CHECK(said.starts_with(removed("s.json.tmp-1") + removed("h.hist.tmp-3") +
                         removed("s.json.partial.tmp-2")));
  at.temp.write("out.tmp-9/config.json", "left");
  CHECK(at.run({"inject", "model", "-s", "s.json", "-o", "out/", "--dry-run", "-q"}).exit_code ==
        0);
  CHECK(fs::exists(at.temp / "out.tmp-9"));  // a dry run changes nothing
  CHECK(at.run({"inject", "model", "-s", "s.json", "-o", "out/"})
            .err.starts_with(removed("out.tmp-9")));
  at.temp.write("e.json.tmp-9", "left");
  CHECK(at.run({"extract", "out", "-o", "e.json"}).err.starts_with(removed("e.json.tmp-9")));
  at.temp.write("m.json.tmp-9", "left");
  CHECK(at.run({"merge", "s.json", "-o", "m.json"}).err.starts_with(removed("m.json.tmp-9")));
  at.temp.write("r.html.tmp-9", "left");
  at.temp.write("j.xml.tmp-9", "left");
  CHECK(at.run({"eval", "model", "--data", "data.jsonl", "--report", "r.html", "--junit", "j.xml"})
            .err.starts_with(removed("j.xml.tmp-9") + removed("r.html.tmp-9")));
  CHECK(at.names() == Strings{"data.jsonl", "e.json", "h.hist", "j.xml", "m.json", "model", "out",
                              "r.html", "s.json"});
}

TEST_CASE("cli killed: what another run is writing is named and left to it") {
  const Workplace at;
  const Temporary theirs = Temporary::file(at.temp / "s.json");
  const test::CliResult result =
      at.run({"calibrate", "model", "--data", "data.jsonl", "-o", "s.json"});
  CHECK(result.exit_code == 0);
  CHECK(result.err.starts_with(
      cat("warning: 's.json.tmp-", getpid(), "': another run is writing 's.json' now\n")));
  CHECK(fs::exists(theirs.path()));
}

TEST_CASE("cli killed: a model's file that is no file is refused at once, never waited for") {
  const struct {
    std::string file;
    Strings command;
  } cases[] = {
      {"config.json", {"inspect", "model"}},
      {"config.json", {"plan", "model"}},
      {"model.safetensors.index.json", {"extract", "model"}},
      {"model-00001-of-00002.safetensors", {"plan", "model"}},
      {"hf_quant_config.json", {"extract", "model"}},
      {"generation_config.json",
       {"calibrate", "model", "--data", "data.jsonl", "-o", "s.json", "-q"}},
      {"tokenizer.json", {"calibrate", "model", "--data", "data.jsonl", "-o", "s.json", "-q"}},
      {"tokenizer.json", {"run", "model", "--prompt", "x", "-q"}},
  };
  const auto make_pipe = [](const fs::path& path) { return mkfifo(path.c_str(), 0600) == 0; };
  const auto make_socket = [](const fs::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool made =
        bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(descriptor);
    return made;
  };
  const auto make_folder = [](const fs::path& path) { return fs::create_directory(path); };
  const auto make_device = [](const fs::path& path) {
    fs::create_symlink("/dev/zero", path);
    return true;
  };
  const struct {
    std::function<bool(const fs::path&)> make;
    std::string says;
  } kinds[] = {{make_pipe, ": is a named pipe, expected a regular file"},
               {make_socket, ": is a socket, expected a regular file"},
               {make_device, ": is a device, expected a regular file"},
               {make_folder, ": is a folder, expected a file"}};
  for (const auto& kind : kinds) {
    const Workplace at;
    for (const auto& each : cases) {
      const fs::path path = at.temp / ("model/" + each.file);
      const fs::path aside = at.temp / "aside";
      const bool was_there = fs::exists(path);
      if (was_there) fs::rename(path, aside);
      REQUIRE(kind.make(path));
      const test::CliResult result = at.run(each.command, within_seconds(20));
      CAPTURE(each.command[0]);
      CHECK(result.exit_code == 3);
      CHECK(result.err.substr(0, result.err.find('\n')) ==
            cat("fp8kv: ", each.command[0], ": 'model/", each.file, "'", kind.says));
      fs::remove(path);
      if (was_there) fs::rename(aside, path);
    }
  }
}

TEST_CASE("cli killed: text and scales still come from pipes that the user names") {
  const Workplace at;
  const std::string data = test::read_file(at.temp / "data.jsonl");
  test::CliSetup setup{.input = data};
  CHECK(at.run({"calibrate", "model", "--data", "/dev/stdin", "-o", "s.json", "-q"}, setup)
            .exit_code == 0);
  setup.input = test::read_file(at.temp / "s.json");
  const test::CliResult result = at.run({"extract", "/dev/stdin", "-q"}, setup);
  CHECK(result.exit_code == 0);
  CHECK(result.out == setup.input);
}

}  // namespace fp8kv
