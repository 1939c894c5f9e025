// Threads that throw all the time: out of operator new where there is no memory, out of a class's
// own operator new, across frames that have things to destroy, again from where it was caught; and
// one that jumps out of a handler of SIGSEGV. All is counted.
//
// With OWN_OPERATORS the program has an operator new of its own.
#include "tests/oracle/steady/steady.h"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <exception>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <vector>

#ifdef OWN_OPERATORS
__attribute__((noinline)) void *operator new(size_t size) {
    void *address = size < SIZE_MAX / 8 ? malloc(size) : nullptr;
    if (address == nullptr) {
        throw std::bad_alloc();
    }
    return address;
}
__attribute__((noinline)) void *operator new[](size_t size) {
    return operator new(size);
}
__attribute__((noinline)) void operator delete(void *address) noexcept {
    free(address);
}
__attribute__((noinline)) void operator delete(void *address, size_t) noexcept {
    free(address);
}
__attribute__((noinline)) void operator delete[](void *address) noexcept {
    free(address);
}
__attribute__((noinline)) void operator delete[](void *address, size_t) noexcept {
    free(address);
}
#endif

namespace {

enum { THREADS = 4, DEPTH = 12 };
std::atomic<uint32_t> ended;

struct Counted {
    int *destroyed;
    std::string text;
    Counted(int *count, int depth) : destroyed(count), text(static_cast<size_t>(30 + depth), 'x') {
    }
    ~Counted() {
        (*destroyed)++;
    }
};

struct Refuses {
    static void *operator new(size_t) {
        throw std::length_error("none");
    }
};

// The compiler is not to know that it always throws.
__attribute__((noipa)) void throw_one(uint64_t kind) {
    const volatile size_t much = SIZE_MAX / 4;
    switch (kind % 5) {
    case 0:
        ::operator delete[](::operator new[](much));
        break;
    case 1:
        ::operator delete(::operator new(much));
        break;
    case 2:
        delete new Refuses;
        break;
    case 3:
        (void)std::vector<int>().at(7);
        break;
    default:
        throw std::runtime_error(std::string(200, 'r'));
    }
}

__attribute__((noinline)) void descend(int depth, uint64_t kind, int *destroyed) {
    Counted one(destroyed, depth);
    if (depth == 0) {
        throw_one(kind);
    } else if (depth == DEPTH / 2) {
        try {
            descend(depth - 1, kind, destroyed);
        } catch (const std::exception &) {
            Counted another(destroyed, depth);
            throw;
        }
    } else {
        descend(depth - 1, kind, destroyed);
    }
}

void *run(void *argument) {
    for (uint64_t turn = reinterpret_cast<uintptr_t>(argument); !steady_is_over(); turn++) {
        int destroyed = 0;
        bool was_caught = false;
        std::map<std::string, std::string> kept;
        for (int i = 0; i < 10; i++) {
            kept[std::to_string(turn + static_cast<uint64_t>(i))] =
                std::string(static_cast<size_t>(i) * 20, 'k');
        }
        try {
            descend(DEPTH, turn, &destroyed);
        } catch (const std::exception &) {
            was_caught = true;
        }
        steady_count(was_caught, "an exception", static_cast<long>(turn % 5));
        steady_count(destroyed == DEPTH + 2, "what was destroyed", destroyed);
        steady_count(kept.size() == 10 && kept.rbegin()->second.size() % 20 == 0, "a map", 0);
    }
    ended++;
    return nullptr;
}

sigjmp_buf back;
volatile char *forbidden;

void on_fault(int) {
    siglongjmp(back, 1);
}

__attribute__((noinline)) int fault_at(int depth, char *block) {
    volatile char here[100];
    here[depth] = block[0];
    return depth == 0 ? *forbidden : fault_at(depth - 1, block) + here[depth];
}

void *run_faults(void *) {
    for (volatile uint64_t turn = 0; !steady_is_over(); turn = turn + 1) {
        char *volatile block = static_cast<char *>(calloc(1, 5000));
        volatile bool came_back = false;
        if (sigsetjmp(back, 1) == 0) {
            (void)fault_at(20, block);
        } else {
            came_back = true;
        }
        steady_count(came_back && block[4999] == 0, "a jump out of a handler", 0);
        free(block);
        steady_count(steady_blocks(turn), "blocks", 0);
    }
    ended++;
    return nullptr;
}

} // namespace

int main() {
    struct sigaction action = {};
    action.sa_handler = on_fault;
    sigaction(SIGSEGV, &action, nullptr);
    forbidden =
        static_cast<char *>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (uintptr_t i = 0; i < THREADS; i++) {
        steady_thread(run, reinterpret_cast<void *>(i));
    }
    steady_thread(run_faults, nullptr);
    steady_wait();
    while (ended <= THREADS) {
        steady_sleep_us(1000);
    }
    return steady_end();
}
