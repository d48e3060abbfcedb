/* A command-line program: text on standard input, JSON on standard output. toolcell.toml makes a tool of it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"

static void print_json_text(const char *text, size_t bytes) {
    putchar('"');
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') printf("\\%c", c);
        else if (c < 0x20) printf("\\u%04x", c);
        else putchar(c);
    }
    putchar('"');
}

/* All of standard input; NULL where there is no memory for it. */
static char *read_all(size_t *bytes) {
    size_t room = 1 << 16;
    char *text = malloc(room);
    *bytes = 0;
    while (text) {
        *bytes += fread(text + *bytes, 1, room - *bytes, stdin);
        if (*bytes < room) break;
        char *larger = realloc(text, room *= 2);
        if (!larger) free(text);
        text = larger;
    }
    return text;
}

int main(int argc, char **argv) {
    long min_length = 1;
    if (argc == 3 && !strcmp(argv[1], "--min-length")) min_length = strtol(argv[2], NULL, 10);
    if ((argc != 1 && argc != 3) || min_length < 1) {
        fprintf(stderr, "usage: %s [--min-length N] < TEXT; N is 1 or more\n", argv[0]);
        return 1;
    }
    size_t bytes;
    char *text = read_all(&bytes);
    if (!text) {
        fputs("the text does not fit into memory\n", stderr);
        return 1;
    }
    struct counts counts = count(text, bytes, (size_t)min_length);
    printf("{\"lines\":%zu,\"words\":%zu", counts.lines, counts.words);
    if (counts.longest) {
        fputs(",\"longest\":", stdout);
        print_json_text(counts.longest, counts.longest_bytes);
    }
    puts("}");
    free(text);
    return 0;
}
