// SPDX-License-Identifier: MIT OR Apache-2.0
// A host of RPMB: makes messages (JESD220), sends them by SG_IO to the well-known logical unit (SPC-4, SECURITY
// PROTOCOL OUT and IN), and checks the type, address, nonce and code of each response. It shares nothing with the
// device: its HMAC-SHA-256 is its own (FIPS 180-4, RFC 2104). Prints one line: the result, and what came with it.
//
//     rpmb NODE key                           programs the key of RPMB_KEY (64 hexadecimal digits)
//     rpmb NODE other-key                     tries to program another one
//     rpmb NODE counter                       the write counter
//     rpmb NODE write ADDRESS BLOCKS STAMP    blocks that say STAMP; the message is left in /tmp/message
//     rpmb NODE forge ADDRESS BLOCKS STAMP    the same, signed with another key
//     rpmb NODE alter ADDRESS BLOCKS STAMP    the same, and a bit of data is another after it was signed
//     rpmb NODE replay FILE                   sends a message once more
//     rpmb NODE read ADDRESS BLOCKS           the stamps of blocks; 0 is a block of zeros
//     rpmb NODE fill                          writes until the machine stops; "@@ acknowledged C." goes to the kernel's
//                                             log: the device has said that the write with counter C is done
//     rpmb NODE check FIRST                   what such runs left after counter FIRST: status 1 if a block is not what
//                                             the last write to it was, up to the counter that the device says
#include <fcntl.h>
#include <scsi/sg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

// One frame more than a device takes, to see it refused.
enum { FRAME = 512, BLOCK = 256, MOST = 64, FRAMES = MOST + 1, SIGNED_FROM = 228, SIGNED = 284 };
enum { MAC = 196, DATA = 228, NONCE = 484, COUNTER = 500, ADDRESS = 504, COUNT = 506, RESULT = 508, TYPE = 510 };
enum { PROGRAM_KEY = 1, READ_COUNTER, WRITE, READ, READ_RESULT };
enum { NO_KEY = 7 };
// What fill writes.
enum { AREA = 256, AREA_FROM = 8192 };

static const char *results[] = {"ok",           "general failure", "authentication failure", "counter failure",
                                "address failure", "write failure", "read failure",           "no key"};
static int node;
static uint8_t key[32];
static uint8_t message[FRAMES * FRAME];

static void die(const char *what) {
    perror(what);
    exit(2);
}
static void broken(const char *what) {
    printf("broken: %s\n", what);
    exit(1);
}

static void put(uint8_t *at, unsigned bytes, uint32_t value) {
    for (unsigned i = 0; i < bytes; i++)
        at[i] = value >> (8 * (bytes - 1 - i));
}
static uint32_t get(const uint8_t *at, unsigned bytes) {
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

// ---- Codes.

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, unsigned by) { return x >> by | x << (32 - by); }

static void sha256(const uint8_t *bytes, size_t length, uint8_t *digest) {
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    size_t blocks = (length + 8) / 64 + 1;
    for (size_t block = 0; block < blocks; block++) {
        uint32_t w[64], v[8];
        for (unsigned i = 0; i < 16; i++) {
            w[i] = 0;
            for (size_t at = block * 64 + i * 4; at < block * 64 + i * 4 + 4; at++)
                w[i] = w[i] << 8 | (at < length ? bytes[at] : at == length ? 0x80 : 0);
        }
        if (block == blocks - 1)
            w[15] = length * 8;
        for (unsigned i = 16; i < 64; i++) {
            uint32_t a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
        }
        memcpy(v, state, sizeof v);
        for (unsigned i = 0; i < 64; i++) {
            uint32_t a = v[0], e = v[4];
            uint32_t one = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + K[i] + w[i];
            uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
            memmove(v + 1, v, 7 * sizeof *v);
            v[0] = one + two;
            v[4] += one;
        }
        for (unsigned i = 0; i < 8; i++)
            state[i] += v[i];
    }
    for (unsigned i = 0; i < 8; i++)
        put(digest + 4 * i, 4, state[i]);
}

