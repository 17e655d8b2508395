// SPDX-License-Identifier: MIT OR Apache-2.0
// Kills the program that it is loaded into (LD_PRELOAD) at one chosen write to a file, as a power cut at that moment
// would. CUT has decimal numbers:
//
//     CUT=COUNT:RECORDS:END:FROM:TO    counts writes that begin at offsets RECORDS to END; from number COUNT on, the
//                                      first write that begins at FROM to TO is done up to a sector in its middle
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    static long long left, records, end, from, to;
    if (!real) {
        real = (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
        const char *cut = getenv("CUT");
        if (!cut || sscanf(cut, "%lld:%lld:%lld:%lld:%lld", &left, &records, &end, &from, &to) != 5)
            abort();
    }
    left -= at >= records && at < end;
    if (left <= 0 && at >= from && at < to) {
        off64_t middle = (at + length / 2) / 512 * 512;
        if (middle > at && real(file, bytes, middle - at, at) < 0)
            perror("pwrite64");
        kill(getpid(), SIGKILL);
    }
    return real(file, bytes, length, at);
}
