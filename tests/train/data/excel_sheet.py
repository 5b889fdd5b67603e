"""Minimal Excel files (BIFF2) that xlrd can read."""

import struct


def write_xls(rows):
    """Return an Excel sheet with these rows of texts and numbers."""
    content = _record(0x0009, struct.pack("<HH", 2, 0x10))
    for number, row in enumerate(rows):
        for column, value in enumerate(row):
            head = struct.pack("<HH3x", number, column)
            if isinstance(value, str):
                content += _record(0x0004, head + bytes([len(value)]) + value.encode("latin-1"))
            else:
                content += _record(0x0003, head + struct.pack("<d", value))
    return content + _record(0x000A, b"")


def _record(kind, data):
    return struct.pack("<HH", kind, len(data)) + data
