#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Connections that say nothing or garbage, until standard input ends.

    crowd.py SOCKET SILENT GARBLED   opens all, prints `ready`, and keeps sending garbage
"""
import os
import random
import select
import socket
import struct
import sys

OPTION = struct.pack(">Q", 0x49484156454F5054)
chance = random.Random(1)


def garbage():
    """From noise to what is right until near the end. The first four bytes are the client's flags."""
    flags = struct.pack(">I", 3)
    go = OPTION + struct.pack(">IIIH", 7, 6, 0, 0)
    request = struct.pack(">IHHQQI", 0x25609513, 0, chance.randrange(8), 1, chance.getrandbits(64), 4096)
    return chance.choice([
        os.urandom(chance.randrange(1, 65536)),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        flags + os.urandom(64),
        flags + OPTION + struct.pack(">II", 7, 0xFFFFFFFF),
        flags + OPTION + struct.pack(">II", chance.randrange(20), 64) + os.urandom(64),
        flags + go + os.urandom(256),
        flags + go + request + os.urandom(4096),
        flags + go + struct.pack(">IHHQQI", 0x25609513, 0, 1, 1, 0, 0xFFFFFFFF),
    ])


def connect(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(5)
    sock.connect(path)
    sock.setblocking(False)
    return sock


def send(sock):
    try:
        sock.send(garbage())
    except OSError:
        pass


def main():
    path, silent, garbled = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    # All at once, in turn.
    crowd = [connect(path) for _ in range(silent + garbled)]
    quiet, loud = crowd[:silent], crowd[silent:]
    for sock in loud:
        send(sock)
    for sock in loud:
        sock.close()
    print("ready", flush=True)
    sent = garbled
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        loud = [connect(path) for _ in range(16)]
        for sock in loud:
            send(sock)
        sent += len(loud)
        for sock in loud:
            try:
                sock.recv(65536)
            except OSError:
                pass
            sock.close()
    print(f"{sent} times garbage, {len(quiet)} silent", flush=True)


main()