// The code over so many frames, which stands in the last of them.
static void code(const uint8_t *frames, unsigned count, uint8_t *digest) {
    static uint8_t inner[64 + FRAMES * SIGNED];
    uint8_t outer[64 + 32];
    for (unsigned i = 0; i < 64; i++) {
        uint8_t byte = i < sizeof key ? key[i] : 0;
        inner[i] = byte ^ 0x36;
        outer[i] = byte ^ 0x5c;
    }
    for (unsigned i = 0; i < count; i++)
        memcpy(inner + 64 + i * SIGNED, frames + i * FRAME + SIGNED_FROM, SIGNED);
    sha256(inner, 64 + count * SIGNED, outer + 64);
    sha256(outer, sizeof outer, digest);
}

// ---- Messages.

static void command(int is_out, uint8_t *data, unsigned bytes) {
    uint8_t sense[32] = {0};
    uint8_t cdb[12] = {is_out ? 0xB5 : 0xA2, 0xEC, 0, 1};
    put(cdb + 6, 4, bytes);
    struct sg_io_hdr io = {
        .interface_id = 'S',
        .dxfer_direction = is_out ? SG_DXFER_TO_DEV : SG_DXFER_FROM_DEV,
        .cmd_len = sizeof cdb,
        .cmdp = cdb,
        .dxfer_len = bytes,
        .dxferp = data,
        .mx_sb_len = sizeof sense,
        .sbp = sense,
        .timeout = 20000,
    };
    if (ioctl(node, SG_IO, &io) < 0)
        die("SG_IO");
    if ((io.info & SG_INFO_OK_MASK) != SG_INFO_OK) {
        printf("command %02X: status %02X, host %X, sense %02X/%02X/%02X\n", cdb[0], io.status, io.host_status,
               sense[2] & 0x0F, sense[12], sense[13]);
        exit(1);
    }
}

static void request(uint8_t *frame, unsigned type) {
    memset(frame, 0, FRAME);
    put(frame + TYPE, 2, type);
}

// Fetches the response to a request of such a type, as so many frames, and checks all but its result.
static unsigned response(uint8_t *frames, unsigned type, unsigned count) {
    memset(frames, 0, count * FRAME);
    command(0, frames, count * FRAME);
    uint8_t digest[32];
    unsigned result = get(frames + RESULT, 2);
    // Only the first is there if the request was refused.
    unsigned there = result == 0 ? count : 1;
    for (unsigned i = 0; i < there; i++)
        if (get(frames + i * FRAME + TYPE, 2) != type << 8 || get(frames + i * FRAME + RESULT, 2) != result)
            broken("type or result");
    code(frames, there, digest);
    if (type != PROGRAM_KEY && result != NO_KEY && memcmp(frames + (there - 1) * FRAME + MAC, digest, sizeof digest))
        broken("the code of the response");
    return result;
}

// Sends what is to be programmed, and asks for its result.
static unsigned program(unsigned frames, uint8_t *answer) {
    unsigned type = get(message + TYPE, 2);
    uint8_t ask[FRAME];
    command(1, message, frames * FRAME);
    request(ask, READ_RESULT);
    command(1, ask, FRAME);
    unsigned result = response(answer, type, 1);
    if (type == WRITE && get(answer + ADDRESS, 2) != get(message + ADDRESS, 2))
        broken("the address of the response");
    return result;
}

// Sends a request that has a nonce, and fetches its response.
static unsigned ask(uint8_t *frame, unsigned count, uint8_t *answer) {
    // A nonce has to be another one, not a secret, and a machine that has just started would wait for a second.
    if (getrandom(frame + NONCE, 16, GRND_INSECURE) != 16)
        die("getrandom");
    command(1, frame, FRAME);
    unsigned result = response(answer, get(frame + TYPE, 2), count);
    if (memcmp(answer + NONCE, frame + NONCE, 16))
        broken("the nonce of the response");
    return result;
}

