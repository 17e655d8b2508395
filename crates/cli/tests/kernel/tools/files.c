// SPDX-License-Identifier: MIT OR Apache-2.0
// Changes files one after the other, each change fsynced before the next, and says which are; after a crash, checks
// that the files are as some change, not before the last one known to be durable, has left them.
//
//     files write DIR FIRST           until the machine stops; "@@ flushed N" goes to the kernel's log: every change
//                                     from FIRST to N is durable
//     files check DIR FIRST FLUSHED   what such a run left: status 1 if it is not all that of a change and those
//                                     before it, with at most a part of the next one
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// AHEAD: so far a run may have come beyond what its console has shown when it is killed. The next begins beyond that.
enum { BLOCK = 4096, FILES = 48, MOST = 64, AHEAD = 900 };
enum kind { PUT, REPLACE, DELETE };

// Each block holds the number of the change that wrote it. LENGTH is in blocks, and -1 if there is no file.
struct file {
    int length;
    uint64_t change[MOST];
};
struct change {
    enum kind kind;
    int file, at, blocks;
};

static struct file model[FILES], found[FILES];

static void die(const char *what) {
    perror(what);
    exit(2);
}

// What change `n` is, of files as the changes before it have left them. The first ones make every file anew, so that
// what older runs left need not be known.
static struct change change(uint64_t first, uint64_t n) {
    uint64_t x = n * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
    x ^= x >> 32;
    struct change c = {REPLACE, n - first, 0, 1 + x % 16};
    if (n - first < FILES)
        return c;
    c.file = x % FILES;
    int length = model[c.file].length, kind = x / 64 % 10;
    if (kind == 0 && length >= 0)
        c.kind = DELETE;
    else if (kind < 4 || length < 0)
        c.blocks = 1 + x / 1024 % (kind == 3 ? MOST : 16);
    else {
        c.kind = PUT;
        c.at = x / 1024 % (length + 1);
        if (c.at == MOST)
            c.at--;
        c.blocks = 1 + x / 65536 % 8;
        if (c.blocks > MOST - c.at)
            c.blocks = MOST - c.at;
    }
    return c;
}

static void apply(struct change c, uint64_t n) {
    struct file *file = &model[c.file];
    if (c.kind == DELETE) {
        file->length = -1;
        return;
    }
    for (int i = c.at; i < c.at + c.blocks; i++)
        file->change[i] = n;
    if (c.kind == REPLACE || file->length < c.at + c.blocks)
        file->length = c.at + c.blocks;
}

static void name(char *at, int file) { sprintf(at, "%d", file); }

// Makes a change, and waits until it is durable if `durable`.
static void make(int dir, struct change c, uint64_t n, int durable) {
    static uint64_t bytes[MOST * BLOCK / 8];
    char its[16];
    name(its, c.file);
    if (c.kind == DELETE) {
        if (unlink(its))
            die(its);
    } else {
        int out = open(c.kind == PUT ? its : "new", O_WRONLY | O_CREAT, 0644);
        for (int i = 0; i < c.blocks * BLOCK / 8; i++)
            bytes[i] = n;
        if (out < 0 || ftruncate(out, c.kind == PUT ? model[c.file].length * BLOCK : 0) ||
            pwrite(out, bytes, c.blocks * BLOCK, c.at * BLOCK) != c.blocks * BLOCK || (durable && fsync(out)) ||
            close(out))
            die("write");
        if (c.kind == REPLACE && rename("new", its))
            die("rename");
    }
    if (durable && c.kind != PUT && fsync(dir))
        die("fsync");
}

static void run(int dir, uint64_t first) {
    int log = open("/dev/kmsg", O_WRONLY);
    for (uint64_t n = first;; n++) {
        struct change c = change(first, n);
        make(dir, c, n, n - first >= FILES);
        apply(c, n);
        if (n - first < FILES - 1)
            continue;
        if (n - first == FILES - 1)
            sync();
        // The full stop: a number that was cut off is not taken for another one.
        char line[48];
        int length = snprintf(line, sizeof line, "@@ flushed %llu.\n", (unsigned long long)n);
        if (write(log, line, length) != length)
            die("/dev/kmsg");
    }
}

