/* src/os/cgroup: the limits of a process's cgroups, in trees of files as kernels and containers
 * show them. */
#include <string.h>
#include "fake/os_fake.h"

#include "unit.h"

#define MIB (UINT64_C(1) << 20)

static struct os_cgroup cgroup;

BEFORE(each) { os_fake_reset(); }

static void assert_limits(const struct os_fake_file *files, uint64_t max_bytes, uint64_t high_bytes,
                          uint64_t quota) {
  os_fake.files = files;
  cgroup = *os_cgroup_read();
  assert_int_equal(cgroup.memory_bytes, max_bytes < high_bytes ? max_bytes : high_bytes);
  assert_int_equal(cgroup.processor_quota, quota);
}

TEST(no_cgroup) {
  static const struct os_fake_file nothing[] = {{0}};
  assert_limits(nothing, OS_CGROUP_NONE, OS_CGROUP_NONE, OS_CGROUP_NONE);
  assert_int_equal(os_cgroup_used_bytes(&cgroup, 0), 0);
}

TEST(v2_without_limits) {
  static const struct os_fake_file tree[] = {{"/proc/self/cgroup", "0::/user.slice\n"},
                                             {"/sys/fs/cgroup/user.slice/memory.max", "max\n"},
                                             {"/sys/fs/cgroup/user.slice/memory.high", "max\n"},
                                             {"/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"},
                                             {0}};
  assert_limits(tree, OS_CGROUP_NONE, OS_CGROUP_NONE, OS_CGROUP_NONE);
}

/* The tightest limit may be any level's; usage is that level's. */
TEST(v2_nested) {
  static const struct os_fake_file tree[] = {
      {"/proc/self/cgroup", "0::/a/b/c\n"},
      {"/sys/fs/cgroup/a/memory.max", "1073741824\n"},
      {"/sys/fs/cgroup/a/b/memory.max", "104857600\n"},
      {"/sys/fs/cgroup/a/b/c/memory.max", "max\n"},
      {"/sys/fs/cgroup/a/b/c/memory.high", "209715200\n"},
      {"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"},
      {"/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n"},
      {"/sys/fs/cgroup/a/b/memory.current", "94371840\n"},
      {"/sys/fs/cgroup/a/b/memory.stat",
       "anon 1\nfile 2\ninactive_file 10485760\nactive_file 1048576\n"},
      {0}};
  assert_limits(tree, 100 * MIB, 200 * MIB, 1500);
  assert_string_equal(cgroup.memory_path, "/sys/fs/cgroup/a/b");
  assert_int_equal(os_fake.files_read, 1 + 4 * 3); /* three files in each of four directories */
  assert_int_equal(os_cgroup_used_bytes(&cgroup, 90 * MIB), 90 * MIB); /* calm: not looked into */
  assert_int_equal(os_cgroup_used_bytes(&cgroup, 75 * MIB), 79 * MIB);
}

TEST(v2_high_is_tightest) {
  static const struct os_fake_file tree[] = {{"/proc/self/cgroup", "0::/job\n"},
                                             {"/sys/fs/cgroup/job/memory.max", "104857600\n"},
                                             {"/sys/fs/cgroup/job/memory.high", "52428800\n"},
                                             {"/sys/fs/cgroup/job/memory.current", "1000\n"},
                                             {0}};
  assert_limits(tree, 100 * MIB, 50 * MIB, OS_CGROUP_NONE);
  assert_int_equal(os_cgroup_used_bytes(&cgroup, MIB), 1000);
}

/* A cgroup namespace: the container's own cgroup is the root of what it sees. */
TEST(v2_namespace_root) {
  static const struct os_fake_file tree[] = {{"/proc/self/cgroup", "0::/\n"},
                                             {"/sys/fs/cgroup/memory.max", "67108864\n"},
                                             {"/sys/fs/cgroup/cpu.max", "50000 200000\n"},
                                             {0}};
  assert_limits(tree, 64 * MIB, OS_CGROUP_NONE, 250);
}

TEST(v2_outside_of_the_namespace) {
  static const struct os_fake_file tree[] = {{"/proc/self/cgroup", "0::/../../elsewhere\n"},
                                             {"/sys/fs/cgroup/memory.max", "67108864\n"},
                                             {0}};
  assert_limits(tree, 64 * MIB, OS_CGROUP_NONE, OS_CGROUP_NONE);
}

TEST(v1) {
  static const struct os_fake_file tree[] = {
      {"/proc/self/cgroup", "9:name=systemd:/\n4:memory:/job/x\n2:cpu,cpuacct:/job\n0::/\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n"},
      {"/sys/fs/cgroup/memory/job/x/memory.limit_in_bytes", "9223372036854771712\n"},
      {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "100000000\n"},
      {"/sys/fs/cgroup/memory/job/memory.stat",
       "inactive_file 7\ntotal_inactive_file 30000000\n"
       "total_active_file 20000000\n"},
      {"/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n"},
      {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n"},
      {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
      {0}};
  assert_limits(tree, 100 * MIB, OS_CGROUP_NONE, 3000);
  assert_int_equal(os_fake.files_read, 1 + 3 + 2 * 2 * 2 + 2 * 3); /* cpu has two names */
  assert_int_equal(os_cgroup_used_bytes(&cgroup, MIB), 50000000);
}

/* A container without a namespace: the path is the host's, and not there. */
TEST(v1_with_the_path_of_the_host) {
  static const struct os_fake_file tree[] = {
      {"/proc/self/cgroup", "4:memory:/docker/0123456789abcdef\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "33554432\n"},
      {0}};
  assert_limits(tree, 32 * MIB, OS_CGROUP_NONE, OS_CGROUP_NONE);
}

TEST(hybrid) {
  static const struct os_fake_file tree[] = {
      {"/proc/self/cgroup", "4:memory:/\n0::/job\n"},
      {"/sys/fs/cgroup/unified/job/cpu.max", "100000 100000\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {0}};
  assert_limits(tree, OS_CGROUP_NONE, OS_CGROUP_NONE, 1000);
}

/* Nothing of this is a limit, and nothing of it does harm. */
TEST(nonsense) {
  static char long_path[2000];
  memcpy(long_path, "0::/", 4);
  memset(long_path + 4, 'x', sizeof long_path - 6);
  long_path[sizeof long_path - 2] = '\n';
  const char *const lists[] = {"",       "\n\n", "0::",       "0:\n",    "no colon\n",    "0::/a",
                               "::::\n", ":\n",  "4:mem:/\n", long_path, "1:cpu,:/a//b\n"};
  for (size_t index = 0; index < sizeof lists / sizeof lists[0]; index++) {
    const struct os_fake_file tree[] = {
        {"/proc/self/cgroup", lists[index]},
        {"/sys/fs/cgroup/memory.max", "99999999999999999999999999\n"},
        {"/sys/fs/cgroup/memory.high", "-5\n"},
        {"/sys/fs/cgroup/cpu.max", "100 0\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "18446744073709551615\n"},
        {0}};
    assert_limits(tree, OS_CGROUP_NONE, OS_CGROUP_NONE, OS_CGROUP_NONE);
  }
  os_fake.files = NULL;
}
