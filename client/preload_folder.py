"""Make OUT/preload, in which each glibc's loader finds what it can load, and no other loader finds anything:

    preload_folder.py OUT STAMP

LD_PRELOAD names OUT/preload/$PLATFORM/libmemlog.so. glibc's loaders put their platform's name in place of $PLATFORM: a 64-bit one finds
libmemlog.so, a 32-bit one a library with nothing in it (it would complain on the program's stderr where there is none, or one that it
cannot load). Other loaders take the name as it stands, find no such file, and say nothing (musl's ends the program if it finds one).
"""
import os
import pathlib
import subprocess
import sys

LIBRARY = "libmemlog.so"

# glibc's names of x86-64: the kernel's, and two of its own for newer processors.
PLATFORMS_64 = ("x86_64", "haswell", "xeon_phi")
PLATFORMS_32 = ("i686", "i586", "i486", "i386")


def link(path, target):
    """A symbolic link; what it is already stays, as programs that run may name it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() and os.readlink(path) == target:
        return
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def main():
    folder = pathlib.Path(sys.argv[1]) / "preload"
    for platform in PLATFORMS_64:
        link(folder / platform / LIBRARY, f"../../{LIBRARY}")
    first = folder / PLATFORMS_32[0] / LIBRARY
    first.parent.mkdir(parents=True, exist_ok=True)
    draft = first.with_suffix(".o")
    subprocess.run(["as", "--32", "-o", draft, "/dev/null"], check=True)
    subprocess.run(["ld", "-m", "elf_i386", "-shared", "-z", "noexecstack", "-o", f"{first}.new", draft], check=True)
    draft.unlink()
    pathlib.Path(f"{first}.new").rename(first)
    for platform in PLATFORMS_32[1:]:
        link(folder / platform / LIBRARY, f"../{PLATFORMS_32[0]}/{LIBRARY}")
    pathlib.Path(sys.argv[2]).touch()


if __name__ == "__main__":
    main()