static void look(void) {
    for (int at = 0; at < FILES; at++) {
        struct file *file = &found[at];
        static uint64_t block[BLOCK / 8];
        struct stat its;
        char path[16];
        name(path, at);
        file->length = -1;
        int in = open(path, O_RDONLY);
        if (in < 0 && errno == ENOENT)
            continue;
        if (in < 0 || fstat(in, &its))
            die(path);
        // No change leaves a part of a block, or of two changes: that is like nothing that is expected.
        file->length = its.st_size % BLOCK || its.st_size > MOST * BLOCK ? MOST + 1 : its.st_size / BLOCK;
        for (int i = 0; i < file->length && i < MOST; i++) {
            if (read(in, block, BLOCK) != BLOCK)
                die(path);
            file->change[i] = block[0];
            if (memcmp(block, block + 1, BLOCK - 8))
                file->change[i] = UINT64_MAX;
        }
        close(in);
    }
}

// same: is this file as the model has it, or as a part of the change `c` leaves it? A block that `c` puts may be lost: f2fs
// writes the node of an fsync before the flush that makes its data durable (f2fs_do_sync_file). A kill in between may
// leave a node whose blocks are zeros, behind the write pointer of their zone, or have what an older change left there.
static int same(int at, struct change c, uint64_t n) {
    struct file *is = &found[at], *was = &model[at];
    int its = at == c.file, put = its && c.kind == PUT, end = c.at + c.blocks;
    if (its && c.kind == DELETE && is->length == -1)
        return 1;
    if (its && c.kind == REPLACE && is->length == c.blocks && is->change[0] == n) {
        for (int i = 0; i < c.blocks; i++)
            if (is->change[i] != n)
                return 0;
        return 1;
    }
    if (is->length != was->length && !(put && is->length > was->length && is->length <= end))
        return 0;
    for (int i = 0; i < is->length; i++)
        if ((i >= was->length || is->change[i] != was->change[i]) &&
            !(put && i >= c.at && i < end && is->change[i] <= n))
            return 0;
    return 1;
}

// A file that is wrong, and its first blocks that are not as expected. Zeros are of change 0, and so is what is not there.
static void show(int at, struct change next, uint64_t n) {
    const struct file *is = &found[at], *was = &model[at];
    printf("file %d has %d blocks; expected %d", at, is->length, was->length);
    for (int i = 0, shown = 0; i < is->length && i < MOST && shown < 5; i++) {
        uint64_t expected = i < was->length ? was->change[i] : 0;
        if (is->change[i] != expected) {
            printf("; block %d is of change %lld, not %lld", i, (long long)is->change[i], (long long)expected);
            shown++;
        }
    }
    if (at == next.file)
        printf("; change %llu may have begun: %d blocks from %d on", (unsigned long long)n, next.blocks, next.at);
    printf("\n");
}

static int check(uint64_t first, uint64_t flushed) {
    // A change that can be seen began after all before it were durable.
    uint64_t durable = flushed, n = first;
    look();
    for (int at = 0; at < FILES; at++)
        for (int i = 0; i < found[at].length && i < MOST; i++)
            if (found[at].change[i] != UINT64_MAX && found[at].change[i] > durable + 1)
                durable = found[at].change[i] - 1;
    for (; n <= durable && n <= flushed + AHEAD; n++)
        apply(change(first, n), n);
    // What was deleted last cannot be seen.
    int least = FILES;
    for (int tries = 0; tries < 4; tries++, n++) {
        struct change next = change(first, n);
        int wrong = 0;
        for (int at = 0; at < FILES; at++)
            if (!same(at, next, n)) {
                wrong++;
                if (tries == 0 && wrong <= 5)
                    show(at, next, n);
            }
        if (wrong < least)
            least = wrong;
        if (!wrong) {
            printf("all as change %llu leaves it, %llu after the last that was known\n", (unsigned long long)n - 1,
                   (unsigned long long)(n - 1 - flushed));
            return 0;
        }
        apply(next, n);
    }
    printf("%d files wrong\n", least);
    return 1;
}

int main(int n, char **word) {
    int writes = n == 4 && !strcmp(word[1], "write");
    if (!writes && !(n == 5 && !strcmp(word[1], "check")))
        return 2;
    int dir = open(word[2], O_RDONLY | O_DIRECTORY);
    if (dir < 0 || fchdir(dir))
        die(word[2]);
    uint64_t first = strtoull(word[3], NULL, 10);
    for (int i = 0; i < FILES; i++)
        model[i].length = -1;
    if (writes)
        run(dir, first);
    return check(first, strtoull(word[4], NULL, 10));
}
