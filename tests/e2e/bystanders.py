#!/usr/bin/python3
"""Kinds of programs, each with how it is made, how it is run, and what memlog must say of it.

A kind names what it needs; where that is not there it is skipped by name. `words` may hold {folder}, the program's working folder.
`sees` holds the processes that the run is about: the name as the kernel tells it, and the word on its coverage:

  SEEN        recorded, and nothing is known that went past memlog
  UNSEEN      recorded, and the report says what went past memlog
  UNRECORDED  in the list, not recorded, with its reason
  BY_READING  recorded; which of the first two words is right the figures of its memory in the report decide (bystanders_test.py)

Of all kinds no event is lost.

Run by tests/e2e/bystanders_test.py; `tests/e2e/bystanders.py [NAME...]` runs all of them by hand."""
import functools
import os
import pathlib
import shutil
import subprocess
import sys

import harness
import servers

SEEN, UNSEEN, UNRECORDED, BY_READING = "seen", "unseen", "unrecorded", "by reading"

# Where Debian puts it; tools that somebody installed elsewhere come with environments of their own.
DEBIAN = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
MIMALLOC = str(max(pathlib.Path("/usr/lib").glob("*/libmimalloc.so.[23]"), default="/usr/lib/libmimalloc.so.2"))


class Kind:
    def __init__(self, name, words, sees, needs=(), before=None, stdin=b"", short=False, timeout=60, same_stderr=True, root=False):
        self.name = name
        self.words = words
        self.sees = sees
        self.needs = needs
        self.before = before
        self.stdin = stdin
        self.short = short
        self.timeout = timeout
        self.same_stderr = same_stderr
        self.root = root

    def lacks(self):
        """What is not there; "" when nothing is missing."""
        if self.root and os.geteuid() != 0:
            return "root"
        for need in self.needs:
            found = os.path.exists(need) if need.startswith("/") else shutil.which(need, path=DEBIAN)
            if not found:
                return need
        return ""


def compiled(source, *options, compiler="gcc", name="program"):
    """Builds {folder}/NAME of that text; what it needs besides stands in `options`."""

    def build(folder):
        path = folder / f"{name}.c"
        path.write_text(source)
        subprocess.run([compiler, "-o", folder / name, path, *options], check=True, cwd=folder, capture_output=True)
        path.unlink()

    return build


def each(*steps):
    def build(folder):
        for step in steps:
            step(folder)

    return build


def text(name, content, mode=0o644):
    def write(folder):
        path = folder / name
        path.write_text(content.replace("{folder}", str(folder)))
        path.chmod(mode)

    return write


def go_program(source, **environment):
    def build(folder):
        (folder / "main.go").write_text(source)
        harness.go_build(folder / "program", folder / "main.go", **environment)
        (folder / "main.go").unlink()

    return build


# Keeps blocks of its own and says so; exit code 7, as a script's reader would notice a change.
HEAP = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    size_t sum = 0;
    for (int i = 1; i <= 400; i++) { char *p = malloc(1000); memset(p, i, 1000); sum += (unsigned char)p[i]; if (i % 2) free(p); }
    printf("sum %zu\\n", sum);
    return 7;
}
"""

STARTS = """
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void execute_raw(char **program) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(SYS_execve), "D"(program[0]), "S"(program), "d"(environ) : "rcx", "r11", "memory");
}
int main(int count, char **words) {
    char *held = malloc(50000);
    memset(held, 1, 50000);
    int status = 0;
    pid_t child = 0;
    char **program = words + 2;
    if (!strcmp(words[1], "raw")) { child = fork(); if (!child) { execute_raw(program); _exit(99); } }
    else if (!strcmp(words[1], "syscall")) { child = fork(); if (!child) { syscall(SYS_execve, program[0], program, environ); _exit(99); } }
    else if (!strcmp(words[1], "vfork")) { child = vfork(); if (!child) { execv(program[0], program); _exit(99); } }
    else if (!strcmp(words[1], "spawn")) { if (posix_spawn(&child, program[0], NULL, NULL, program, environ)) return 98; }
    else { execute_raw(program); return 97; }
    waitpid(child, &status, 0);
    printf("%d %d\\n", WEXITSTATUS(status), count > 2);
    return 7;
}
"""

QUIET_CHILD = """
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    if (fork() == 0) {
        prctl(PR_SET_NAME, "quiet");
        memset(mmap(0, 30 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 30 << 20);
        usleep(1500000);
        _exit(0);
    }
    int status;
    wait(&status);
    return 7;
}
"""

MAPS = """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 10; i++) memset(mmap(0, 10 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 10 << 20);
    puts("mapped");
    fflush(stdout);
    sleep(1);
    return 7;
}
"""

OWN = """
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char *room; static size_t used, size;
__attribute__((visibility("default"))) void *malloc(size_t n) {
    n = (n + 31) & ~(size_t)15;
    if (!room || used + n > size) { size = n > (64 << 20) ? n : 64 << 20; room = mmap(0, size, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); used = 0; }
    char *p = room + used; *(size_t *)p = n - 16; used += n; return p + 16;
}
__attribute__((visibility("default"))) void free(void *p) { (void)p; }
__attribute__((visibility("default"))) void *calloc(size_t a, size_t b) { return memset(malloc(a * b), 0, a * b); }
__attribute__((visibility("default"))) void *realloc(void *p, size_t n) {
    void *q = malloc(n); if (p) { size_t o = ((size_t *)p)[-2]; memcpy(q, p, o < n ? o : n); } return q; }
