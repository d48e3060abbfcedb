/* A picture of bars, as PNG. Knows nothing of tools. */

#ifndef IMAGE_H
#define IMAGE_H

#include <stddef.h>

#define HEIGHT 100
#define BAR 8 /* pixels wide, one of them a gap */
#define VALUES_MAX 64
#define PNG_BYTES_MAX (HEIGHT * (1 + BAR * VALUES_MAX) + 128)

/* Writes a PNG of 1 to VALUES_MAX bars, each up to HEIGHT high, and returns its size. */
size_t draw_bars(const int *values, size_t count, unsigned char png[PNG_BYTES_MAX]);

#endif
