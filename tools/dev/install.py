"""`ninja -C out install`: copy what is shipped to $DESTDIR$PREFIX (or the build argument install_prefix). Says what it put where.

    install.py OUT DEFAULT_PREFIX

The layout is the one in which host/process/paths.c looks: bin/memlog, and lib/memlog beside it for what nobody types.
"""
import os
import pathlib
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
    ("libmemlog-attached.so", "lib/memlog", 0o755),
]
PRELOAD = ("preload", "lib/memlog")  # links beside libmemlog.so (client/preload_folder.py)
LIBRARIES = [
    ("libmemlog.a", "lib", 0o644),
    ("libmemlog_host.a", "lib", 0o644),
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
        for name, folder, mode in PAPERS:
            if (ROOT / name).exists():
                put(ROOT / name, target / folder, mode)
        put_tree(ROOT / "docs", target / "share/doc/memlog/docs", 0o644)
    except OSError as error:
        sys.exit(f"cannot install: {error}")


if __name__ == "__main__":
    main()