int main(void) {
    for (int i = 0; i < 4000; i++) memset(malloc(10000), 1, 10000);
    puts("own"); fflush(stdout); sleep(1);
    return 7;
}
"""

PREFIXED = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
void *TAKE(size_t);
int main(void) {
    for (int i = 0; i < 4000; i++) memset(TAKE(10000), 1, 10000);
    puts("prefixed"); fflush(stdout); sleep(1);
    return 7;
}
"""

LIBRARY = """
#include <stdlib.h>
#include <string.h>
__attribute__((visibility("default"))) void *take(void) {
    void *p = 0;
    for (int i = 0; i < 40; i++) { p = malloc(1000000); memset(p, 1, 1000000); }
    return p;
}
__attribute__((visibility("default"))) void give(void *p) { free(p); }
"""

OPENS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    void *library = OPEN;
    if (!library) { puts(dlerror()); return 1; }
    void *(*take)(void) = dlsym(library, "take");
    void (*give)(void *) = dlsym(library, "give");
    void *p = take();
    if (CROSS) for (int i = 0; i < 100; i++) give(malloc(10000));
    printf("opened %d\\n", p != 0); fflush(stdout); sleep(1);
    return 7;
}
"""


def opens(how, cross):
    def build(folder):
        (folder / "library.c").write_text(LIBRARY)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", "library.so", "library.c"], check=True, cwd=folder)
        (folder / "library.c").unlink()
        compiled(OPENS.replace("OPEN;", how + ";").replace("CROSS", cross), "-ldl")(folder)

    return build


WRITES_FREED = HEAP.replace("return 7;", "char *q = malloc(10); free(q); fflush(stdout); q[1] = 2; return (int)sum;")

MEMFD = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    int from = open(words[1], O_RDONLY), to = memfd_create("program", MFD_CLOEXEC);
    struct stat facts;
    fstat(from, &facts);
    sendfile(to, from, 0, facts.st_size);
    fexecve(to, words + 1, environ);
    return 90 + count;
}
"""

DAEMON = """
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    if (fork() == 0) {
        setsid();
        if (fork() == 0) { char *p = malloc(123456); memset(p, 1, 123456); usleep(200000); write(1, "daemon\\n", 7); _exit(0); }
        _exit(0);
    }
    int status;
    wait(&status);
    return 7;
}
"""

CLOSES = """
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    for (int i = 3; i < 2048; i++) close(i);
    int ends[2];
    if (pipe(ends) != 0) return 1;
    for (int i = 0; i < 3000; i++) { char *p = malloc(100); memset(p, 1, 100); if (i % 3) free(p); }
    printf("%d %d\\n", ends[0], ends[1]);
    return 7;
}
"""

