// SPDX-License-Identifier: MIT OR Apache-2.0
// Writes blocks whose content says which write they are of, and says which writes are flushed; after a crash, checks
// them.
//
//     stamps write DEVICE FIRST           until the machine stops; "@@ flushed N" goes to the kernel's log: every stamp
//                                         from FIRST to N is durable
//     stamps check DEVICE FIRST FLUSHED   what such a run left: status 1 if a block holds anything but one whole write
//                                         that is not older than the last one known to be durable
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// AHEAD: so far a run may have come beyond what its console has shown when it is killed. The next begins beyond that.
enum { BLOCK = 4096, BLOCKS = 512, AT_ONCE = 48, AHEAD = 900 };
typedef uint64_t Block[BLOCK / 8];

// The first stamps fill the area in order, so that what older runs left need not be known.
static unsigned place(uint64_t first, uint64_t stamp) {
    if (stamp - first < BLOCKS)
        return stamp - first;
    uint64_t x = stamp * 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
    return x * 0xBF58476D1CE4E5B9u >> 55;
}

// Distances of 12 KiB: neighbours share neither a request nor a page of flash.
static off_t offset(unsigned block) { return (off_t)block * 3 * BLOCK; }

static void die(const char *what) {
    perror(what);
    exit(2);
}

static void run(int device, uint64_t first) {
    int log = open("/dev/kmsg", O_WRONLY);
    unsigned seed = first;
    for (uint64_t stamp = first;;) {
        uint64_t end = stamp < first + BLOCKS ? first + BLOCKS : stamp + 1 + rand_r(&seed) % AT_ONCE;
        for (; stamp < end; stamp++) {
            Block block;
            for (unsigned i = 0; i < BLOCK / 8; i++)
                block[i] = stamp;
            if (pwrite(device, block, BLOCK, offset(place(first, stamp))) != BLOCK)
                die("write");
        }
        if (fdatasync(device))
            die("fdatasync");
        // The full stop: a number that was cut off is not taken for another one.
        char line[48];
        int length = snprintf(line, sizeof line, "@@ flushed %llu.\n", (unsigned long long)stamp - 1);
        if (write(log, line, length) != length)
            die("/dev/kmsg");
    }
}

static int check(int device, uint64_t first, uint64_t flushed) {
    uint64_t least[BLOCKS] = {0};
    for (uint64_t stamp = first; stamp <= flushed; stamp++)
        least[place(first, stamp)] = stamp;
    unsigned wrong = 0, newer = 0;
    for (unsigned at = 0; at < BLOCKS; at++) {
        Block block;
        if (pread(device, block, BLOCK, offset(at)) != BLOCK)
            die("read");
        uint64_t stamp = block[0];
        unsigned same = 0;
        while (same < BLOCK / 8 && block[same] == stamp)
            same++;
        if (same < BLOCK / 8 || stamp < least[at] || stamp > flushed + AHEAD || place(first, stamp) != at) {
            if (wrong < 5)
                printf("block %u: %llu, and %llu is durable%s\n", at, (unsigned long long)stamp,
                       (unsigned long long)least[at], same < BLOCK / 8 ? "; it is of two writes" : "");
            wrong++;
        }
        newer += stamp > flushed;
    }
    printf("%u blocks wrong, %u newer than the last flush\n", wrong, newer);
    return wrong > 0;
}

int main(int n, char **word) {
    int writes = n == 4 && !strcmp(word[1], "write");
    if (!writes && !(n == 5 && !strcmp(word[1], "check")))
        return 2;
    int device = open(word[2], O_RDWR);
    if (device < 0)
        die(word[2]);
    uint64_t first = strtoull(word[3], NULL, 10);
    if (writes)
        run(device, first);
    return check(device, first, strtoull(word[4], NULL, 10));
}