static unsigned read_counter(uint32_t *counter) {
    uint8_t frame[FRAME], answer[FRAME];
    request(frame, READ_COUNTER);
    unsigned result = ask(frame, 1, answer);
    *counter = get(answer + COUNTER, 4);
    return result;
}

static unsigned read_blocks(unsigned address, unsigned count, uint8_t *answer) {
    uint8_t frame[FRAME];
    request(frame, READ);
    put(frame + ADDRESS, 2, address);
    put(frame + COUNT, 2, count);
    unsigned result = ask(frame, count, answer);
    for (unsigned i = 0; i < (result == 0 ? count : 1); i++)
        if (get(answer + i * FRAME + ADDRESS, 2) != address || get(answer + i * FRAME + COUNT, 2) != count)
            broken("address or number of blocks of the response");
    return result;
}

// A block tells its stamp and its place; that of stamp 0 is zeros.
static void fill_block(uint8_t *data, uint32_t stamp, unsigned address) {
    memset(data, 0, BLOCK);
    uint64_t x = (uint64_t)stamp << 16 | address;
    for (unsigned i = 0; stamp != 0 && i < BLOCK; i += 4) {
        put(data + i, 4, i == 0 ? stamp : x >> 32);
        x = x * 6364136223846793005u + 1442695040888963407u;
    }
}
static int has_stamp(const uint8_t *data, uint32_t stamp, unsigned address) {
    uint8_t expected[BLOCK];
    fill_block(expected, stamp, address);
    return !memcmp(data, expected, BLOCK);
}

static void make_write(unsigned address, unsigned count, uint32_t stamp, uint32_t counter) {
    for (unsigned i = 0; i < count; i++) {
        uint8_t *frame = message + i * FRAME;
        request(frame, WRITE);
        fill_block(frame + DATA, stamp, address + i);
        put(frame + COUNTER, 4, counter);
        put(frame + ADDRESS, 2, address);
        put(frame + COUNT, 2, count);
    }
    code(message, count, message + (count - 1) * FRAME + MAC);
}

// ---- Runs that are killed.

// Where the write that makes the counter C goes, and how many blocks it has. One of four has as many as there can be.
static unsigned place(uint32_t counter, unsigned *count) {
    uint64_t x = counter * 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    *count = x >> 62 == 0 ? MOST : 2 + (x >> 40) % 15;
    return (x >> 20) % (AREA - *count + 1);
}

static _Noreturn void fill(void) {
    int log = open("/dev/kmsg", O_WRONLY);
    uint32_t counter;
    if (read_counter(&counter))
        broken("the counter cannot be read");
    for (;;) {
        unsigned count, at = place(counter + 1, &count);
        uint8_t answer[FRAME];
        make_write(AREA_FROM + at, count, counter + 1, counter);
        if (program(count, answer) || get(answer + COUNTER, 4) != counter + 1)
            broken("the write");
        counter++;
        // The full stop: a number that was cut off is not taken for another one.
        char line[48];
        int length = snprintf(line, sizeof line, "@@ acknowledged %u.\n", counter);
        if (write(log, line, length) != length)
            die("/dev/kmsg");
    }
}

static int check(uint32_t first) {
    static uint8_t answer[MOST * FRAME];
    uint32_t last[AREA] = {0}, counter;
    unsigned wrong = 0;
    if (read_counter(&counter))
        broken("the counter cannot be read");
    for (uint32_t stamp = first + 1; stamp <= counter; stamp++) {
        unsigned count, at = place(stamp, &count);
        for (unsigned i = 0; i < count; i++)
            last[at + i] = stamp;
    }
    for (unsigned from = 0; from < AREA; from += MOST) {
        if (read_blocks(AREA_FROM + from, MOST, answer))
            broken("blocks cannot be read");
        for (unsigned i = 0; i < MOST; i++) {
            const uint8_t *data = answer + i * FRAME + DATA;
            unsigned address = AREA_FROM + from + i;
            if (has_stamp(data, last[from + i], address))
                continue;
            if (wrong++ < 5)
                fprintf(stderr, "block %u: %u%s, and the last write up to the counter was %u\n", address, get(data, 4),
                        has_stamp(data, get(data, 4), address) ? "" : ", of several writes", last[from + i]);
        }
    }
    printf("counter %u, %u of %u blocks wrong\n", counter, wrong, AREA);
    return wrong > 0;
}

