// SPDX-License-Identifier: MIT OR Apache-2.0
// Sends the same random commands to two zoned devices of the same shape, through their generic nodes, and compares
// status, sense data and what is returned: zones NODE NODE COMMANDS SEED. Prints what differs; status 1 if anything does.
#include <fcntl.h>
#include <scsi/sg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BLOCK = 4096, MOST = 64, REPORT = 64 * 4096 };

static uint64_t state;
static uint32_t below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

struct answer {
    int status;
    unsigned key, asc, ascq;
    unsigned char data[REPORT];
};

static void put(unsigned char *at, uint64_t value, int bytes) {
    for (int i = bytes; i--; value >>= 8) at[i] = value;
}
static uint64_t get(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | at[i];
    return value;
}

// Sends a command of 10 or 16 bytes; `in` and `out` are bytes that it moves.
static void send_to(int fd, unsigned char *cdb, unsigned in, unsigned out, unsigned char *from, struct answer *a) {
    unsigned char sense[32] = {0};
    sg_io_hdr_t io = {.interface_id = 'S', .cmd_len = cdb[0] < 0x60 ? 10 : 16, .cmdp = cdb, .sbp = sense,
                      .mx_sb_len = sizeof sense, .timeout = 60000};
    memset(a, 0, sizeof *a);
    io.dxfer_direction = in ? SG_DXFER_FROM_DEV : out ? SG_DXFER_TO_DEV : SG_DXFER_NONE;
    io.dxfer_len = in ? in : out;
    io.dxferp = in ? a->data : from;
    if (ioctl(fd, SG_IO, &io) < 0 || io.host_status) {
        a->status = -1;
        return;
    }
    a->status = io.status;
    if (io.sb_len_wr) {
        int descriptors = (sense[0] & 0x7f) >= 0x72;
        a->key = sense[descriptors ? 1 : 2] & 15;
        a->asc = sense[descriptors ? 2 : 12];
        a->ascq = sense[descriptors ? 3 : 13];
    }
    // SAME, which says whether all zones are alike: scsi_debug never fills it in.
    if (cdb[0] == 0x95) a->data[4] = 0;
}

// From the start of a zone to the start of the next, and what may be written of it; descriptors are of zones and gaps.
static uint64_t last, zone, capacity;
static unsigned zones, descriptors;

static void report(int fd, struct answer *a) {
    unsigned char cdb[16] = {0x95};
    put(cdb + 10, 64 + 64 * descriptors, 4);
    send_to(fd, cdb, 64 + 64 * descriptors, 0, NULL, a);
}

// A command that moves blocks, or flushes some, in one of its two lengths.
static void of_blocks(unsigned char *cdb, int ten, int sixteen, uint64_t lba, unsigned blocks) {
    int is_short = !below(3);
    cdb[0] = is_short ? ten : sixteen;
    put(cdb + 2, lba, is_short ? 4 : 8);
    put(cdb + (is_short ? 7 : 10), blocks, is_short ? 2 : 4);
}

