#include "image.h"

#include <stdint.h>
#include <string.h>

static unsigned char *put(unsigned char *at, const void *data, size_t bytes) {
    memcpy(at, data, bytes);
    return at + bytes;
}

static unsigned char *put_u32(unsigned char *at, uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) *at++ = (unsigned char)(number >> shift);
    return at;
}

/* A chunk whose data stands behind the eight bytes of its head already. */
static unsigned char *end_chunk(unsigned char *chunk, const char *kind, size_t bytes) {
    put(put_u32(chunk, (uint32_t)bytes), kind, 4);
    uint32_t crc = ~0u;
    for (size_t i = 4; i < 8 + bytes; i++) {
        crc ^= chunk[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return put_u32(chunk + 8 + bytes, ~crc);
}

size_t draw_bars(const int *values, size_t count, unsigned char png[PNG_BYTES_MAX]) {
    unsigned char *at = put(png, "\x89PNG\r\n\x1a\n", 8);
    size_t width = BAR * count, bytes = HEIGHT * (1 + width);
    put(put_u32(put_u32(at + 8, (uint32_t)width), HEIGHT), "\x08\0\0\0\0", 5); /* 8 bits of grey */
    at = end_chunk(at, "IHDR", 13);
    /* zlib's format, with one stored block of at most 65,535 bytes. */
    unsigned char lengths[] = {0x78, 0x01, 1, bytes & 0xff, bytes >> 8 & 0xff, ~bytes & 0xff, ~bytes >> 8 & 0xff};
    unsigned char *chunk = at, *rows = put(at + 8, lengths, sizeof lengths), *row = rows;
    for (int y = 0; y < HEIGHT; y++) {
        *row++ = 0; /* no filter */
        for (size_t x = 0; x < width; x++) {
            *row++ = HEIGHT - y <= values[x / BAR] && x % BAR < BAR - 1 ? 0x30 : 0xff;
        }
    }
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < bytes; i++) {
        a = (a + rows[i]) % 65521;
        b = (b + a) % 65521;
    }
    at = end_chunk(chunk, "IDAT", (size_t)(put_u32(row, b << 16 | a) - (chunk + 8)));
    return (size_t)(end_chunk(at, "IEND", 0) - png);
}