LIMITS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
int main(void) {
    struct rlimit limit = {256 << 20, 256 << 20};
    setrlimit(RLIMIT_AS, &limit);
    setrlimit(RLIMIT_DATA, &limit);
    char *p = malloc(64 << 20);
    if (!p) { puts("no room"); return 1; }
    memset(p, 1, 64 << 20);
    printf("%d\\n", mlockall(MCL_CURRENT) == 0 || 1);
    return 7;
}
"""

HELLO_32 = """
.globl _start
_start: mov $4, %eax; mov $1, %ebx; mov $text, %ecx; mov $6, %edx; int $0x80; mov $1, %eax; mov $7, %ebx; int $0x80
.data
text: .ascii "hello\\n"
"""


def of_32_bits(folder):
    (folder / "program.s").write_text(HELLO_32)
    subprocess.run(["as", "--32", "-o", "program.o", "program.s"], check=True, cwd=folder)
    subprocess.run(["ld", "-m", "elf_i386", "-o", "program", "program.o"], check=True, cwd=folder)


def setuid(folder):
    compiled(HEAP)(folder)
    os.chown(folder / "program", 65534, 65534)
    (folder / "program").chmod(0o4755)


def other_root(folder):
    """A root with the program and its libraries, and nothing of memlog."""
    compiled(HEAP)(folder)
    for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
        place = folder / "root" / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    shutil.copy(folder / "program", folder / "root" / "program")


GO = """
package main
import "fmt"
func main() { m := map[int]string{}; for i := 0; i < 1000; i++ { m[i] = fmt.Sprint(i) }; fmt.Println(len(m)) }
"""
CGO = GO.replace('import "fmt"', 'import "C"\nimport "fmt"')
GO_STARTS = """
package main
import ("fmt"; "os"; "os/exec")
func main() { for _, p := range os.Args[1:] { o, e := exec.Command(p).CombinedOutput(); fmt.Print(string(o)); fmt.Println(e) } }
"""
CGO_STARTS = GO_STARTS.replace("import (", 'import "C"\nimport (')
RUST = 'fn main() { let v: Vec<String> = (0..1000).map(|i| i.to_string()).collect(); println!("{}", v.len()); std::process::exit(7); }\n'
JAVA = 'public class A { public static void main(String[] a) { var l = new java.util.ArrayList<String>(); for (int i = 0; i < 1000; i++) l.add("x" + i); System.out.println(l.size()); System.exit(7); } }\n'
CXX = '#include <iostream>\n#include <map>\n#include <string>\nint main() { std::map<int, std::string> m; for (int i = 0; i < 1000; i++) m[i] = std::to_string(i); std::cout << m.size() << "\\n"; return 7; }\n'
NGINX = """
daemon off; master_process on; worker_processes 2; error_log /dev/null; pid {folder}/pid;
events { worker_connections 32; }
http { access_log off; client_body_temp_path {folder}/t; proxy_temp_path {folder}/t; fastcgi_temp_path {folder}/t; uwsgi_temp_path {folder}/t;
scgi_temp_path {folder}/t; server { listen unix:{folder}/s; location / { return 200 "hello\\n"; } } }
"""
PAGE = "<!doctype html><title>t</title><body><script>for (let i = 0; i < 500; i++) document.body.append(document.createElement('p'))</script>"
CHROMIUM = ("/usr/bin/chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--user-data-dir={folder}/home", "--dump-dom", "file://{folder}/page.html")
# The words on what goes unseen.
OWN_MALLOC = "^the executable's own malloc is called instead of memlog's: "
GO_UNSEEN = r"^the executable has an allocator of its own \(Go's heap: .*\), which memlog does not see$"
# What php's extensions have by its version: from 8.3 on they are loaded as other libraries are.
PHP_UNSEEN = r"^the allocator calls of opcache\.so and other libraries go past memlog \(opened with RTLD_DEEPBIND\?\): they are not seen$"


@functools.cache
def said(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() if shutil.which(words[0]) else ""


def gcc_libraries():
    return os.path.dirname(said("gcc", "-print-libgcc-file-name"))


def php_extensions():
    return ("php", UNSEEN, PHP_UNSEEN) if said("php", "-n", "-r", "echo PHP_VERSION_ID;") < "80300" else ("php", BY_READING, "")


ASSEMBLER = ("as|x86_64-linux-gn", SEEN, "")  # Debian's, or by its whole name
ASAN_RUN = ("/bin/sh", "-c", "./program; echo $?")


def sanitizer(name, short=False):
    return Kind(f"gcc -fsanitize={name}", ("./program",), [("program", UNRECORDED, "sanitizer")], short=short,
                before=compiled(HEAP, f"-fsanitize={name}"), needs=(f"{gcc_libraries()}/lib{dict(address='asan', thread='tsan', leak='lsan')[name]}.so",))


KINDS = [
    # ---- interpreters ----
    Kind("dash", ("/bin/sh", "-c", "for i in 1 2 3; do echo $i; done | sort -r; exit 7"), [("sh", SEEN, ""), ("sort", SEEN, "")], short=True),
    Kind("bash", ("/bin/bash", "-c", "a=(); for i in {1..500}; do a+=($i); done; echo ${#a[@]}; cat <(echo x); exit 7"), [("bash", SEEN, "")]),
    Kind("python", ("/usr/bin/python3", "-c", "print(len([str(i) for i in range(100000)])); exit(7)"), [("python3", SEEN, "")], short=True),
    Kind("perl", ("/usr/bin/perl", "-e", 'my %h = map { $_ => "x$_" } 1..5000; print scalar(keys %h), "\\n"; exit 7'), [("perl", SEEN, "")]),
    Kind("node", ("node", "-e", "console.log(Array.from({length: 1000}, (_, i) => 'x' + i).join('').length); process.exitCode = 7"), [("node", BY_READING, "")], needs=("node",)),
    Kind("php", ("php", "-n", "-r", "$a = []; for ($i = 0; $i < 1000; $i++) $a[] = str_repeat('x', $i); echo count($a), PHP_EOL; exit(7);"), [("php", BY_READING, "")], needs=("php",)),
    Kind("php with its extensions", ("php", "-r", "$a = []; for ($i = 0; $i < 1000; $i++) $a[] = str_repeat('x', $i); echo count($a), PHP_EOL; exit(7);"), [php_extensions()], needs=("php",), short=True),
    Kind("ruby", ("ruby", "-e", "puts (1..1000).map(&:to_s).join.size; exit 7"), [("ruby", BY_READING, "")], needs=("ruby",)),
    Kind("lua", ("lua5.4", "-e", "local t = {} for i = 1, 1000 do t[i] = ('x'):rep(i) end print(#t) os.exit(7)"), [("lua5.4", SEEN, "")], needs=("lua5.4",)),
    Kind("tcl", ("tclsh",), [("tclsh.*", SEEN, "")], needs=("tclsh",), stdin=b"for {set i 0} {$i < 1000} {incr i} {lappend l $i}\nputs [llength $l]\nexit 7\n"),
    Kind("awk", ("mawk", "BEGIN { for (i = 0; i < 1000; i++) a[i] = i; print length(a); exit 7 }"), [("mawk", SEEN, "")], needs=("mawk",)),
    Kind("jq", ("jq", "-n", "[range(1000)] | map(tostring) | add | length"), [("jq", SEEN, "")], needs=("jq",)),
    Kind("bc", ("bc", "-q"), [("bc", SEEN, "")], needs=("bc",), stdin=b"2^2000\n"),
    Kind("sqlite", ("sqlite3", ":memory:"), [("sqlite3", SEEN, "")], needs=("sqlite3",), stdin=b"create table t(a); insert into t values (1), (2); select sum(a) from t;"),
    Kind("java", ("java", "-XX:+UseSerialGC", "-cp", ".", "A"), [("java", BY_READING, "")], needs=("java", "javac"), short=True,
         before=each(text("A.java", JAVA), lambda folder: subprocess.run(["javac", "A.java"], cwd=folder, check=True, capture_output=True))),
    # ---- compilers and tools ----
    Kind("gcc", ("gcc", "-O1", "-c", "a.c", "-o", "a.o"), [("cc1", BY_READING, ""), ASSEMBLER], before=text("a.c", HEAP)),
    Kind("g++", ("g++", "-O1", "-c", "a.cc", "-o", "a.o"), [("cc1plus", BY_READING, ""), ASSEMBLER], before=text("a.cc", CXX), short=True),
    Kind("clang", ("clang", "-O1", "-c", "a.c", "-o", "a.o"), [("clang", BY_READING, "")], before=text("a.c", HEAP), needs=("clang",)),
    Kind("rustc", ("rustc", "-o", "program", "a.rs"), [("rustc", BY_READING, "")], before=text("a.rs", RUST), needs=("/usr/bin/rustc",)),
    Kind("go build", ("go", "build", "-o", "program", "main.go"), [("go", BY_READING, "")], needs=("go",), timeout=240,
         before=text("main.go", GO), same_stderr=False),
    Kind("make", ("make", "-s", "-j2"), [("make", SEEN, "")], needs=("make",), before=text("Makefile", "all: a b\na b:\n\t@seq 1 200 | sort -n > $@\n")),
    Kind("git", ("/bin/sh", "-c", "git init -q r && cd r && seq 1 2000 > f && git add f && git -c user.name=a -c user.email=b commit -qm m && git log --format=%s && rm -rf .git"),
         [("git", SEEN, "")], needs=("git",)),
    Kind("tar and gzip", ("/bin/sh", "-c", "seq 1 20000 > f; tar -czf - f | tar -tzf -"), [("tar", SEEN, ""), ("gzip", SEEN, "")]),
    Kind("xz in threads", ("/bin/sh", "-c", "seq 1 200000 | xz -T2 | xz -d | sha256sum"), [("xz", BY_READING, "")], needs=("xz",)),
    Kind("openssl", ("openssl", "genpkey", "-algorithm", "ED25519", "-out", "/dev/null"), [("openssl", SEEN, "")], needs=("openssl",)),
    Kind("curl", ("curl", "-s", "file://{folder}/a"), [("curl", SEEN, "")], needs=("curl",), before=text("a", "hello\n")),
    Kind("vim", ("vim", "-es", "-u", "NONE", "-c", "%s/a/b/g|wq", "f"), [("vim", SEEN, "")], needs=("vim",), before=text("f", "banana\n" * 1000)),
    Kind("find and xargs", ("/bin/sh", "-c", "find /usr/share/doc -maxdepth 1 -name 'lib*' | sort | head -50 | xargs -n 5 echo | wc -l"), [("find", SEEN, ""), ("xargs", SEEN, "")]),
    Kind("sbcl", ("sbcl", "--noinform", "--non-interactive", "--no-userinit", "--eval", '(progn (print (length (loop for i below 1000 collect i))) (terpri) (exit :code 7))'), [("sbcl", BY_READING, "")], needs=("sbcl",)),
    Kind("LuaJIT", ("luajit", "-e", "local t = {} for i = 1, 1000 do t[i] = ('x'):rep(i) end print(#t) os.exit(7)"), [("luajit", SEEN, "")], needs=("luajit",)),
    Kind("Erlang", ("erl", "-noshell", "-eval", 'io:format("~p~n", [length(lists:seq(1, 1000))]), halt(7).'), [("beam.smp|erl_child_setup|inet_gethost", BY_READING, "")], needs=("erl",)),
    Kind("busybox", ("busybox", "sh", "-c", "seq 1 100 | sort -r | head -1; ./program"), [("busybox", UNRECORDED, "static")], needs=("busybox",), before=compiled(HEAP)),
    Kind("stdbuf", ("stdbuf", "-oL", "./program"), [("program", SEEN, "")], before=compiled(HEAP)),
    Kind("fakeroot", ("fakeroot", "/bin/sh", "-c", "touch f; chown 1:2 f; stat -c '%u %g' f; ./program"), [("program", SEEN, "")], needs=("fakeroot",), before=compiled(HEAP)),
    Kind("printenv", ("/usr/bin/env",), [("env", SEEN, "")], short=True),
    Kind("gdb", ("gdb", "-q", "-nx", "-batch", "-ex", "run", "-ex", "info sharedlibrary nothing", "./program"), [("gdb", BY_READING, "")], needs=("gdb",), before=compiled(HEAP)),
    Kind("strace", ("strace", "-f", "-o", "/dev/null", "./program"), [("program", SEEN, "")], needs=("strace",), before=compiled(HEAP)),
    Kind("valgrind", ("valgrind", "-q", "--leak-check=no", "./program"), [("program|memcheck.*", UNRECORDED, "")], needs=("valgrind",), before=compiled(HEAP), timeout=120),
    # ---- servers ----
    Kind("redis", ("/bin/sh", "-c", "redis-server --port 0 --unixsocket {folder}/s --save '' --daemonize no > /dev/null & "
                   "until redis-cli -s {folder}/s set a b 2> /dev/null; do sleep 0.05; done; redis-cli -s {folder}/s get a; redis-cli -s {folder}/s shutdown nosave; wait"),
         [("redis-server", SEEN, ""), ("redis-cli", SEEN, "")], needs=("redis-server", "redis-cli")),
    Kind("nginx", ("/bin/sh", "-c", "nginx -c {folder}/conf -p {folder} & until curl -s --unix-socket {folder}/s http://x/; do sleep 0.05; done; kill $!; wait $!"),
         [("nginx", SEEN, ""), ("curl", SEEN, "")], needs=("nginx", "curl"), before=text("conf", NGINX)),
    Kind("PostgreSQL", ("/bin/sh", "-c", "chown nobody . && setpriv --reuid=65534 --regid=65534 --clear-groups " + str(servers.POSTGRES) + "/initdb -D d -N > /dev/null 2>&1 && "
                        "echo 'select count(*) from pg_class where oid < 3000' | setpriv --reuid=65534 --regid=65534 --clear-groups " + str(servers.POSTGRES) + "/postgres --single -D d postgres | grep count; rm -rf d"),
         [("postgres", BY_READING, "")], needs=(str(servers.POSTGRES / "postgres"),), root=True, timeout=180),
    # ---- browsers ----
    Kind("chromium", CHROMIUM, [("chromium|chrome_crashpad", BY_READING, "")], needs=("/usr/bin/chromium",), before=text("page.html", PAGE), same_stderr=False, timeout=120, short=True),
    Kind("firefox", ("/bin/sh", "-c", "HOME={folder}/h firefox-esr --headless --no-remote --profile {folder}/h --screenshot {folder}/s.png file://{folder}/page.html > /dev/null 2>&1; test -s s.png; echo $?; rm -rf h s.png"),
         [("firefox-esr|Web Content|Socket Process|RDD Process", BY_READING, "")], needs=("firefox-esr",), before=each(text("page.html", PAGE), lambda folder: (folder / "h").mkdir()), timeout=240),
    # ---- languages that make executables ----
    Kind("C++", ("./program",), [("program", SEEN, "")], before=each(text("a.cc", CXX), lambda folder: subprocess.run(["g++", "-o", "program", "a.cc"], cwd=folder, check=True))),
    Kind("Rust", ("./program",), [("program", SEEN, "")], needs=("/usr/bin/rustc",),
         before=each(text("a.rs", RUST), lambda folder: subprocess.run(["/usr/bin/rustc", "-o", "program", "a.rs"], cwd=folder, check=True, capture_output=True))),
    Kind("Go, static", ("./program",), [("program", UNRECORDED, "static")], needs=("go",), before=go_program(GO, CGO_ENABLED="0"), timeout=240, short=True),
    Kind("Go with C", ("./program",), [("program", UNSEEN, GO_UNSEEN)], needs=("go",), before=go_program(CGO), timeout=240),
    Kind("Go with C, its own spawn", ("./program", "/bin/pwd", "/bin/true"), [("program", UNSEEN, GO_UNSEEN), ("pwd", UNRECORDED, "system call that memlog cannot see")], needs=("go",), timeout=240, before=go_program(CGO_STARTS)),
    Kind("Go, static, starts a musl program", ("./starter", "{folder}/program"), [("starter", UNRECORDED, "static")], needs=("go", "musl-gcc"), timeout=240, short=True,
         before=each(go_program(GO_STARTS, CGO_ENABLED="0"), lambda folder: (folder / "program").rename(folder / "starter"), compiled(HEAP, compiler="musl-gcc"))),
    Kind("Go, static, starts an ASan program", ("./starter", "{folder}/program"), [("starter", UNRECORDED, "static")], needs=("go",), timeout=240,
         before=each(go_program(GO_STARTS, CGO_ENABLED="0"), lambda folder: (folder / "program").rename(folder / "starter"), compiled(HEAP, "-fsanitize=address"))),
    # ---- other loaders and roots ----
    Kind("static", ("./program",), [("program", UNRECORDED, "static")], before=compiled(HEAP, "-static"), short=True),
    Kind("static, with the loader's position", ("./program",), [("program", UNRECORDED, "static")], before=compiled(HEAP, "-static-pie")),
    Kind("musl, static", ("./program",), [("program", UNRECORDED, "static")], before=compiled(HEAP, "-static", compiler="musl-gcc"), needs=("musl-gcc",)),
    Kind("musl", ("./program",), [("program", UNRECORDED, "loader|musl")], before=compiled(HEAP, compiler="musl-gcc"), needs=("musl-gcc",), short=True),
    Kind("musl, of a shell", ("/bin/sh", "-c", "./program; exit $?"), [("program", UNRECORDED, "loader|musl")], before=compiled(HEAP, compiler="musl-gcc"), needs=("musl-gcc",)),
    Kind("a script of a musl program", ("./script", "a"), [("script", UNRECORDED, "loader|musl")], needs=("musl-gcc",), short=True,
         before=each(compiled(HEAP, compiler="musl-gcc"), text("script", "#!{folder}/program\n", 0o755))),
    Kind("32 bits", ("./program",), [("program", UNRECORDED, "32|architecture|static")], before=of_32_bits),
    Kind("setuid", ("./program",), [("program", UNRECORDED, "setuid|privilege")], before=setuid, root=True),
    Kind("another root", ("chroot", "root", "/program"), [("program", UNRECORDED, "root|visible")], before=other_root, root=True, short=True),
    Kind("namespaces", ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "./program"), [("program", SEEN, "")], before=compiled(HEAP), root=True),
    Kind("bubblewrap", ("bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "./program"), [("program", SEEN, "")], needs=("bwrap",), before=compiled(HEAP), root=True),
    Kind("another user", ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "./program"), [("program", SEEN, "")], before=compiled(HEAP), root=True),
    # ---- sanitizers ----
    sanitizer("address", short=True),
    sanitizer("thread"),
    sanitizer("leak"),
    Kind("ASan that finds a fault", ASAN_RUN, [("program", UNRECORDED, "sanitizer")], before=compiled(WRITES_FREED, "-g", "-fsanitize=address"), same_stderr=False),
    Kind("ASan, its run-time inside", ("./program",), [("program", UNSEEN, OWN_MALLOC)], before=compiled(HEAP, "-fsanitize=address", "-static-libasan")),
    *(Kind(f"clang -fsanitize={name}", ("./program",), [("program", SEEN, "") if name == "undefined" else ("program", UNRECORDED, "sanitizer")], needs=("clang", "/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/libclang_rt.asan-x86_64.a"),
           before=compiled(HEAP, f"-fsanitize={name}", compiler="clang")) for name in ("address", "thread", "memory", "leak", "undefined")),
    Kind("clang -fsanitize=address, shared", ("./program",), [("program", UNRECORDED, "sanitizer")],
         needs=("clang", "/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/libclang_rt.asan-x86_64.so"),
         before=compiled(HEAP, "-fsanitize=address", "-shared-libasan", "-Wl,-rpath,/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux", compiler="clang")),
    Kind("UBSan", ("./program",), [("program", SEEN, "")], before=compiled(HEAP, "-fsanitize=undefined")),
    # ---- allocators ----
    Kind("an allocator of its own", ("./program",), [("program", SEEN, "")], before=compiled(OWN, "-rdynamic"), short=True),
    Kind("jemalloc inside", ("./program",), [("program", SEEN, "")], needs=("/usr/lib/x86_64-linux-gnu/libjemalloc.a",),
         before=compiled(PREFIXED.replace("TAKE", "malloc"), "/usr/lib/x86_64-linux-gnu/libjemalloc.a", "-lm", "-lpthread", "-ldl", "-lstdc++")),
    Kind("tcmalloc by its own name", ("./program",), [("program", SEEN, "")], needs=("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",),
         before=compiled(PREFIXED.replace("TAKE", "tc_malloc"), "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4")),
    Kind("mimalloc by its own name", ("./program",), [("program", SEEN, "")], needs=(MIMALLOC,),
         before=compiled(PREFIXED.replace("TAKE", "mi_malloc"), MIMALLOC)),
    Kind("jemalloc, shared", ("./program",), [("program", SEEN, "")], needs=("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",), before=compiled(HEAP, "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")),
    Kind("RTLD_DEEPBIND", ("./program",), [("program", UNSEEN, "library.so go past memlog")], before=opens('dlopen("./library.so", RTLD_NOW | RTLD_DEEPBIND)', "1"), short=True),
    Kind("dlmopen", ("./program",), [("program", UNSEEN, "second libc")], before=opens('dlmopen(LM_ID_NEWLM, "./library.so", RTLD_NOW)', "0"), short=True),
    Kind("maps its memory", ("./program",), [("program", BY_READING, "")], before=compiled(MAPS), short=True),
    # ---- ways to start and to be ----
    Kind("a raw execve in a child", ("./program", "raw", "/bin/sleep", "0.3"), [("program", SEEN, ""), ("sleep", UNRECORDED, "")], before=compiled(STARTS), short=True),
    Kind("a raw execve of itself", ("./program", "itself", "/bin/sleep", "0.5"), [("sleep", UNRECORDED, "")], before=compiled(STARTS), short=True),
    Kind("execve by syscall()", ("./program", "syscall", "/bin/echo", "x"), [("program", SEEN, ""), ("echo", SEEN, "")], before=compiled(STARTS)),
    Kind("vfork and exec", ("./program", "vfork", "/bin/echo", "x"), [("program", SEEN, ""), ("echo", SEEN, "")], before=compiled(STARTS)),
    Kind("posix_spawn", ("./program", "spawn", "/bin/echo", "x"), [("program", SEEN, ""), ("echo", SEEN, "")], before=compiled(STARTS)),
    Kind("a memfd's program", ("./starter", "{folder}/program"), [("program|3|memfd:program", SEEN, "")], before=each(compiled(HEAP), compiled(MEMFD, name="starter"))),
    Kind("a daemon", ("./program",), [("program", SEEN, "")], before=compiled(DAEMON)),
    Kind("a child that maps and never allocates", ("./program",), [("quiet", BY_READING, "")], before=compiled(QUIET_CHILD), short=True),
    Kind("a child that never allocates", ("./program",), [("quiet", UNRECORDED, "")], before=compiled(QUIET_CHILD.replace("mmap(0, 30 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)", "sbrk(30 << 20)")), short=True),
    Kind("closes all descriptors", ("./program",), [("program", SEEN, "")], before=compiled(CLOSES), short=True),
    Kind("limits set midway", ("./program",), [("program", SEEN, "")], before=compiled(LIMITS), short=True),
    Kind("mappings from below", ("/bin/sh", "-c", "ulimit -s unlimited; ./program"), [("program", SEEN, "")], before=compiled(HEAP), short=True),
    Kind("no random addresses", ("setarch", "-R", "./program"), [("program", SEEN, "")], before=compiled(HEAP)),
    Kind("little address space", ("/bin/sh", "-c", "ulimit -v 100000; ./program"), [("program", SEEN, "")], before=compiled(HEAP)),
    Kind("a pseudo-terminal", ("script", "-qec", "./program", "/dev/null"), [("program", SEEN, "")], needs=("script",), before=compiled(HEAP)),
    Kind("its user's preload", ("env", "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "./program"), [("program", SEEN, "")],
         needs=("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",), before=compiled(HEAP)),
    Kind("few descriptors", ("/bin/sh", "-c", "ulimit -n 40; ./program"), [("program", SEEN, "")], before=compiled(HEAP)),
    Kind("an empty environment", ("env", "-i", "./program"), [("program", SEEN, "")], before=compiled(HEAP)),
]


def main():
    os.environ["MEMLOG_BYSTANDERS"] = ",".join(sys.argv[1:]) or "all"
    return subprocess.run([sys.executable, str(pathlib.Path(__file__).parent / "bystanders_test.py"), "-v"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
