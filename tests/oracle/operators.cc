// operator new and delete in every form, a new that throws among them; each form allocates a size
// of its own, and all but one block a form are given back. tests/e2e/allocators_test.py runs it on
// every allocator that Debian has.
#include <cstddef>
#include <cstdio>
#include <new>

namespace {
constexpr int kRounds = 10;
constexpr std::align_val_t kAligned{64};

volatile std::size_t huge = static_cast<std::size_t>(1) << 60;

// Out of line, so that no pair of new and delete can be left out.
__attribute__((noinline)) void *keep(void *block) {
    asm volatile("" : "+r"(block) : : "memory");
    return block;
}

__attribute__((noinline)) int throwing() {
    int thrown = 0;
    for (int i = 0; i < kRounds; i++) {
        try {
            keep(::operator new(huge));
        } catch (const std::bad_alloc &) {
            thrown++;
        }
    }
    return thrown;
}
} // namespace

extern "C" __attribute__((noinline)) void plain_forms() {
    for (int i = 0; i < kRounds; i++) {
        void *one = keep(::operator new(1001));
        void *array = keep(::operator new[](1002));
        if (i > 0) {
            ::operator delete(one);
            ::operator delete[](array);
        }
    }
    for (int i = 0; i < kRounds; i++) {
        ::operator delete(keep(::operator new(1003)), static_cast<std::size_t>(1003));
        ::operator delete[](keep(::operator new[](1004)), static_cast<std::size_t>(1004));
    }
}

extern "C" __attribute__((noinline)) void nothrow_forms() {
    for (int i = 0; i < kRounds; i++) {
        void *one = keep(::operator new(2001, std::nothrow));
        void *array = keep(::operator new[](2002, std::nothrow));
        if (i > 0) {
            ::operator delete(one, std::nothrow);
            ::operator delete[](array, std::nothrow);
        }
    }
}

extern "C" __attribute__((noinline)) void aligned_forms() {
    for (int i = 0; i < kRounds; i++) {
        void *one = keep(::operator new(3008, kAligned));
        void *array = keep(::operator new[](3072, kAligned));
        void *quiet = keep(::operator new(3136, kAligned, std::nothrow));
        void *quiet_array = keep(::operator new[](3200, kAligned, std::nothrow));
        if (i > 0) {
            ::operator delete(one, kAligned);
            ::operator delete[](array, static_cast<std::size_t>(3072), kAligned);
            ::operator delete(quiet, kAligned, std::nothrow);
            ::operator delete[](quiet_array, kAligned, std::nothrow);
        }
    }
}

// An argument leaves the throwing out: mimalloc as Debian builds it is C and aborts there.
int main(int count, char **) {
    plain_forms();
    nothrow_forms();
    if (count == 1 && throwing() != kRounds) {
        return 1;
    }
    aligned_forms();
    std::puts("done");
    return 0;
}
