#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Numbered blocks over NBD: writes them and keeps a record of what was acknowledged, and checks them.

    blocks.py write URI RECORD BLOCKS SECONDS SEED   until the time is over, or a request fails
    blocks.py check URI RECORD BLOCKS                every block holds what was flushed, or something later
    blocks.py look URI RECORD BLOCKS                 the same on a disk that is full: a block may also be unreadable

RECORD is a JSON file: for each block the version that is known to be on stable storage, and all that were written
after it. A block of 4 KiB holds its number and its version 256 times, or zeros.
"""
import errno
import json
import os
import random
import select
import struct
import sys
import time

import nbd

BLOCK = 4096
CONNECTIONS = 4
IN_FLIGHT = 8
LONGEST = 16


def content(number, version):
    return struct.pack("<QQ", number, version) * (BLOCK // 16)


class Record:
    """For each block a list of [version, whether it is zeros]; the first entry is on stable storage."""

    def __init__(self, path):
        self.path, self.version, self.flushes, self.blocks = path, 0, 0, {}
        if os.path.exists(path):
            with open(path) as file:
                saved = json.load(file)
            self.version, self.flushes = saved["version"], saved["flushes"]
            self.blocks = {int(number): values for number, values in saved["blocks"].items()}

    def save(self):
        with open(self.path, "w") as file:
            json.dump({"version": self.version, "flushes": self.flushes, "blocks": self.blocks}, file)

    def values(self, number):
        return self.blocks.setdefault(number, [[0, True]])

    def stable(self, number, version):
        values = self.values(number)
        self.blocks[number] = [value for value in values if value[0] >= version]


class Writer:
    def __init__(self, uri, record, blocks, seed):
        self.record, self.blocks, self.random = record, blocks, random.Random(seed)
        self.busy, self.dirty, self.writes, self.error = set(), {}, 0, None
        self.flushing = False
        self.handles = []
        for _ in range(CONNECTIONS):
            handle = nbd.NBD()
            handle.connect_uri(uri)
            self.handles.append(handle)

    def run(self, seconds):
        end = time.monotonic() + seconds
        try:
            while self.error is None and time.monotonic() < end:
                for handle in self.handles:
                    while handle.aio_in_flight() < IN_FLIGHT and self.error is None:
                        self.begin(handle)
                self.poll()
            while self.error is None and any(handle.aio_in_flight() for handle in self.handles):
                self.poll()
        except nbd.Error as error:
            self.error = self.error or error.errno or "the connection ended"
        return self.error

    def begin(self, handle):
        if not self.flushing and self.random.random() < 0.03:
            self.flush(handle)
            return
        count = self.random.randint(1, LONGEST)
        first = self.random.randrange(self.blocks - count + 1)
        numbers = range(first, first + count)
        # The order of two writes to a block is known only if one has ended before the other begins.
        if not self.busy.isdisjoint(numbers):
            return
        self.busy.update(numbers)
        self.record.version += 1
        version = self.record.version
        kind = self.random.choices(["write", "fua", "zero", "trim"], [84, 6, 5, 5])[0]
        zeros = kind in ("zero", "trim")
        for number in numbers:
            self.record.values(number).append([version, zeros])

        def ended(error):
            self.busy.difference_update(numbers)
            if error.value != 0:
                self.error = self.error or error.value
                return 1
            self.writes += 1
            for number in numbers:
                if kind == "fua":
                    self.record.stable(number, version)
                else:
                    self.dirty[number] = version
            return 1

        at, length = first * BLOCK, count * BLOCK
        if zeros:
            command = handle.aio_zero if kind == "zero" else handle.aio_trim
            command(length, at, completion=ended)
        else:
            data = nbd.Buffer.from_bytearray(bytearray(b"".join(content(number, version) for number in numbers)))
            handle.aio_pwrite(data, at, completion=ended, flags=nbd.CMD_FLAG_FUA if kind == "fua" else 0)

    def flush(self, handle):
        """What has ended before a flush begins is stable when the flush has ended, on any connection."""
        written, self.dirty = self.dirty, {}
        self.flushing = True

        def ended(error):
            self.flushing = False
            if error.value != 0:
                self.error = self.error or error.value
                return 1
            self.record.flushes += 1
            for number, version in written.items():
                self.record.stable(number, version)
            return 1

        handle.aio_flush(completion=ended)

    def poll(self):
        poller = select.poll()
        by_file = {}
        for handle in self.handles:
            direction = handle.aio_get_direction()
            mask = select.POLLIN if direction & nbd.AIO_DIRECTION_READ else 0
            mask |= select.POLLOUT if direction & nbd.AIO_DIRECTION_WRITE else 0
            by_file[handle.aio_get_fd()] = handle
            poller.register(handle.aio_get_fd(), mask)
        for file, events in poller.poll(200):
            handle = by_file[file]
            if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
                handle.aio_notify_read()
            elif events & select.POLLOUT:
                handle.aio_notify_write()
            if handle.aio_is_dead() or handle.aio_is_closed():
                self.error = self.error or "the connection ended"


def write(uri, path, blocks, seconds, seed):
    record = Record(path)
    flushes = record.flushes
    writer = Writer(uri, record, blocks, seed)
    error = writer.run(seconds)
    record.save()
    name = errno.errorcode.get(error, error) if isinstance(error, int) else error
    print(f"{writer.writes} writes, {record.flushes - flushes} flushes, ended with {name}")


def fitting(values, number, found):
    return [value for value in values if found == (bytes(BLOCK) if value[1] else content(number, value[0]))]


def check(uri, path, blocks):
    record = Record(path)
    handle = nbd.NBD()
    handle.connect_uri(uri)
    step = 256
    wrong, later, stable = [], 0, 0
    for first in range(0, blocks, step):
        count = min(step, blocks - first)
        data = handle.pread(count * BLOCK, first * BLOCK)
        for number in range(first, first + count):
            found = bytes(data[(number - first) * BLOCK:(number - first + 1) * BLOCK])
            values = record.values(number)
            # The newest that it may be counts: what is shown once stays.
            fits = fitting(values, number, found)
            if not fits:
                head = struct.unpack("<QQ", found[:16])
                wrong.append(f"block {number} holds {head}, not one of {values}")
                continue
            stable += values[0][0] > 0
            later += fits[0] != values[0]
            # Zeros may be those of any of several; all of them stay possible.
            record.blocks[number] = fits
    for text in wrong[:10]:
        print(text)
    if wrong:
        sys.exit(f"{len(wrong)} of {blocks} blocks are wrong")
    record.save()
    print(f"{stable} blocks acknowledged, {later} later than that")


def look(uri, path, blocks):
    """One by one, since one that cannot be read is no reason to lose the others."""
    record = Record(path)
    handle = nbd.NBD()
    handle.connect_uri(uri)
    right, unreadable, flushed = 0, 0, 0
    for number in sorted(record.blocks):
        values = record.values(number)
        try:
            found = bytes(handle.pread(BLOCK, number * BLOCK))
        except nbd.Error as error:
            if error.errnum != errno.EIO:
                raise
            unreadable += 1
            # Nothing was written to it since it was flushed.
            flushed += len(values) == 1
            continue
        if not fitting(values, number, found):
            sys.exit(f"block {number} holds {struct.unpack('<QQ', found[:16])}, not one of {values}")
        right += 1
    print(f"full: {right} blocks right, {unreadable} unreadable, {flushed} of them flushed")


def main():
    command, uri, path, blocks = sys.argv[1:5]
    if command == "write":
        write(uri, path, int(blocks), float(sys.argv[5]), int(sys.argv[6]))
    elif command == "look":
        look(uri, path, int(blocks))
    else:
        check(uri, path, int(blocks))


main()
