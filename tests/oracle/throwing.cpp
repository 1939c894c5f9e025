// A program whose allocations cannot be had: what operator new throws, and what a new handler throws, leaves it through whatever stands
// between. It prints how often each was caught, and how often something was destroyed on the way.
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>

struct Enough {};
static int destroyed;
struct OnTheWay {
    ~OnTheWay() { destroyed++; }
};

static void give_up() { throw Enough(); }

__attribute__((noinline)) static void *ask(size_t size) {
    OnTheWay guard;
    return ::operator new(size);
}

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if (argc > 1 && std::string(argv[1]) == "wait") {
        puts("ready");
        while (getchar() != '\n') {
        }
    }
    const volatile size_t much = SIZE_MAX / 4;
    int caught = 0, of_arrays = 0, aligned = 0, nothing = 0, of_handlers = 0;
    for (int i = 0; i < 500; i++) {
        try {
            ::operator delete(ask(much));
        } catch (const std::bad_alloc &) {
            caught++;
        }
        try {
            delete[] new char[much];
        } catch (const std::bad_alloc &) {
            of_arrays++;
        }
        try {
            ::operator delete(::operator new(much, std::align_val_t(64)), std::align_val_t(64));
        } catch (const std::bad_alloc &) {
            aligned++;
        }
        char *none = new (std::nothrow) char[much];
        nothing += none == nullptr;
        std::set_new_handler(give_up);
        try {
            ::operator delete(ask(much));
        } catch (const Enough &) {
            of_handlers++;
        }
        std::set_new_handler(nullptr);
        delete new int(i);
    }
    printf("%d %d %d %d %d %d\n", caught, of_arrays, aligned, nothing, of_handlers, destroyed);
    return 7;
}
