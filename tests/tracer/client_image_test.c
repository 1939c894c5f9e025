#include "tracer/client_image.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "ipc/attach/block.h"
#include "tests/suite.h"

enum { PAGE = 4096 };
static const uint64_t address = 0x7f1234560000;

static char folder[] = "/tmp/memlog-image.XXXXXX";
static char path[64];
static char real[4096]; /* libmemlog-attached.so of this build */
static uint8_t *bytes;
static size_t count;

static void begin(void) {
    struct stat about;
    (void)strcpy(strrchr(folder, '.'), ".XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/it.so", folder);
    const int fd = open(real, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s is not there", real);
    ck_assert_int_eq(fstat(fd, &about), 0);
    count = (size_t)about.st_size;
    bytes = malloc(count);
    ck_assert_int_eq(read(fd, bytes, count), (ssize_t)count);
    (void)close(fd);
}

static void end(void) {
    (void)unlink(path);
    (void)rmdir(folder);
    free(bytes);
}

static void put(size_t size) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    (void)close(fd);
}

/* True: it was taken, and laid out. In each case nothing is touched that is not there. */
static bool take(void) {
    struct ml_client_image image;
    struct ml_error_message error = {.text = ""};
    if (!ml_client_image_read(path, &image, &error)) {
        ck_assert_int_gt((int)strlen(error.text), 0);
        return false;
    }
    const bool is_laid_out = ml_client_image_lay_out(&image, address);
    ml_client_image_free(&image);
    ck_assert_ptr_null(image.bytes);
    return is_laid_out;
}

static bool is_within(const struct ml_client_image *image, uint64_t at, int protection) {
    for (uint32_t i = 0; i < image->segments_count; i++) {
        const struct ml_client_segment *one = &image->segments[i];
        if (at >= one->start && at < one->end) {
            return (one->protection & protection) == protection;
        }
    }
    return false;
}

START_TEST(the_builds_own_client_is_read_whole) {
    struct ml_client_image image;
    struct ml_error_message error = {.text = ""};
    ck_assert_msg(ml_client_image_read(real, &image, &error), "%s", error.text);
    ck_assert_uint_eq(image.block_at % PAGE, 0);
    ck_assert_uint_eq(image.block_bytes, sizeof(struct ml_attach_block));
    ck_assert(is_within(&image, image.block_at, PROT_READ | PROT_WRITE));
    ck_assert(is_within(&image, image.block_at + image.block_bytes - 1, PROT_READ | PROT_WRITE));
    ck_assert(is_within(&image, image.enter_at, PROT_READ | PROT_EXEC));
    ck_assert_uint_le(image.kept_bytes, image.count_bytes);
    ck_assert_uint_eq(image.count_bytes % PAGE, 0);
    for (uint32_t i = 0; i < image.segments_count; i++) {
        const struct ml_client_segment *one = &image.segments[i];
        ck_assert_int_ne(one->protection & (PROT_WRITE | PROT_EXEC), PROT_WRITE | PROT_EXEC);
        ck_assert_uint_eq((one->start | one->end) % PAGE, 0);
        ck_assert_uint_le(one->end, image.count_bytes);
        ck_assert(i == 0 || image.segments[i - 1].end <= one->start);
    }
    /* The tracer writes the mark when all else is there. */
    const char nothing[ML_ATTACH_MARK_BYTES] = "";
    ck_assert_int_eq(memcmp(image.bytes + image.block_at, nothing, sizeof(nothing)), 0);
    ml_client_image_free(&image);
}
END_TEST

