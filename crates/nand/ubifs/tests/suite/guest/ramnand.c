// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
// A NAND in memory of any geometry: nandsim, which the other devices of these tests are, has no pages of 16 KiB. Pages are
// whole and have no errors; what was never programmed takes no memory.
#include <linux/module.h>
#include <linux/mtd/mtd.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

static unsigned int page = 16384;
static unsigned int block = 2 << 20;
static unsigned int blocks = 192;
module_param(page, uint, 0444);
module_param(block, uint, 0444);
module_param(blocks, uint, 0444);

static u8 **pages;
static struct mtd_info ram;

static int ram_read(struct mtd_info *mtd, loff_t from, size_t len, size_t *done, u_char *to)
{
	for (*done = 0; *done < len;) {
		u64 at = from + *done;
		u32 in_page = at % page;
		size_t n = min_t(size_t, len - *done, page - in_page);
		u8 *data = pages[(u32)(at / page)];

		if (data)
			memcpy(to + *done, data + in_page, n);
		else
			memset(to + *done, 0xFF, n);
		*done += n;
	}
	return 0;
}

static int ram_write(struct mtd_info *mtd, loff_t to, size_t len, size_t *done, const u_char *from)
{
	if ((u64)to % page || len % page)
		return -EINVAL;
	for (*done = 0; *done < len; *done += page) {
		u8 **data = &pages[(u32)((to + *done) / page)];

		if (*data)
			return -EIO;
		*data = kmemdup(from + *done, page, GFP_NOFS);
		if (!*data)
			return -ENOMEM;
	}
	return 0;
}

static int ram_erase(struct mtd_info *mtd, struct erase_info *what)
{
	u64 at;

	for (at = what->addr; at < what->addr + what->len; at += page) {
		kfree(pages[(u32)(at / page)]);
		pages[(u32)(at / page)] = NULL;
	}
	return 0;
}

static int ram_is_bad(struct mtd_info *mtd, loff_t at)
{
	return 0;
}

static int ram_mark_bad(struct mtd_info *mtd, loff_t at)
{
	return -EIO;
}

static int __init ram_init(void)
{
	pages = vzalloc(array_size((u64)block / page * blocks, sizeof(*pages)));
	if (!pages)
		return -ENOMEM;
	ram.name = "ramnand";
	ram.owner = THIS_MODULE;
	ram.type = MTD_NANDFLASH;
	ram.flags = MTD_CAP_NANDFLASH;
	ram.size = (u64)block * blocks;
	ram.erasesize = block;
	ram.writesize = page;
	ram.writebufsize = page;
	ram._read = ram_read;
	ram._write = ram_write;
	ram._erase = ram_erase;
	ram._block_isbad = ram_is_bad;
	ram._block_markbad = ram_mark_bad;
	return mtd_device_register(&ram, NULL, 0);
}

// It stays until the machine ends.
module_init(ram_init);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("NAND in memory for tests");
