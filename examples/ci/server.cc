// A server whose cache never forgets: what a build server's budget is there for.
//   server REQUESTS
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

struct SessionCache {
    std::string &get(int id) {
        auto found = sessions.find(id);
        if (found == sessions.end()) {
            found = sessions.emplace(id, std::string(400, 'x')).first;
        }
        return found->second;
    }
    std::map<int, std::string> sessions;
};

static size_t handle(SessionCache &cache, int id) {
    return cache.get(id).size();
}

int main(int argc, char **argv) {
    const int requests = argc > 1 ? std::atoi(argv[1]) : 1000;
    SessionCache cache;
    size_t bytes = 0;
    for (int id = 0; id < requests; id++) {
        bytes += handle(cache, id);
    }
    std::printf("%zu bytes answered\n", bytes);
    return 0;
}