START_TEST(laid_out_it_differs_by_its_address_where_it_names_itself) {
    struct ml_client_image one;
    struct ml_client_image other;
    struct ml_error_message error = {.text = ""};
    const uint64_t farther = 0x100000;
    ck_assert(
        ml_client_image_read(real, &one, &error) && ml_client_image_read(real, &other, &error)
    );
    ck_assert_uint_eq(one.fingerprint, other.fingerprint);
    ck_assert(ml_client_image_lay_out(&one, address));
    ck_assert(ml_client_image_lay_out(&other, address + farther));
    uint64_t differ = 0;
    for (uint64_t at = 0; at + sizeof(uint64_t) <= one.count_bytes; at += sizeof(uint64_t)) {
        uint64_t a = 0;
        uint64_t b = 0;
        memcpy(&a, one.bytes + at, sizeof(a));
        memcpy(&b, other.bytes + at, sizeof(b));
        if (a != b) {
            ck_assert_uint_eq(b - a, farther);
            ck_assert_uint_ge(a, address);
            ck_assert_uint_le(a, address + one.count_bytes);
            differ++;
        }
    }
    ck_assert_uint_eq(differ, one.relocations_count);
    ml_client_image_free(&one);
    ml_client_image_free(&other);
}
END_TEST

START_TEST(another_file_has_another_fingerprint) {
    struct ml_client_image one;
    struct ml_client_image other;
    struct ml_error_message error = {.text = ""};
    bytes[count - 1] ^= 1;
    put(count);
    ck_assert(
        ml_client_image_read(real, &one, &error) && ml_client_image_read(path, &other, &error)
    );
    ck_assert_uint_ne(one.fingerprint, other.fingerprint);
    ml_client_image_free(&one);
    ml_client_image_free(&other);
}
END_TEST

START_TEST(what_is_no_client_is_refused) {
    ck_assert(!take()); /* it is not there */
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert(!take());
    (void)rmdir(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!take());
    (void)unlink(path);
    put(0);
    ck_assert(!take());
    struct ml_client_image image;
    struct ml_error_message error = {.text = ""};
    ck_assert(!ml_client_image_read("/proc/self/exe", &image, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "not memlog's"));
}
END_TEST

START_TEST(one_that_is_cut_short_is_refused) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)bytes;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(const void *)(bytes + header->e_phoff);
    size_t needed = 0;
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        const size_t end = segments[i].p_offset + segments[i].p_filesz;
        needed = segments[i].p_type == PT_LOAD && end > needed ? end : needed;
    }
    for (size_t size = 0; size < needed; size += size < 1024 ? 1 : needed / 200) {
        put(size);
        ck_assert_msg(!take(), "cut to %zu of %zu bytes", size, needed);
    }
    put(needed); /* behind it are names that nobody needs */
    ck_assert(take());
}
END_TEST

/* Each bit of the headers, and of all words that say where something lies. */
static void flip(size_t from, size_t to) {
    for (size_t at = from; at < to; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[at] ^= (uint8_t)(1u << bit);
            put(count);
            (void)take();
            bytes[at] ^= (uint8_t)(1u << bit);
        }
    }
}

START_TEST(a_flipped_bit_of_its_headers_does_no_harm) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)bytes;
    flip(0, sizeof(*header));
    flip(header->e_phoff, header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr));
}
END_TEST

START_TEST(a_flipped_bit_of_its_dynamic_section_does_no_harm) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)bytes;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(const void *)(bytes + header->e_phoff);
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_DYNAMIC) {
            flip(segments[i].p_offset, segments[i].p_offset + segments[i].p_filesz);
        }
    }
}
END_TEST

int main(void) {
    const ssize_t length = readlink("/proc/self/exe", real, sizeof(real) - 64);
    char *slash = length > 0 ? strrchr(real, '/') : NULL;
    if (slash == NULL) {
        return EXIT_FAILURE;
    }
    (void)strcpy(slash + 1, "libmemlog-attached.so");
    TCase *tests = tcase_create("client_image");
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, the_builds_own_client_is_read_whole);
    tcase_add_test(tests, laid_out_it_differs_by_its_address_where_it_names_itself);
    tcase_add_test(tests, another_file_has_another_fingerprint);
    tcase_add_test(tests, what_is_no_client_is_refused);
    tcase_add_test(tests, one_that_is_cut_short_is_refused);
    tcase_add_test(tests, a_flipped_bit_of_its_headers_does_no_harm);
    tcase_add_test(tests, a_flipped_bit_of_its_dynamic_section_does_no_harm);
    return run_suite("client_image", tests);
}
