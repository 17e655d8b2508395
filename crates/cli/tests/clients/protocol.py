#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What libnbd lets a client ask for: right requests, wrong ones, and several connections at once.

    protocol.py URI
"""
import errno
import os
import sys

import nbd

MIB = 1 << 20
checks = 0


def expect(what, condition):
    global checks
    checks += 1
    if not condition:
        sys.exit(what)


def open_export(uri, prepare=lambda handle: None):
    handle = nbd.NBD()
    handle.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    # Wrong requests are to reach the server.
    handle.set_strict_mode(0)
    prepare(handle)
    handle.connect_uri(uri)
    return handle


def fails(handle, wanted, what, request):
    try:
        request()
    except nbd.Error as error:
        expect(f"{what}: {error.errno}, not {errno.errorcode[wanted]}", error.errnum == wanted)
    else:
        expect(f"{what}: succeeds, {errno.errorcode[wanted]} was wanted", False)
    try:
        alive = handle.pread(16, 0)
    except nbd.Error as error:
        sys.exit(f"{what}: the connection does not survive: {error}")
    expect(f"{what}: a read after it is short", len(alive) == 16)


def extents(handle, count, offset, flags=0):
    found = []

    def extent(context, at, entries, error):
        if context == nbd.CONTEXT_BASE_ALLOCATION:
            found.extend(zip(entries[0::2], entries[1::2]))
        return 0

    handle.block_status(count, offset, extent, flags)
    return found


def structured(uri):
    handle = open_export(uri)
    expect("no structured replies", handle.get_structured_replies_negotiated())
    expect("no base:allocation", handle.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION))
    data = os.urandom(3 * MIB)
    handle.pwrite(data, 12345)
    for flags in (0, nbd.CMD_FLAG_DF):
        chunks = []

        def chunk(buffer, at, status, error):
            chunks.append((at, status, bytes(buffer)))
            return 0

        whole = handle.pread_structured(len(data), 12345, chunk, flags)
        expect("structured read: wrong data", whole == data)
        expect("structured read: chunks do not cover it", sum(len(c[2]) for c in chunks) == len(data))
        if flags:
            expect("structured read with DF: more than one chunk", len(chunks) == 1)
    handle.trim(MIB, 0)
    handle.pwrite(bytes([7]) * 8192, 65536)
    found = extents(handle, MIB, 0)
    expect(f"block status: {found}", found == [(65536, 3), (8192, 0), (MIB - 73728, 3)])
    found = extents(handle, MIB, 65536, nbd.CMD_FLAG_REQ_ONE)
    expect(f"block status of one extent: {found}", found == [(8192, 0)])
    handle.cache(MIB, 0)
    handle.zero(MIB, 2 * MIB, nbd.CMD_FLAG_NO_HOLE)
    expect("zeros without a hole: not zeros", not any(handle.pread(MIB, 2 * MIB)))
    try:
        handle.zero(MIB, 4 * MIB, nbd.CMD_FLAG_FAST_ZERO)
        expect("fast zeros: not zeros", not any(handle.pread(MIB, 4 * MIB)))
    except nbd.Error as error:
        expect(f"fast zeros: {error}", error.errnum == errno.ENOTSUP)
    handle.shutdown()

    handle = open_export(uri, lambda handle: handle.set_request_structured_replies(False))
    expect("structured replies that nobody asked for", not handle.get_structured_replies_negotiated())
    expect("simple read: wrong data", handle.pread(1000, 12345 + MIB) == data[MIB:MIB + 1000])
    fails(handle, errno.EINVAL, "a block status without structured replies", lambda: extents(handle, 4096, 0))
    handle.shutdown()

    # The oldest way to choose an export.
    handle = open_export(uri, lambda handle: handle.set_handshake_flags(0))
    expect("old handshake: wrong data", handle.pread(1000, 12345 + MIB) == data[MIB:MIB + 1000])
    handle.shutdown()

    handle = nbd.NBD()
    try:
        handle.connect_uri(uri.replace(":///", ":///no-such-export"))
        expect("an export of any name is served", False)
    except nbd.Error:
        pass


def refused(uri):
    handle = open_export(uri)
    size = handle.get_size()
    block = bytes(4096)
    for offset in (0, 4096, size):
        fails(handle, errno.EINVAL, f"read of nothing at {offset}", lambda: handle.pread(0, offset))
        fails(handle, errno.EINVAL, f"write of nothing at {offset}", lambda: handle.pwrite(b"", offset))
        fails(handle, errno.EINVAL, f"trim of nothing at {offset}", lambda: handle.trim(0, offset))
        fails(handle, errno.EINVAL, f"zeros over nothing at {offset}", lambda: handle.zero(0, offset))
        fails(handle, errno.EINVAL, f"status of nothing at {offset}", lambda: extents(handle, 0, offset))
    for offset in (size - 1, size, size + 1, 2 * size, (1 << 63) - 4096, (1 << 64) - 4096, (1 << 64) - 1):
        fails(handle, errno.EINVAL, f"read at {offset}", lambda: handle.pread(4096, offset))
        fails(handle, errno.ENOSPC, f"write at {offset}", lambda: handle.pwrite(block, offset))
        fails(handle, errno.ENOSPC, f"zeros at {offset}", lambda: handle.zero(4096, offset))
        fails(handle, errno.EINVAL, f"trim at {offset}", lambda: handle.trim(4096, offset))
        fails(handle, errno.EINVAL, f"cache at {offset}", lambda: handle.cache(4096, offset))
        fails(handle, errno.EINVAL, f"status at {offset}", lambda: extents(handle, 4096, offset))
    fails(handle, errno.EINVAL, "read above the maximum", lambda: handle.pread(33 * MIB, 0))
    fails(handle, errno.EINVAL, "write above the maximum", lambda: handle.pwrite(bytes(33 * MIB), 0))
    fails(handle, errno.EINVAL, "trim with a flag of others", lambda: handle.trim(4096, 0, nbd.CMD_FLAG_NO_HOLE))
    handle.pwrite(b"end", size - 3)
    expect("the last bytes: wrong data", handle.pread(3, size - 3) == b"end")
    handle.shutdown()


def together(uri):
    """Four connections write stripes in turn, without waiting; one flushes; each reads what the others wrote."""
    handles = [open_export(uri) for _ in range(4)]
    expect("connections may not be used together", all(handle.can_multi_conn() for handle in handles))
    length, count = 5000, 800
    pieces = [os.urandom(length) for _ in range(count)]
    pending = []
    for number, piece in enumerate(pieces):
        handle = handles[number % 4]
        buffer = nbd.Buffer.from_bytearray(bytearray(piece))
        pending.append((handle, handle.aio_pwrite(buffer, number * length)))
    for handle, cookie in pending:
        while not handle.aio_command_completed(cookie):
            handle.poll(-1)
    for number, piece in enumerate(pieces):
        handle = handles[(number + 1) % 4]
        expect(f"piece {number} read by another: wrong", handle.pread(length, number * length) == piece)
    handles[0].flush()
    expect("all pieces: wrong", handles[3].pread(length * count, 0) == b"".join(pieces))
    # A client that goes away with requests under way harms nobody.
    for number in range(64):
        handles[1].aio_pwrite(nbd.Buffer.from_bytearray(bytearray(pieces[0])), (count + number) * length)
        handles[1].aio_pread(nbd.Buffer(MIB), 0)
    handles.pop(1)
    del handle
    expect("all pieces, one client gone: wrong", handles[2].pread(length * count, 0) == b"".join(pieces))
    for handle in handles:
        handle.shutdown()


def main():
    uri = sys.argv[1]
    structured(uri)
    refused(uri)
    together(uri)
    print(f"{checks} checks")


main()
