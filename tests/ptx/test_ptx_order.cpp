// The emulated device finds work whose order no call guarantees.
// nothing.
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "kernels/ptx/machine/memory.h"
#include "kernels/ptx/order/host_copies.h"

namespace fp8kv::ptx {
namespace {

// Two streams, and an allocation of which each notes uses.
struct Scene {
  StreamOrder order;
  int ops = order.add_stream(), copies = order.add_stream();
  GlobalMemory memory{1 << 20};
  std::byte* block = memory.allocate(1000);

  std::string use(int stream, bool writes, uint64_t begin, uint64_t end) {
    const auto at = reinterpret_cast<uint64_t>(block);
    return memory.note({at + begin, at + end}, writes, order.begin_work(stream),
                       lasting_name(stream == ops ? "an op" : "a copy"));
  }
  std::string read(int stream, uint64_t begin = 0, uint64_t end = 1000) {
    return use(stream, false, begin, end);
  }
  std::string write(int stream, uint64_t begin = 0, uint64_t end = 1000) {
    return use(stream, true, begin, end);
  }
};

}  // namespace

TEST_CASE("ptx order: work of one stream is in order, and readers need no order among them") {
  Scene s;
  CHECK(s.write(s.ops) == "");
  CHECK(s.read(s.ops) == "");
  CHECK(s.write(s.ops) == "");
  s.order.wait(s.copies, s.order.now(s.ops));
  CHECK(s.read(s.copies) == "");
  CHECK(s.read(s.ops) == "");
}

TEST_CASE("ptx order: what another stream writes must be waited for") {
  Scene s;
  CHECK(s.write(s.copies, 300, 600) == "");
  CHECK(s.read(s.ops, 0, 256) == "");
  CHECK(s.read(s.ops, 0, 257) ==
        "an op: reads what 'a copy' writes in another stream, without waiting for it: byte 256 of "
        "an allocation of 1000");
  CHECK(s.write(s.ops, 900, 1000) == "");
  CHECK(s.write(s.ops, 550, 560).starts_with("an op: writes what 'a copy' writes"));
  s.order.wait(s.ops, s.order.now(s.copies));
  CHECK(s.read(s.ops) == "");
}

TEST_CASE("ptx order: what another stream reads must not be overwritten before") {
  Scene s;
  CHECK(s.read(s.ops) == "");
  CHECK(s.write(s.copies).starts_with("a copy: writes what 'an op' reads in another stream"));
  s.order.wait(s.copies, s.order.now(s.ops));
  CHECK(s.write(s.copies) == "");
}

TEST_CASE("ptx order: a wait is for the work that the stream had when it was recorded") {
  Scene s;
  const Clock early = s.order.now(s.copies);
  CHECK(s.write(s.copies) == "");
  s.order.wait(s.ops, early);
  CHECK(s.read(s.ops) != "");
  s.order.wait(s.ops, s.order.now(s.copies));
  CHECK(s.read(s.ops) == "");
}

TEST_CASE("ptx order: waits pass on what the other has waited for, and so does the host") {
  Scene s;
  const int third = s.order.add_stream();
  CHECK(s.write(s.copies) == "");
  s.order.wait(s.ops, s.order.now(s.copies));
  s.order.wait(third, s.order.now(s.ops));
  CHECK(s.read(third) == "");
  Scene t;
  CHECK(t.write(t.copies) == "");
  t.order.wait_here(t.order.now(t.copies));
  CHECK(t.read(t.ops) == "");
  Scene u;
  CHECK(u.write(u.copies) == "");
  u.order.wait_for_all();
  CHECK(u.write(u.ops) == "");
}

TEST_CASE("ptx order: a kernel's uses are those that its threads have noted") {
  Scene s;
  CHECK(s.write(s.copies, 256, 512) == "");
  const auto at = reinterpret_cast<uint64_t>(s.block);
  const FoundMemory found = s.memory.find(at, 1000);
  found.touched->touch(255, TouchedParts::kRead);
  CHECK(s.memory.note_touched(s.order.begin_work(s.ops), lasting_name("kernel")) == "");
  found.touched->touch(511, TouchedParts::kRead);
  CHECK(s.memory.note_touched(s.order.begin_work(s.ops), lasting_name("kernel"))
            .starts_with("kernel: reads what 'a copy' writes in another stream"));
  // They are forgotten then.
  CHECK(s.memory.note_touched(s.order.begin_work(s.ops), lasting_name("kernel")) == "");
}

TEST_CASE("ptx order: memory that was given back keeps its address for a while") {
  GlobalMemory memory(1 << 20);
  std::byte* block = memory.allocate(4096);
  const auto at = reinterpret_cast<uint64_t>(block);
  CHECK_FALSE(memory.was_released(at));
  CHECK(memory.release(block));
  CHECK(memory.was_released(at + 4095));
  CHECK(memory.find(at, 1).range.end == 0);
  CHECK(memory.in_use() == 0);
  for (int i = 0; i < 100; ++i) CHECK(memory.allocate(4096) != block);
}

TEST_CASE("ptx order: a source must not change before the host has waited for its copy") {
  for (const bool waits : {true, false}) {
    StreamOrder order;
    HostCopies copies;
    const int stream = order.add_stream();
    std::vector<std::byte> pinned(64), plain(64);
    copies.add_pinned(pinned.data(), pinned.size());
    CHECK(copies.note_source(pinned.data() + 8, 16, order.begin_work(stream)) == "");
    CHECK(copies.note_source(plain.data(), 64, order.begin_work(stream)) == "");
    plain[0] = std::byte{1};  // was read at once
    pinned[0] = std::byte{1};
    if (waits) {
      order.wait_here(order.now(stream));
      CHECK(copies.arrive(order.host()) == "");
    }
    pinned[8] = std::byte{1};
    order.wait_here(order.now(stream));
    CHECK(copies.arrive(order.host()) ==
          (waits ? "" : "the host changed a source of 16 bytes before it waited for their copy"));
  }
}

TEST_CASE("ptx order: a copy to pinned memory arrives when the host has waited") {
  StreamOrder order;
  HostCopies copies;
  const int stream = order.add_stream();
  const std::vector<std::byte> device(16, std::byte{7});
  std::vector<std::byte> pinned(16), plain(16);
  copies.add_pinned(pinned.data(), pinned.size());
  CHECK(copies.deliver(plain.data(), device.data(), 16, order.begin_work(stream)) == "");
  CHECK(plain == device);
  CHECK(copies.deliver(pinned.data(), device.data(), 16, order.begin_work(stream)) == "");
  CHECK(copies.arrive(order.host()) == "");
  CHECK(pinned[0] != std::byte{7});
  order.wait_here(order.now(stream));
  CHECK(copies.arrive(order.host()) == "");
  CHECK(pinned == device);
}

TEST_CASE("ptx order: copies to and from the same pinned memory wait for one another") {
  for (const bool waits : {true, false}) {
    StreamOrder order;
    HostCopies copies;
    const int in = order.add_stream(), out = order.add_stream();
    const auto wrong = [&](int bytes) -> std::string {
      if (waits) return "";
      return cat("a copy uses pinned memory that another copy of ", bytes,
                 " bytes uses, without waiting for it");
    };
    const std::vector<std::byte> device(16, std::byte{7});
    std::vector<std::byte> pinned(16);
    copies.add_pinned(pinned.data(), pinned.size());
    CHECK(copies.note_source(pinned.data(), 8, order.begin_work(in)) == "");
    if (waits) order.wait(out, order.now(in));
    CHECK(copies.deliver(pinned.data(), device.data(), 16, order.begin_work(out)) == wrong(8));
    if (waits) order.wait(in, order.now(out));
    CHECK(copies.note_source(pinned.data() + 8, 4, order.begin_work(in)) == wrong(16));
    if (waits) CHECK(pinned == device);  // the second copy reads what the first has brought
  }
}

TEST_CASE("ptx order: pinned memory is given back after its copies") {
  for (const bool waits : {true, false}) {
    StreamOrder order;
    HostCopies copies;
    const int stream = order.add_stream();
    std::vector<std::byte> pinned(32);
    copies.add_pinned(pinned.data(), pinned.size());
    CHECK(copies.note_source(pinned.data(), 32, order.begin_work(stream)) == "");
    if (waits) {
      order.wait_here(order.now(stream));
      CHECK(copies.arrive(order.host()) == "");
    }
    CHECK(copies.release_pinned(pinned.data()) ==
          (waits ? ""
                 : "is given back while a copy of 32 bytes may still use it: nothing waited for "
                   "the copy"));
    CHECK(copies.release_pinned(pinned.data()) == "was never allocated");
    CHECK(copies.release_pinned(nullptr) == "");
  }
}

}  // namespace fp8kv::ptx
