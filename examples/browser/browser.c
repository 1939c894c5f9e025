/* A browser in small that profiles itself: `browser DIR`. Client and host are linked in, nothing is
 * preloaded, and no `memlog` runs. Its processes are known by their roles; renderers report the
 * objects of their pages as a heap of their own, by type, and say what they are doing; a renderer
 * that grows too large makes a dump, which is pruned and put into DIR/inbox. The first line that it
 * prints is the address of memlog's live page; it ends at Enter.
 *
 *     gcc -g $(pkg-config --cflags memlog-host) -DSERVICE="\"$(pkg-config --variable=service
 * memlog-host)\"" \ -o browser browser.c $(pkg-config --libs memlog-client memlog-host) -lpthread
 *     ./browser dumps
 *     memlog report --heap=dom --by=type dumps/0002.manual.pftrace */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <memlog.h>
#include <memlog_host.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RENDERERS = 2, ELEMENTS = 2000, GROWING_BYTES = 40 << 20 };

/* ---- a renderer: a page's objects, which it cuts out of a slab */

struct page {
    uint32_t heap, element, text;
    char *slab;
    size_t used;
    void *script; /* what it keeps */
};

static void *dom_take(struct page *page, size_t bytes, uint32_t type) {
    void *object = page->slab + page->used;
    page->used += bytes;
    memlog_alloc_typed(page->heap, (uintptr_t)object, bytes, type);
    return object;
}

static void parse(struct page *page) {
    MEMLOG_SCOPE("parse");
    for (int i = 0; i < ELEMENTS; i++) {
        (void)dom_take(page, 120, page->element);
        (void)dom_take(page, 40, page->text);
    }
}

static void *layout(void *context) {
    memlog_thread_name("layout of the page in front");
    MEMLOG_SCOPE("layout");
    return memset(malloc(100 * 1000), 0, (size_t)context);
}

static void load(struct page *page) {
    MEMLOG_SCOPE("load");
    pthread_t thread;
    parse(page);
    if (pthread_create(&thread, NULL, layout, (void *)(size_t)1000) == 0) {
        void *boxes = NULL;
        (void)pthread_join(thread, &boxes);
    }
}

static int renderer(int number) {
    static struct page page;
    page = (struct page
    ){.heap = memlog_heap("dom", 1),
      .element = memlog_type("Element"),
      .text = memlog_type("Text"),
      .slab = malloc((size_t)ELEMENTS * 200)};
    load(&page);
    if (number == 0) { /* one page does not stop growing */
        MEMLOG_SCOPE("script");
        page.script = malloc(GROWING_BYTES);
        memset(page.script, 1, page.script != NULL ? GROWING_BYTES : 0);
    }
    return 0;
}

/* ---- all processes but the first */

static int child(const char *type, int number) {
    if (memlog_start(NULL) != 0) { /* MEMLOG_SOCKET says where the host is */
        return 3;
    }
    const int code = strcmp(type, "--type=renderer") == 0 ? renderer(number) : 0;
    void *textures = strcmp(type, "--type=gpu-process") == 0 ? malloc(3 << 20) : NULL;
    (void)puts("ready");
    (void)fflush(stdout);
    (void)getchar(); /* until the browser is done */
    free(textures);
    return code;
}

/* ---- the first process */

struct other {
    pid_t pid;
    FILE *says;
    int end; /* closed: it ends */
};

static int start(const char *self, char *type, char *number, struct other *out) {
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) {
        return -1;
    }
    out->pid = fork();
    if (out->pid == 0) {
        (void)dup2(down[0], STDIN_FILENO);
        (void)dup2(up[1], STDOUT_FILENO);
        execl(self, "browser", type, number, (char *)NULL);
        _exit(127);
    }
    (void)close(down[0]);
    (void)close(up[1]);
    out->end = down[1];
    out->says = fdopen(up[0], "r");
    return out->pid > 0 && out->says != NULL ? 0 : -1;
}

