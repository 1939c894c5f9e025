"""Python's programs, whose blocks are looked for under the name of a function that the interpreter exports: another one from 3.14 on."""
import sys

IS_LATE = sys.version_info >= (3, 14)
HOLDER = "PyUnicode_New" if IS_LATE else "PyByteArray_Resize"


def named(source):
    """That program, whose bytearrays are told as HOLDER's."""
    return source.replace("bytearray(", "str.__mul__('x', ") if IS_LATE else source
