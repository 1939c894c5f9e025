// Leaks beside honest memory, each by a function whose name says so: `leaks KIND`, where KIND is
//   deep         sixty calls down
//   containers   what a map of vectors of strings asks for
//   sites        a thousand callers of one function, each with little
//   slow         a hundredth of what thirty honest caches hold, less than each of them
//   child        of four children one leaks
//   thread       a thread with a name of its own
// Ends by SIGKILL (its first process) with all of it live.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int kSites = 1000;
constexpr int kFillers = 300;
constexpr int kLarge = 30;

void *volatile kept;

void Keep(void *block, size_t bytes) {
    std::memset(block, 1, bytes);
    kept = block;
}

} // namespace

// Honest memory by as many functions as a program has.
template <int N> void honest_cache(size_t bytes) {
    Keep(std::malloc(bytes + N), bytes);
}

template <int... N> void fill(size_t bytes, std::integer_sequence<int, N...>) {
    void (*const caches[])(size_t) = {honest_cache<N>...};
    for (auto *cache : caches) {
        cache(bytes);
    }
}

void fill_caches(size_t bytes) {
    fill(bytes, std::make_integer_sequence<int, kFillers>());
}

void deep_leak(int blocks) {
    for (int i = 0; i < blocks; i++) {
        Keep(std::malloc(120), 120);
    }
}

void descend(int left) {
    if (left > 0) {
        descend(left - 1);
    } else {
        deep_leak(20000);
    }
}

using Sessions = std::map<int, std::vector<std::string>>;

void leaking_sessions(Sessions &sessions) {
    for (int i = 0; i < 20000; i++) {
        sessions[i % 500].push_back(std::string(100, 'x'));
    }
}

void leaked_line() {
    Keep(std::malloc(300), 300);
}

template <int N> void call_site() {
    leaked_line();
}

template <int... N> void call_sites(std::integer_sequence<int, N...>) {
    void (*const sites[])() = {call_site<N>...};
    for (auto *site : sites) {
        site();
    }
}

void slow_leak(int blocks) {
    for (int i = 0; i < blocks; i++) {
        Keep(std::malloc(100), 100);
    }
}

void child_leak(int blocks) {
    deep_leak(0);
    for (int i = 0; i < blocks; i++) {
        Keep(std::malloc(500), 500);
    }
}

void fork_children() {
    for (int i = 0; i < 4; i++) {
        const pid_t child = fork();
        if (child == 0) {
            fill_caches(500);
            if (i == 2) {
                child_leak(2000);
            }
            _exit(0);
        }
        (void)waitpid(child, nullptr, 0);
    }
}

void *thread_leak(void *name) {
    (void)pthread_setname_np(pthread_self(), static_cast<const char *>(name));
    deep_leak(10000);
    return nullptr;
}

int main(int argc, char **argv) {
    const std::string kind = argc > 1 ? argv[1] : "";
    static Sessions sessions;

    if (kind == "deep") {
        fill_caches(2000);
        descend(60);
    } else if (kind == "containers") {
        fill_caches(4000);
        leaking_sessions(sessions);
    } else if (kind == "sites") {
        fill_caches(15000);
        call_sites(std::make_integer_sequence<int, kSites>());
    } else if (kind == "slow") {
        fill(1300000, std::make_integer_sequence<int, kLarge>());
        slow_leak(4000);
    } else if (kind == "child") {
        fill_caches(1000);
        fork_children();
    } else if (kind == "thread" && argc > 3) {
        pthread_t thread;
        (void)prctl(PR_SET_NAME, argv[2]);
        fill_caches(1000);
        if (pthread_create(&thread, nullptr, thread_leak, argv[3]) == 0) {
            (void)pthread_join(thread, nullptr);
        }
    } else {
        return 2;
    }
    return std::raise(SIGKILL);
}
