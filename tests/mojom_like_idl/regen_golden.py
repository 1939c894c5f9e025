"""Run the writer of the golden outputs (GN's actions start scripts only): regen_golden.py WRITER ROOT."""
import os
import sys

os.execv(os.path.abspath(sys.argv[1]), sys.argv[1:])
