/* Whether this kernel gives a page that was only read the page of zeros, which is nobody's, or one
 * of its own as some virtual machines' do (pvm_no_zero_page). Room: tests. Context: any; maps and
 * unmaps one page. */
#ifndef MEMLOG_TESTS_ZEROS_H
#define MEMLOG_TESTS_ZEROS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static inline bool has_page_of_zeros(void) {
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    const uint64_t is_of_one_process = (uint64_t)1 << 56; /* never the page of zeros */
    uint64_t entry = 0;
    void *page = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)*(volatile char *)page;
    const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const off_t at = (off_t)((uintptr_t)page / bytes * sizeof(entry));
    const bool was_read = pread(pagemap, &entry, sizeof(entry), at) == (ssize_t)sizeof(entry);
    (void)close(pagemap);
    (void)munmap(page, bytes);
    return !was_read || (entry & is_of_one_process) == 0;
}

#endif
