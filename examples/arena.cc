// An arena that reports what it hands out, by type: nothing of it is freed one by one, and malloc
// sees its slabs alone.
//
//     g++ -std=c++17 -g $(pkg-config --cflags memlog) -o arena arena.cc
//     memlog run -- ./arena 1000
//     memlog report --heap=arena --by=type DUMP
#define MEMLOG_WEAK
#include <memlog.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

class Arena {
  public:
    // Blocks are numbered, as ids need not be addresses. So each arena has a heap of its own.
    explicit Arena(const char *name) : heap_(memlog_heap ? memlog_heap(name, 1) : 0) {
    }
    ~Arena() {
        clear();
    }
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    template <typename T, typename... Arguments> T *make(uint32_t type, Arguments &&...arguments) {
        static_assert(alignof(T) <= alignof(std::max_align_t));
        return new (take(sizeof(T), type)) T(std::forward<Arguments>(arguments)...);
    }

    // All blocks at once.
    void clear() {
        for (; first_ != next_; first_++) {
            if (heap_ != 0) {
                memlog_free(heap_, first_);
            }
        }
        slabs_.clear();
        used_ = SLAB;
    }

  private:
    static constexpr std::size_t SLAB = 64 * 1024;

    void *take(std::size_t bytes, uint32_t type) {
        const std::size_t room =
            (bytes + alignof(std::max_align_t) - 1) & -alignof(std::max_align_t);
        if (room > SLAB - used_) {
            slabs_.push_back(std::make_unique<std::byte[]>(SLAB));
            used_ = 0;
        }
        void *block = slabs_.back().get() + used_;
        used_ += room;
        if (heap_ != 0) {
            memlog_alloc_typed(heap_, next_, bytes, type);
        }
        next_++;
        return block;
    }

    const uint32_t heap_;
    uint64_t first_ = 1, next_ = 1;
    std::vector<std::unique_ptr<std::byte[]>> slabs_;
    std::size_t used_ = SLAB;
};

struct Node {
    Node *left, *right;
};
struct Edge {
    int from, to, weight;
};

int main(int argc, char **argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : 1000;
    const uint32_t node = memlog_type ? memlog_type("Node") : 0;
    const uint32_t edge = memlog_type ? memlog_type("Edge") : 0;
    Arena forgotten("scratch"), kept("arena");
    for (int i = 0; i < count; i++) {
        forgotten.make<Node>(node);
        kept.make<Node>(node);
        kept.make<Edge>(edge);
    }
    forgotten.clear();
    std::printf(
        "Node %d %zu\nEdge %d %zu\n", count, count * sizeof(Node), count, count * sizeof(Edge)
    );
    std::fflush(stdout);
    std::_Exit(0); // as a program that leaves its arena to the end
}