// ---- Verbs.

static int show_write(unsigned frames) {
    uint8_t answer[FRAME];
    unsigned result = program(frames, answer);
    printf("%s, counter %u\n", result < 8 ? results[result] : "unknown", get(answer + COUNTER, 4));
    return 0;
}

static int show_read(unsigned address, unsigned count) {
    static uint8_t answer[FRAMES * FRAME];
    unsigned result = read_blocks(address, count, answer);
    printf("%s", result < 8 ? results[result] : "unknown");
    for (unsigned i = 0, same = 1; result == 0 && i < count; i++, same++) {
        const uint8_t *data = answer + i * FRAME + DATA;
        uint32_t stamp = get(data, 4);
        if (!has_stamp(data, stamp, address + i))
            broken("a block is of no write");
        if (i + 1 < count && get(data + FRAME, 4) == stamp)
            continue;
        printf(", %u x %u", same, stamp);
        same = 0;
    }
    puts("");
    return 0;
}

static int replay(const char *name) {
    int file = open(name, O_RDONLY);
    ssize_t bytes = read(file, message, sizeof message);
    if (bytes < FRAME || bytes % FRAME)
        die(name);
    return show_write(bytes / FRAME);
}

static int do_write(const char *how, unsigned address, unsigned count, uint32_t stamp) {
    uint32_t counter;
    read_counter(&counter);
    key[0] ^= !strcmp(how, "forge");
    make_write(address, count, stamp, counter);
    key[0] ^= !strcmp(how, "forge");
    message[DATA + 7] ^= !strcmp(how, "alter");
    int file = open("/tmp/message", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (write(file, message, count * FRAME) != (ssize_t)(count * FRAME) || close(file))
        die("/tmp/message");
    return show_write(count);
}

int main(int n, char **word) {
    const char *verb = n > 2 ? word[2] : "";
    const char *hex = getenv("RPMB_KEY");
    unsigned number[3] = {0};
    uint32_t counter;
    for (int i = 3; i < n && i < 6; i++)
        number[i - 3] = strtoul(word[i], NULL, 10);
    if (n < 3 || !hex || strlen(hex) != 2 * sizeof key || number[1] > FRAMES)
        return 2;
    for (unsigned i = 0; i < sizeof key; i++)
        sscanf(hex + 2 * i, "%2hhx", key + i);
    node = open(word[1], O_RDWR);
    if (node < 0)
        die(word[1]);
    if (n == 3 && (!strcmp(verb, "key") || !strcmp(verb, "other-key"))) {
        uint8_t answer[FRAME];
        request(message, PROGRAM_KEY);
        memcpy(message + MAC, key, sizeof key);
        message[MAC] ^= verb[0] == 'o';
        unsigned result = program(1, answer);
        puts(result < 8 ? results[result] : "unknown");
        return 0;
    }
    if (n == 3 && !strcmp(verb, "counter")) {
        unsigned result = read_counter(&counter);
        printf("%s, counter %u\n", result < 8 ? results[result] : "unknown", counter);
        return 0;
    }
    if (n == 6 && number[1] > 0 && (!strcmp(verb, "write") || !strcmp(verb, "forge") || !strcmp(verb, "alter")))
        return do_write(verb, number[0], number[1], number[2]);
    if (n == 5 && number[1] > 0 && !strcmp(verb, "read"))
        return show_read(number[0], number[1]);
    if (n == 4 && !strcmp(verb, "replay"))
        return replay(word[3]);
    if (n == 3 && !strcmp(verb, "fill"))
        fill();
    if (n == 4 && !strcmp(verb, "check"))
        return check(number[0]);
    return 2;
}
