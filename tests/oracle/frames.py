"""Allocates blocks of sizes of its own in functions that are called in every way of Python's, and writes down by Python's own word which
functions, files and lines each was allocated by: FOLDER/PID.json, {size: [[function, file, line], ...]}, innermost first. With a second word
it begins when FOLDER/go is there."""
import asyncio
import contextlib
import ctypes
import functools
import gc
import itertools
import json
import os
import pathlib
import re
import sys
import threading
import time
import zlib

FOLDER = pathlib.Path(sys.argv[1])
SOURCE = bytearray(1_000_000)  # an exported function of C makes a part of it
books = {}
kept = []
sizes = itertools.count(20_003, 16)
lock = threading.Lock()


def stack(frame):
    names = []
    while frame is not None:
        names.append([frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return names


def take():
    with lock:
        size = next(sizes)
    books[size] = None; kept.append(SOURCE[:size]); books[size] = stack(sys._getframe())


def same_line():
    take(); take()


class Methods:
    kind = "class"

    def method(self):
        take()

    @classmethod
    def of_class(cls):
        take()

    @staticmethod
    def of_nobody():
        take()

    @property
    def asked(self):
        take()
        return 1

    def __repr__(self):
        take()
        return "methods"

    def __lt__(self, other):
        take()
        return True

    def __call__(self):
        take()

    def __enter__(self):
        take()
        return self

    def __exit__(self, *_):
        take()

    def __del__(self):
        take()


def generator(depth):
    take()
    yield 1
    if depth:
        yield from generator(depth - 1)
    take()


def thrown():
    try:
        yield take()
    except ValueError:
        take()
        yield take()
    finally:
        take()


class Begun:
    def __init__(self, depth):
        take()
        self.inner = Begun(depth - 1) if depth else None


class Begins(Begun):
    def __init__(self):
        super().__init__(1)
        take()

    def __del__(self):
        take()


def ends():
    """An object that goes when its function has returned to C, or to Python."""
    kept_until_then = Begins()  # noqa: F841


def begun():
    """The interpreter makes calls of a class its own way, once it has seen some."""
    for _ in range(20):
        Begins()
        Begun(2)
        ends()
    list(map(lambda _: ends(), range(2)))


def called_back():
    re.sub("a", lambda _: take() or "b", "aa")
    functools.reduce(lambda a, b: take(), range(3))
    ctypes.CFUNCTYPE(None)(take)()
    max(range(2), key=lambda _: take() or 1)
    str.join("", (take() or "x" for _ in range(2)))


def closure():
    inner = lambda: take()  # noqa: E731
    def named():
        inner()
    return named


def recursion(depth):
    if depth == 0:
        take()
        return 1
    return recursion(depth - 1) + 1


def through_c(depth):
    if depth == 0:
        take()
        return [0]
    return sorted([0], key=lambda _: len(through_c(depth - 1)))


def fails(depth):
    try:
        if depth == 0:
            raise ValueError
        fails(depth - 1)
    except ValueError:
        take()
        if depth < 3:
            raise
    finally:
        take()


@contextlib.contextmanager
def around():
    take()
    yield
    take()


@functools.lru_cache
def once(number):
    take()
    return number


async def waits(number):
    take()
    await asyncio.sleep(0)
    take()
    return number


async def many():
    await asyncio.gather(*(waits(number) for number in range(5)))
    async for _ in ticks():
        take()


async def ticks():
    for _ in range(2):
        yield take()


def grün():
    take()


def 日本語():
    take()


def executed():
    """Code that comes and goes, mostly at one address."""
    for lines in range(40):
        exec(compile("\n" * (lines % 7) + "def made():\n" + "    pass\n" * (lines % 5) + "    take()\nmade()", f"<made {lines % 3}>", "exec"), globals())
        eval("take()")
        gc.collect(0)


def long_lines():
    take(), (
        take(),

        take() or
        take(),
    )
    x = [take() for _ in range(2)] + [
        take()

        for _ in range(2)]
    return x
# The table of lines has entries of its own for lines that lie far apart.
exec(compile("def far():\n    take()" + "\n" * 5000 + "    take()" + "\n" * 3 + "    take(\n\n)\n", "far.py", "exec"))


def traced():
    sys.settrace(lambda *_: None)
    take()
    sys.settrace(None)


def work():
    for function in (take, same_line, Methods.of_class, Methods.of_nobody, closure(), grün, 日本語, executed, long_lines, far, traced):
        function()
    methods = Methods()
    methods.method()
    methods()
    methods.asked
    repr(methods)
    sorted([methods, Methods()])
    with methods, around():
        take()
    del methods
    list(generator(3))
    begun()
    called_back()
    one = thrown()
    next(one)
    one.throw(ValueError())
    one.close()
    list(map(lambda _: take(), range(2)))
    for depth in (1, 30, 200, 239, 240, 241, 700):
        recursion(depth)
    for depth in (1, 10, 25):
        through_c(depth)
    fails(4)
    once(threading.get_ident())
    asyncio.run(many())
    eval("[take() for _ in range(2)]")
    type("a:b", (), {"call": lambda self: take()})().call()


def busy(stop):
    """Lets go of the interpreter's lock, in C, where others run their functions."""
    data = os.urandom(100_000)
    while not stop.is_set():
        zlib.decompress(zlib.compress(data, 1))


def tell():
    FOLDER.joinpath(f"{os.getpid()}.json").write_text(json.dumps(books))


def main():
    sys.setrecursionlimit(5000)
    while len(sys.argv) > 2 and not FOLDER.joinpath("go").exists():
        time.sleep(0.01)
    stop = threading.Event()
    for _ in range(2):
        threading.Thread(target=busy, args=(stop,), daemon=True).start()
    work()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    child = os.fork()
    if child == 0:
        books.clear()
        work()
        tell()
        os._exit(0)
    os.waitpid(child, 0)
    tell()
    print(len(kept), flush=True)  # the daemons go on while the interpreter ends


main()
