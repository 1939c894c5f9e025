#!/usr/bin/python3
"""Put beside an installed memlog the libraries that it needs, but for libc's own, so that it runs where they are not: bundle.py PREFIX STARTER

They lie in PREFIX/lib/memlog/libraries. memlog's programs look there and these libraries among themselves; no program that is recorded does.
The terms of each are in PREFIX/share/doc/memlog/libraries. libmemlog.so needs none.

bin/memlog becomes STARTER (tools/dev/starter), which says what an older system lacks; the program moves to lib/memlog, and the version of glibc that
all of it needs stands in lib/memlog/glibc."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

FOLDER = "lib/memlog/libraries"
PROGRAMS = ("lib/memlog/memlog", "lib/memlog/memlog-service", "lib/memlog/memlog-analyzer", "lib/memlog/memlog-tracer", "lib/memlog/memlog-collect",
            "lib/memlog/memlog-fleet")
# They belong to one another and to the loader, and every system has its own.
OF_LIBC = re.compile(r"(ld-linux|libc|libm|libdl|libpthread|librt|libresolv|libutil)\b")


def said(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


def libraries_of(program):
    """Name and path of each that the loader would take."""
    found = {}
    for line in said("ldd", program).splitlines():
        words = line.split()
        if "not found" in line:
            sys.exit(f"{program} needs {words[0]}, which is not here")
        if "=>" in words and not OF_LIBC.match(words[0]):
            found[words[0]] = words[2]
    return found


def libc_of(paths):
    """The version of glibc that they need, the highest."""
    versions = (re.findall(r"Name: GLIBC_([\d.]+)", said("readelf", "--version-info", "--wide", path)) for path in paths)
    return max((version for found in versions for version in found), key=lambda version: tuple(map(int, version.split("."))))


def packages_of(paths):
    """Debian's package of each; the system may have moved /lib into /usr since it was told."""
    names = {name: path for path in paths for name in (path, path.removeprefix("/usr"), os.path.realpath(path))}
    answer = subprocess.run(["dpkg", "-S", *names], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    found = {names[line.split()[-1]]: line.split(":")[0] for line in answer.stdout.splitlines() if line.split()[-1] in names}
    for path in paths:
        if path not in found:
            sys.exit(f"{path} is of no package, so its terms are not known")
    return found


def main():
    prefix = pathlib.Path(sys.argv[1])
    folder, papers = prefix / FOLDER, prefix / "share" / "doc" / "memlog" / "libraries"
    for made in (folder, papers):
        made.mkdir(parents=True, exist_ok=True)
    needed = {}
    (prefix / "bin" / "memlog").rename(prefix / "lib" / "memlog" / "memlog")
    shutil.copy(sys.argv[2], prefix / "bin" / "memlog")
    for program in PROGRAMS:
        needed.update(libraries_of(prefix / program))
        place = os.path.relpath(folder, (prefix / program).parent)
        # As a whole, for what libraries load as well.
        said("patchelf", "--force-rpath", "--set-rpath", f"$ORIGIN/{place}", prefix / program)
    for name, path in sorted(needed.items()):
        shutil.copyfile(path, folder / name)
        said("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN", folder / name)
    version = libc_of([*(prefix / program for program in PROGRAMS), *folder.iterdir()])
    (prefix / "lib" / "memlog" / "glibc").write_text(f"{version}\n")
    for package in packages_of(needed.values()).values():
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", papers / package)


if __name__ == "__main__":
    main()
