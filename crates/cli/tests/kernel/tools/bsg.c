// SPDX-License-Identifier: MIT OR Apache-2.0
// What no file of Linux offers, by /dev/bsg/ufs-bsg0: requests to the device that are not commands.
//
//     bsg read-attribute IDN          prints the value
//     bsg write-attribute IDN VALUE
//     bsg task FUNCTION LUN TAG       task management; prints the service response
//
// Numbers in C's notation. Status 1: the device refused; the query's response code is printed.
#include <fcntl.h>
#include <linux/bsg.h>
#include <scsi/sg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

// ufs_bsg_request and ufs_bsg_reply of the kernel's scsi_bsg_ufs.h, which C libraries do not bring.
struct request { uint32_t code; uint8_t upiu[32]; };
struct reply { int32_t result; uint32_t bytes; uint8_t upiu[32]; };

static void put(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = value >> (24 - 8 * i);
}
static uint32_t get(const uint8_t *at) { return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]; }

int main(int n, char **word) {
    struct request request = {0};
    struct reply reply = {0};
    uint32_t number[3] = {0};
    for (int i = 2; i < n && i < 5; i++)
        number[i - 2] = strtoul(word[i], NULL, 0);
    uint8_t *upiu = request.upiu;
    int is_task = n == 5 && !strcmp(word[1], "task");
    int writes = n == 4 && !strcmp(word[1], "write-attribute");
    if (is_task) {
        upiu[0] = 0x04;
        upiu[2] = number[1];
        upiu[5] = number[0];
        put(upiu + 12, number[1]);
        put(upiu + 16, number[2]);
    } else if (writes || (n == 3 && !strcmp(word[1], "read-attribute"))) {
        upiu[0] = 0x16;
        upiu[5] = writes ? 0x81 : 0x01;
        upiu[12] = writes ? 0x04 : 0x03;
        upiu[13] = number[0];
        put(upiu + 20, number[1]);
    } else
        return 2;
    request.code = upiu[0];
    int node = open("/dev/bsg/ufs-bsg0", O_RDWR);
    struct sg_io_v4 io = {
        .guard = 'Q',
        .protocol = BSG_PROTOCOL_SCSI,
        .subprotocol = BSG_SUB_PROTOCOL_SCSI_TRANSPORT,
        .request_len = sizeof request,
        .request = (uintptr_t)&request,
        .max_response_len = sizeof reply,
        .response = (uintptr_t)&reply,
    };
    if (node < 0 || ioctl(node, SG_IO, &io) < 0) {
        perror("ufs-bsg0");
        return 2;
    }
    if (is_task) {
        // A controller that has no such request leaves the kernel's buffer as it was.
        if (reply.result != 0 || (reply.upiu[0] & 0x3F) != 0x24) {
            puts("none");
            return 1;
        }
        printf("0x%02x\n", get(reply.upiu + 12) & 0xFF);
        return 0;
    }
    int refused = reply.result != 0 || reply.upiu[6] != 0;
    printf("0x%x\n", refused ? reply.upiu[6] : get(reply.upiu + 20));
    return refused;
}
