/* A command-line program: numbers as arguments, a PNG on standard output. toolcell.toml makes a tool of it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

int main(int argc, char **argv) {
    static unsigned char png[PNG_BYTES_MAX];
    int values[VALUES_MAX], first = argc > 1 && !strcmp(argv[1], "--") ? 2 : 1;
    if (argc - first < 1 || argc - first > VALUES_MAX) {
        fprintf(stderr, "usage: %s VALUE..., 1 to %d of them\n", argv[0], VALUES_MAX);
        return 1;
    }
    for (int i = first; i < argc; i++) {
        char *end;
        long value = strtol(argv[i], &end, 10);
        if (*end || end == argv[i] || value < 0 || value > HEIGHT) {
            fprintf(stderr, "\"%s\" is not a number from 0 to %d\n", argv[i], HEIGHT);
            return 1;
        }
        values[i - first] = (int)value;
    }
    size_t bytes = draw_bars(values, (size_t)(argc - first), png);
    return fwrite(png, 1, bytes, stdout) == bytes ? 0 : 1;
}