int main(int argc, char **argv) {
    static struct answer a, b, now;
    static unsigned char out[MOST * BLOCK];
    int differ = 0, good = 0, refused = 0;
    if (argc != 5) return 2;
    int first = open(argv[1], O_RDWR), second = open(argv[2], O_RDWR);
    int commands = atoi(argv[3]);
    state = atoi(argv[4]);
    if (first < 0 || second < 0) return 2;
    // The first commands may report that the device was switched on.
    descriptors = 1;
    for (int i = 0; i < 4; i++) report(first, &a), report(second, &b);
    last = get(a.data + 8, 8);
    capacity = get(a.data + 64 + 8, 8);
    zone = get(a.data + 16, 8) ? get(a.data + 16, 8) : capacity;
    if (a.status || b.status || !zone || memcmp(a.data + 8, b.data + 8, 16) || capacity != get(b.data + 64 + 8, 8)) {
        printf("they have other zones: %d %d\n", a.status, b.status);
        return 1;
    }
    zones = (last + 1) / zone;
    int gaps = capacity < zone;
    descriptors = zones << gaps;
    for (int i = 0; i < commands && differ < 20; i++) {
        unsigned char cdb[16] = {0};
        unsigned in = 0, bytes = 0, which = below(zones), kind = below(100), blocks;
        uint64_t start = which * zone;
        int gap = 0;
        if (kind < 42) {
            // Mostly at the write pointer, or near its end.
            report(first, &now);
            uint64_t pointer = get(now.data + 64 + 64 * (which << gaps) + 24, 8);
            blocks = 1 + below(below(4) ? 8 : MOST);
            if (!below(6)) pointer = start + below(zone + 8);
            if (!below(20)) pointer = start + capacity - below(9);
            if (!below(12)) blocks = MOST;
            of_blocks(cdb, 0x2A, 0x8A, pointer, blocks);
            // FUA.
            if (!below(4)) cdb[1] |= 8;
            bytes = blocks * BLOCK;
            for (unsigned at = 0; at < bytes; at += 4) put(out + at, i, 4);
        } else if (kind < 55) {
            uint64_t lba = below(20) ? below(last + 1) : last - below(4);
            blocks = 1 + below(MOST);
            of_blocks(cdb, 0x28, 0x88, lba, blocks);
            gap = lba + blocks <= last + 1 && (lba % zone >= capacity || (lba + blocks - 1) % zone >= capacity);
            if (!below(4)) cdb[1] |= 8;
            in = blocks * BLOCK;
        } else if (kind < 60) {
            // To the end, for a count of 0.
            blocks = below(3) ? below(2 * MOST) : 0;
            of_blocks(cdb, 0x35, 0x91, below(20) ? below(last + 1) : last - below(4), blocks);
        } else if (kind < 90) {
            cdb[0] = 0x94, cdb[1] = 1 + below(4);
            if (!below(10)) start += 1 + below(zone - 1);
            if (gaps && !below(20)) start = which * zone + capacity;
            if (!below(30)) start = last + 1 + below(9);
            put(cdb + 2, start, 8);
            cdb[14] = !below(25);
            // To open all that are closed, a device may have to close others, and it is free to choose. scsi_debug opens
            // some of those again.
            if (cdb[1] == 3 && cdb[14]) {
                report(first, &now);
                for (unsigned at = 0; at < descriptors; at++)
                    if (now.data[64 + 64 * at + 1] == 0x20) cdb[14] = 0;
            }
            gap = !cdb[14] && start % zone == capacity && start <= last ? 2 : 0;
        } else {
            static const unsigned char options[] = {0, 1, 2, 3, 4, 5, 6, 7, 0x10, 0x11, 0x3E, 0x3F, 0x08, 0x12};
            unsigned allocated = below(3) ? 64 + 64 * descriptors : 64 * (1 + below(8));
            cdb[0] = 0x95, put(cdb + 2, below(20) ? below(last + 1) : last + 1 + below(3), 8);
            put(cdb + 10, allocated, 4);
            cdb[14] = options[below(sizeof options)] | (below(2) ? 0x80 : 0);
            in = allocated;
        }
        send_to(first, cdb, in, bytes, out, &a);
        if (gap) {
            // scsi_debug reads gaps, and opens them. ZBC-2 refuses both: a read for the gap, the other as no start of
            // a zone.
            memset(&b, 0, sizeof b);
            b.status = 2, b.key = 5, b.asc = gap == 1 ? 0x21 : 0x24, b.ascq = gap == 1 ? 9 : 0;
        } else {
            send_to(second, cdb, in, bytes, out, &b);
        }
        a.status ? refused++ : good++;
        int same = a.status == b.status && a.key == b.key && a.asc == b.asc && a.ascq == b.ascq;
        // Of reports the bytes that belong to the list, of reads all.
        unsigned shown = a.status ? 0 : in;
        if (cdb[0] == 0x95 && shown > 64 + get(a.data, 4)) shown = 64 + get(a.data, 4);
        same = same && !memcmp(a.data, b.data, shown);
        if (same) {
            report(first, &a), report(second, &b);
            same = !memcmp(a.data, b.data, 64 + 64 * descriptors);
        }
        if (!same) {
            differ++;
            printf("%d:", i);
            for (int at = 0; at < 16; at++) printf(" %02x", cdb[at]);
            printf(" -> %d %x/%02x/%02x, %d %x/%02x/%02x", a.status, a.key, a.asc, a.ascq, b.status, b.key, b.asc, b.ascq);
            for (unsigned at = 0; at < sizeof a.data; at++)
                if (a.data[at] != b.data[at]) {
                    printf(", byte %u: %02x %02x", at, a.data[at], b.data[at]);
                    break;
                }
            printf("\n");
        }
    }
    printf("%d commands went well, %d were refused, %d differ\n", good, refused, differ);
    return differ || !good || !refused;
}
