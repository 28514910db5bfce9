// Files that remain after signals, exceeded limits and kills.
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
#include "files/output/temporary.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
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

// Kills a program that hangs. Its exit code then differs from every expected one.
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
  // SIGHUP is ignored, like under nohup. The data ends after the signal, and the command finishes.
  const auto handler = std::signal(SIGHUP, SIG_IGN);
  const test::CliResult result = at.run(command, hang_up);
  std::signal(SIGHUP, handler);
  CHECK(result.exit_code == 0);
  CHECK(at.names() == Strings{"data.jsonl", "model", "new.json"});
}

TEST_CASE("cli killed: what killed runs have left is named with a way to remove it, and kept") {
  const Workplace at;
  const auto named = [](const std::string& name) {
    return cat("warning: '", name,
               "': left by a run that was killed, unless one on another machine is writing it; to "
               "remove it: rm -r ",
               name, "\n");
  };
  const auto left = [&](const std::string& name) {
    at.temp.write(name + ".fp8kv-tmp-9", "left");
    return named(name + ".fp8kv-tmp-9");
  };
  const std::string calibrate = left("s.json") + left("h.hist") + left("s.json.partial");
  CHECK(at.run({"calibrate", "model", "--data", "data.jsonl", "-o", "s.json", "--histograms",
                "h.hist"})
            .err.starts_with(calibrate));
  at.temp.write("out.fp8kv-tmp-9/config.json", "left");
  const Strings inject = {"inject", "model", "-s", "s.json", "-o", "out/"};
  CHECK(at.run(inject).err.starts_with(named("out.fp8kv-tmp-9")));
  const std::string extract = left("e.json");
  CHECK(at.run({"extract", "out", "-o", "e.json"}).err.starts_with(extract));
  const std::string merge = left("m.json");
  CHECK(at.run({"merge", "s.json", "-o", "m.json"}).err.starts_with(merge));
  const std::string eval = left("j.xml") + left("r.html");
  CHECK(at.run({"eval", "model", "--data", "data.jsonl", "--report", "r.html", "--junit", "j.xml"})
            .err.starts_with(eval));
  for (const char* name : {"s.json", "h.hist", "s.json.partial", "e.json", "m.json", "j.xml"}) {
    CHECK(test::read_file(at.temp / cat(name, ".fp8kv-tmp-9")) == "left");
  }
  CHECK(test::read_file(at.temp / "out.fp8kv-tmp-9/config.json") == "left");
}

TEST_CASE("cli killed: no input and no other folder is removed for its name") {
  const Workplace at;
  REQUIRE(
      at.run({"calibrate", "model", "--data", "data.jsonl", "-o", "scales.json", "-q"}).exit_code ==
      0);
  for (const char* ending : {".tmp-1", ".fp8kv-tmp-1"}) {
    const std::string suffix = ending;
    fs::copy(at.temp / "model", at.temp / ("m" + suffix), fs::copy_options::recursive);
    at.temp.write("s.json" + suffix, test::read_file(at.temp / "scales.json"));
    at.temp.write("n.json" + suffix, test::read_file(at.temp / "data.jsonl"));
    at.temp.write("m" + suffix + "4/backup/notes.txt", "of years");
    const Strings before = at.names();
    const auto run = [&](const Strings& command) {
      const test::CliResult result = at.run(command);
      INFO(result.err);
      CHECK(result.exit_code == 0);
    };
    run({"inject", "m" + suffix, "-s", "s.json" + suffix, "-o", "m", "-q"});
    run({"quantize", "m" + suffix, "-s", "s.json" + suffix, "-o", "m", "-q", "--force"});
    run({"calibrate", "m" + suffix, "--data", "n.json" + suffix, "-o", "n.json", "-q"});
    run({"merge", "s.json" + suffix, "-o", "s.json", "-q"});
    run({"extract", "s.json" + suffix, "-o", "s.json", "-q", "--force"});
    run({"eval", "m" + suffix, "--data", "n.json" + suffix, "--junit", "n.json", "-q", "--force"});
    for (const char* made : {"m", "n.json", "s.json"}) fs::remove_all(at.temp / made);
    CHECK(at.names() == before);
    CHECK(test::read_file(at.temp / ("m" + suffix + "4/backup/notes.txt")) == "of years");
    CHECK(test::read_file(at.temp / ("m" + suffix + "/config.json")) ==
          test::read_file(at.temp / "model/config.json"));
  }
}

TEST_CASE("cli killed: what another run is writing is named and left to it") {
  const Workplace at;
  const Temporary theirs = Temporary::file(at.temp / "s.json");
  const test::CliResult result =
      at.run({"calibrate", "model", "--data", "data.jsonl", "-o", "s.json"});
  CHECK(result.exit_code == 0);
  CHECK(result.err.starts_with(
      cat("warning: 's.json.fp8kv-tmp-", getpid(), "': another run is writing 's.json' now\n")));
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
