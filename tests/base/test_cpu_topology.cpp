#include <cmath>

#include <doctest/doctest.h>

#include "base/machine/cpu_topology.h"
#include "support/temp_dir.h"

namespace fp8kv {

TEST_CASE("cpu topology: counts hyperthread siblings as one core") {
  const test::TempDir dir;
  dir.write("cpu0/topology/thread_siblings_list", "0,2\n");
  dir.write("cpu1/topology/thread_siblings_list", "1,3\n");
  dir.write("cpu2/topology/thread_siblings_list", "0,2\n");
  dir.write("cpu3/topology/thread_siblings_list", "1,3\n");
  CHECK(count_cores({0, 1, 2, 3}, dir.path()) == 2);
  CHECK(count_cores({0, 2}, dir.path()) == 1);
  CHECK(count_cores({1, 2}, dir.path()) == 2);
}

TEST_CASE("cpu topology: takes every processor for a core where nothing is known") {
  const test::TempDir dir;
  CHECK(count_cores({0, 1, 5}, dir.path()) == 3);
}

TEST_CASE("cpu topology: reads the quota of control groups, version 2") {
  const test::TempDir dir;
  const auto membership = dir.write("cgroup", "0::/a/b\n");
  CHECK(std::isinf(cgroup_cpus(membership, dir / "fs")));
  dir.write("fs/a/b/cpu.max", "max 100000\n");
  CHECK(std::isinf(cgroup_cpus(membership, dir / "fs")));
  dir.write("fs/a/b/cpu.max", "250000 100000\n");
  CHECK(cgroup_cpus(membership, dir / "fs") == 2.5);
  dir.write("fs/a/cpu.max", "150000 100000\n");  // a tighter parent
  CHECK(cgroup_cpus(membership, dir / "fs") == 1.5);
  dir.write("fs/cpu.max", "100000 100000\n");  // the root's own file, like in a container
  CHECK(cgroup_cpus(membership, dir / "fs") == 1.0);
}

TEST_CASE("cpu topology: reads the quota of control groups, version 1") {
  const test::TempDir dir;
  const auto membership = dir.write("cgroup", "3:cpuset:/\n1:cpu,cpuacct:/a\n");
  dir.write("fs/cpu/a/cpu.cfs_quota_us", "-1\n");
  dir.write("fs/cpu/a/cpu.cfs_period_us", "100000\n");
  CHECK(std::isinf(cgroup_cpus(membership, dir / "fs")));
  dir.write("fs/cpu/a/cpu.cfs_quota_us", "50000\n");
  CHECK(cgroup_cpus(membership, dir / "fs") == 0.5);
}

TEST_CASE("cpu topology: finds at least one core here") {
  CHECK(usable_cores() >= 1);
}

}  // namespace fp8kv
