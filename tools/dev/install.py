"""`ninja -C out install`: copy what is shipped to $DESTDIR$PREFIX (or the build argument install_prefix). Says what it put where.

    install.py OUT DEFAULT_PREFIX

The layout is the one in which host/process/paths.c looks: bin/memlog, and lib/memlog beside it for what nobody types.
"""
import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# from, where below the prefix, mode; the first four must be there
PROGRAMS = [
    ("memlog", "bin", 0o755),
    ("memlog-service", "lib/memlog", 0o755),
    ("memlog-analyzer", "lib/memlog", 0o755),
    ("libmemlog.so", "lib/memlog", 0o755),
    ("memlog-tracer", "lib/memlog", 0o755),
    ("memlog-collect", "lib/memlog", 0o755),
    ("memlog-fleet", "lib/memlog", 0o755),
    ("libmemlog-attached.so", "lib/memlog", 0o755),
]
PRELOAD = ("preload", "lib/memlog")  # links beside libmemlog.so (client/preload_folder.py)
LIBRARIES = [
    ("obj/client/libmemlog.a", "lib", 0o644),
    ("obj/host/lib/libmemlog_host.a", "lib", 0o644),
]
# What pkg-config says of each way to use memlog from a program.
PACKAGES = [
    ("memlog", "memlog's calls, found when the program runs: nothing to link", ("Cflags: -I${includedir}",)),
    ("memlog-client", "memlog's client, linked in", ("Requires: memlog", "Libs: -L${libdir} -lmemlog")),
    ("memlog-host", "a host inside the program", ("Requires: memlog", "Libs: -L${libdir} -lmemlog_host -lmicrohttpd -lev -ljansson")),
]
PAPERS = [
    ("client/memlog.h", "include", 0o644),
    ("host/lib/memlog_host.h", "include", 0o644),
    *((name + ".md", "share/doc/memlog", 0o644) for name in ("README", "ARCHITECTURE", "BENCHMARKS", "GLOSSARY", "RELIABILITY", "SECURITY")),
    ("LICENSE", "share/doc/memlog", 0o644),
]


def put(source, folder, mode):
    """Whole or not at all: a running program keeps the file that it has."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / (source.name + ".new")
    shutil.copyfile(source, draft)
    draft.chmod(mode)
    draft.rename(folder / source.name)
    print(f"installed {folder / source.name}")


def put_packages(folder, prefix):
    version = re.search(r'#define ML_VERSION "(.+)"', (ROOT / "host" / "cli" / "version.c").read_text())[1]
    folder.mkdir(parents=True, exist_ok=True)
    for name, description, lines in PACKAGES:
        draft = folder / f"{name}.pc.new"
        draft.write_text("\n".join((
            f"prefix={prefix}", "includedir=${prefix}/include", "libdir=${prefix}/lib", "service=${prefix}/lib/memlog/memlog-service", "",
            f"Name: {name}", f"Description: {description}", f"Version: {version}", *lines, "",
        )))
        draft.chmod(0o644)
        draft.rename(folder / f"{name}.pc")
        print(f"installed {folder / name}.pc")


def put_tree(source, folder, mode):
    for path in sorted(source.rglob("*")):
        target = folder / path.relative_to(source)
        if path.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(target.name + ".new")
            draft.unlink(missing_ok=True)
            draft.symlink_to(os.readlink(path))
            draft.rename(target)
            print(f"installed {target}")
        elif path.is_file():
            put(path, target.parent, mode)


def main():
    out = pathlib.Path(sys.argv[1])
    prefix = os.environ.get("PREFIX") or sys.argv[2]
    if not prefix.startswith("/"):
        sys.exit(f"PREFIX must be an absolute path, not {prefix}")
    target = pathlib.Path(os.environ.get("DESTDIR", "").rstrip("/") + prefix)
    missing = [name for name, _, _ in PROGRAMS if not (out / name).exists()]
    if missing:
        sys.exit(f"not built: {', '.join(missing)}; nothing was installed")
    try:
        for name, folder, mode in PROGRAMS:
            put(out / name, target / folder, mode)
        put_tree(out / PRELOAD[0], target / PRELOAD[1] / PRELOAD[0], 0o755)
        for name, folder, mode in LIBRARIES:
            if (out / name).exists():
                put(out / name, target / folder, mode)
        put_packages(target / "lib" / "pkgconfig", prefix)
        for name, folder, mode in PAPERS:
            if (ROOT / name).exists():
                put(ROOT / name, target / folder, mode)
        put_tree(out / "share", target / "share", 0o644)
        put_tree(ROOT / "docs", target / "share/doc/memlog/docs", 0o644)
        put_tree(ROOT / "examples", target / "share/doc/memlog/examples", 0o644)
    except OSError as error:
        sys.exit(f"cannot install: {error}")


if __name__ == "__main__":
    main()
