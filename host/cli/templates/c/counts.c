#include "counts.h"

#include <stdbool.h>

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Characters of UTF-8: bytes that do not go on with another one. */
static size_t characters(const char *text, size_t bytes) {
    size_t found = 0;
    for (size_t i = 0; i < bytes; i++) found += ((unsigned char)text[i] & 0xC0) != 0x80;
    return found;
}

struct counts count(const char *text, size_t bytes, size_t min_length) {
    struct counts counts = {0};
    size_t longest = 0;
    size_t at = 0;
    while (at < bytes) {
        if (is_space(text[at])) {
            counts.lines += text[at++] == '\n';
            continue;
        }
        size_t begin = at;
        while (at < bytes && !is_space(text[at])) at++;
        size_t length = characters(text + begin, at - begin);
        if (length < min_length) continue;
        counts.words++;
        if (length > longest) {
            longest = length;
            counts.longest = text + begin;
            counts.longest_bytes = at - begin;
        }
    }
    counts.lines += bytes > 0 && text[bytes - 1] != '\n';
    return counts;
}
