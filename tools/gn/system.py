"""Where this system has its headers and libraries, as a GN scope: system.py COMPILER. tools/gn/libs makes a target of each library.

Distributions, and releases of one, differ in folders (nanopb's headers) and in names (msgpackc, msgpack-c). pkg-config is asked first, where
it is there and knows the library; what it leaves open is looked for where the compiler looks. What is nowhere to be found stays by its first
name, and the compiler says that it is missing: not every target needs each library.
"""
import os
import pathlib
import subprocess
import sys

# Folders below those of headers, for who includes <pb.h> where it is <nanopb/pb.h>.
HEADER_FOLDERS = ("", "nanopb", "ncursesw")

# name: what pkg-config calls it, one word a name; its headers; what to link with, tried in this order when pkg-config does not know.
LIBRARIES = {
    "ncurses": ("ncursesw", "curses.h", (("ncursesw", "tinfo"), ("ncursesw",))),
    "libev": ("libev", "ev.h", (("ev",),)),
    "nanopb": ("nanopb", "pb.h pb_common.h pb_decode.h pb_encode.h", (("protobuf-nanopb",),)),
    # Until 5.0 it was called msgpack, as the library of C++ is since.
    "msgpack": ("msgpack-c msgpack", "msgpack.h msgpack/pack.h msgpack/unpack.h", (("msgpackc",), ("msgpack-c",))),
    "libunwind": ("libunwind", "libunwind.h", (("unwind",),)),
    "zydis": ("zydis", "Zydis/Zydis.h", (("Zydis",),)),
    "check": ("check", "check.h", (("check_pic", "rt", "m", "subunit"), ("check", "rt", "m", "subunit"), ("check", "rt", "m"))),
    "libseccomp": ("libseccomp", "seccomp.h", (("seccomp",),)),
    "libdw": ("libdw", "dwarf.h elfutils/libdw.h elfutils/libdwelf.h elfutils/libdwfl.h gelf.h libelf.h", (("dw", "elf"),)),
    "libdebuginfod": ("libdebuginfod", "elfutils/debuginfod.h", (("debuginfod",),)),
    "libiberty": ("", "libiberty/demangle.h", (("iberty",),)),
    "jansson": ("jansson", "jansson.h", (("jansson",),)),
    "libmicrohttpd": ("libmicrohttpd", "microhttpd.h", (("microhttpd",),)),
    "gnutls": ("gnutls", "gnutls/crypto.h gnutls/gnutls.h gnutls/x509.h", (("gnutls",),)),
    "libcurl": ("libcurl", "curl/curl.h", (("curl",),)),
    "sqlite3": ("sqlite3", "sqlite3.h", (("sqlite3",),)),
    "zlib": ("zlib", "zlib.h", (("z",),)),
    # Allocators, found by their file: which of their forms is meant matters.
    "jemalloc_inside": ("", "", ((":libjemalloc_pic.a", "stdc++", "m"), (":libjemalloc.a", "stdc++", "m"))),
    "mimalloc_beside": ("", "", ((":libmimalloc.so.2",), (":libmimalloc.so.3",), (":libmimalloc.so",))),
    "tcmalloc_inside": ("", "", ((":libtcmalloc_minimal.a", "stdc++", "m"),)),
}


def said(*words):
    """What a program prints, "" when it fails or is not there."""
    try:
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def multiarch_include(compiler):
    # clang knows the machine in other words (x86_64-pc-linux-gnu), and from 16 on no -print-multiarch. Who is not Debian has no such folder.
    machine = said(compiler, "-dumpmachine").split("-")
    names = [said(compiler, "-print-multiarch"), "-".join([machine[0], *machine[-2:]]), ""]
    folders = [pathlib.Path("/usr/include", name) for name in names]
    return next((folder for folder in folders if (folder / "sys/socket.h").exists()), folders[-1])


class Finder:

    def __init__(self, compiler):
        self.compiler = compiler
        self.multiarch = multiarch_include(compiler)
        self.found = {}

    def headers(self, flags, names):
        """The full paths of the names."""
        roots = [pathlib.Path(flag[2:]) for flag in flags if flag.startswith("-I/")] + [self.multiarch, pathlib.Path("/usr/include")]
        folders = [root / folder for root in roots for folder in HEADER_FOLDERS]
        for folder in folders:
            if all((folder / name).exists() for name in names):
                return [str(folder / name) for name in names]
        return [f"/usr/include/{name}" for name in names]

    def has(self, library):
        """Whether the linker would find a library, by its name (z) or file (:libz.a)."""
        files = [library[1:]] if library.startswith(":") else [f"lib{library}.so", f"lib{library}.a"]
        for file in files:
            if file not in self.found:
                # The compiler answers with a path where there is one, with the bare name where not.
                self.found[file] = os.path.isabs(said(self.compiler, f"-print-file-name={file}"))
            if self.found[file]:
                return True
        return False

    def library(self, known_as, headers, choices):
        flags = next((flags for flags in (said("pkg-config", "--cflags", "--libs", name).split() for name in known_as.split()) if flags), [])
        libs = [flag[2:] for flag in flags if flag.startswith("-l")]
        libs += ["pthread"] if "-pthread" in flags else []
        if not libs:
            libs = next((choice for choice in choices if all(map(self.has, choice))), choices[0])
        paths = self.headers(flags, headers.split()) if headers else []
        folders = sorted({path.removesuffix(name).rstrip("/") for path, name in zip(paths, headers.split())} - {"/usr/include", str(self.multiarch)})
        return {"headers": paths, "include_dirs": folders, "libs": list(libs)}


def generator():
    """nanopb's, a program in Python."""
    places = [pathlib.Path("/usr/bin", name) for name in ("nanopb_generator.py", "nanopb_generator")]
    return next((place for place in places if place.exists()), places[0])


def main():
    finder = Finder(sys.argv[1])
    print(f'multiarch_include = "{finder.multiarch}"')
    print(f'nanopb_generator = "{generator()}"')
    for name, facts in LIBRARIES.items():
        print(f"{name} = {{")
        for key, texts in finder.library(*facts).items():
            # GN reads lists and strings as JSON writes them.
            print(f"  {key} = [{', '.join(chr(34) + text + chr(34) for text in texts)}]")
        print("}")


if __name__ == "__main__":
    main()