static int is_ready(const struct other *other) {
    char line[16];
    return fgets(line, sizeof(line), other->says) != NULL && strcmp(line, "ready\n") == 0;
}

static void finish(struct other *other) {
    (void)close(other->end);
    (void)waitpid(other->pid, NULL, 0);
    (void)fclose(other->says);
}

static void tell(void *context, const char *text) {
    (void)context;
    (void)fprintf(stderr, "%s\n", text);
}

/* When a dump is taken besides, and where what is left of it goes. */
static int write_rules(const char *folder, char *rules, char *inbox, size_t bytes) {
    (void)snprintf(rules, bytes, "--triggers=%s/rules.json", folder);
    (void)snprintf(inbox, bytes, "--upload=%s/inbox", folder);
    FILE *file = fopen(strchr(rules, '=') + 1, "w");
    if (file == NULL || (mkdir(strchr(inbox, '=') + 1, 0700) != 0 && errno != EEXIST)) {
        return -1;
    }
    (void)fprintf(file, "{\"interval_seconds\": 1, \"live\": {\"renderer\": \"20M\"}}\n");
    return fclose(file);
}

static int browse(const char *self, char *folder) {
    char error[512] = "", path[4096] = "", rules[4200], inbox[4200];
    char *options[] = {
        "--memlog=all", "--memlog-stack-mode=mixed", rules, inbox, "-o", folder, NULL};
    if ((mkdir(folder, 0700) != 0 && errno != EEXIST) ||
        write_rules(folder, rules, inbox, sizeof(rules)) != 0) {
        perror(folder);
        return 2;
    }
    const struct memlog_host_settings settings = {
        .options = options, .program = "browser", .service_path = SERVICE, .on_notice = tell};
    struct memlog_host *host = memlog_host_start(&settings, error, sizeof(error));
    if (host == NULL) {
        (void)fprintf(stderr, "no host: %s\n", error);
        return 2;
    }
    (void)setenv("MEMLOG_SOCKET", memlog_host_socket(host), 1);
    if (memlog_start(memlog_host_socket(host)) != 0) {
        (void)fprintf(stderr, "this process is not recorded\n");
    }
    const int has_page = memlog_host_page(host, NULL, path, sizeof(path)) == 0;
    (void)printf("%s%s\n", has_page ? "" : "no page: ", path);
    (void)fflush(stdout);

    struct other others[RENDERERS + 1];
    char numbers[RENDERERS][16];
    int all = start(self, "--type=gpu-process", "0", &others[RENDERERS]) == 0 &&
              is_ready(&others[RENDERERS]);
    for (int i = 0; i < RENDERERS && all; i++) {
        (void)snprintf(numbers[i], sizeof(numbers[i]), "%d", i);
        all = start(self, "--type=renderer", numbers[i], &others[i]) == 0 && is_ready(&others[i]);
    }
    if (!all) {
        (void)fprintf(stderr, "a process of the browser's did not come up\n");
        return 2;
    }
    (void)getchar(); /* a person looks at the page; the large renderer is noticed */
    if (memlog_host_dump(host, path, sizeof(path)) != 0) {
        (void)fprintf(stderr, "no dump: %s\n", path);
        return 2;
    }
    (void)printf("%s\n", path);
    for (int i = 0; i <= RENDERERS; i++) {
        finish(&others[i]);
    }
    if (memlog_host_stop(host, path, sizeof(path)) != 0) {
        (void)fprintf(stderr, "no last dump: %s\n", path);
        return 2;
    }
    (void)printf("%s\n", path);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3) {
        return child(argv[1], atoi(argv[2]));
    }
    if (argc != 2) {
        (void)fprintf(stderr, "browser DIR\n");
        return 1;
    }
    char self[4096] = "";
    return readlink("/proc/self/exe", self, sizeof(self) - 1) > 0 ? browse(self, argv[1]) : 2;
}
