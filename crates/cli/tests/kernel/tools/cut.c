// SPDX-License-Identifier: MIT OR Apache-2.0
// Kills the program that it is loaded into (LD_PRELOAD) at one chosen write to a file. CUT has decimal numbers:
//
//     CUT=COUNT:RECORDS:END:FROM:TO:PLACE    counts writes that begin at offsets RECORDS to END; from number COUNT on,
//                                            the first write that begins at FROM to TO is done up to a multiple of
//                                            PLACE bytes in its middle: a kill leaves whole pages of memory (4096), a
//                                            power cut whole sectors (512)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    static long long left, records, end, from, to, place;
    if (!real) {
        real = (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
        const char *cut = getenv("CUT");
        if (!cut || sscanf(cut, "%lld:%lld:%lld:%lld:%lld:%lld", &left, &records, &end, &from, &to, &place) != 6)
            abort();
    }
    left -= at >= records && at < end;
    if (left <= 0 && at >= from && at < to) {
        off64_t middle = (at + length / 2) / place * place;
        if (middle > at && real(file, bytes, middle - at, at) < 0)
            perror("pwrite64");
        kill(getpid(), SIGKILL);
    }
    return real(file, bytes, length, at);
}
