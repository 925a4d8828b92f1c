#!/usr/bin/env python3
"""Writes a C file that makes a text part of a program, NUL-terminated: embed.py FILE SYMBOL OUTPUT"""

import pathlib
import sys

path, symbol, output = sys.argv[1:]
pathlib.Path(output).write_text(f"""\
__asm__(".section .rodata\\n"
        ".global {symbol}\\n"
        ".hidden {symbol}\\n"
        "{symbol}:\\n"
        ".incbin \\"{pathlib.Path(path).resolve()}\\"\\n"
        ".byte 0\\n"
        ".previous\\n");
extern const char {symbol}[];
""")
