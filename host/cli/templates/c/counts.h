/* Counting. Knows nothing of tools. */

#ifndef COUNTS_H
#define COUNTS_H

#include <stddef.h>

struct counts {
    size_t lines;
    size_t words;
    const char *longest; /* into the text, `longest_bytes` long; NULL where there are no words */
    size_t longest_bytes;
};

/* Counts words of at least `min_length` characters of UTF-8. */
struct counts count(const char *text, size_t bytes, size_t min_length);

#endif
