#include "base/machine/cpu_topology.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <sched.h>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/text.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

double number(const std::string& text) {
  double value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The quota in cpu.max of version 2: "max 100000", or "150000 100000" for quota and period.
double quota_v2(const fs::path& group) {
  const std::string line = first_line(group / "cpu.max");
  const size_t space = line.find(' ');
  if (space == std::string::npos) return kUnlimited;
  const double quota = number(line.substr(0, space));
  const double period = number(line.substr(space + 1));
  return quota > 0 && period > 0 ? quota / period : kUnlimited;
}

double quota_v1(const fs::path& group) {
  const double quota = number(first_line(group / "cpu.cfs_quota_us"));
  const double period = number(first_line(group / "cpu.cfs_period_us"));
  return quota > 0 && period > 0 ? quota / period : kUnlimited;
}

// The tightest quota of a group and its ancestors. A container sees its own group as the root.
double tightest(const fs::path& root, const std::string& group, double (*quota)(const fs::path&)) {
  double limit = quota(root);
  fs::path path = root;
  for (const fs::path& part : fs::path(group).relative_path()) {
    path /= part;
    limit = std::min(limit, quota(path));
  }
  return limit;
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

int count_cores(const std::vector<int>& cpus, const fs::path& cpu_dir) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    // Hyperthread siblings have the same list, such as "0,64".
    const std::string siblings =
        first_line(cpu_dir / cat("cpu", cpu) / "topology" / "thread_siblings_list");
    cores.insert(siblings.empty() ? cat("cpu", cpu) : siblings);
  }
  return static_cast<int>(cores.size());
}

double cgroup_cpus(const fs::path& membership, const fs::path& root) {
  double limit = kUnlimited;
  std::ifstream in(membership);
  for (std::string line; std::getline(in, line);) {
    // A line is "hierarchy:controllers:group"; in version 2 it is "0::group".
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = cat(",", line.substr(first + 1, second - first - 1), ",");
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      limit = std::min(limit, tightest(root, group, quota_v2));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      limit = std::min(limit, tightest(root / "cpu", group, quota_v1));
    }
  }
  return limit;
}

int usable_cores() {
  const std::vector<int> cpus = allowed_cpus();
  const int cores = cpus.empty() ? static_cast<int>(std::thread::hardware_concurrency())
                                 : count_cores(cpus, "/sys/devices/system/cpu");
  const double limit = std::ceil(cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup"));
  return std::max(1, limit < cores ? static_cast<int>(limit) : cores);
}

}  // namespace fp8kv
