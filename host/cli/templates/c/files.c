#include "files.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The note's file: never one of another folder. False where the name is none. */
static int path_of(char *path, size_t bytes, const char *folder, const char *name) {
    size_t length = strlen(name);
    if (length < 1 || length > 64) return 0;
    for (const char *c = name; *c; c++) {
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_') return 0;
    }
    return snprintf(path, bytes, "%s/%s.txt", folder, name) < (int)bytes;
}

/* Copies to the end; false where a side fails. */
static int copy(FILE *from, FILE *to, size_t *copied) {
    char block[4096];
    for (size_t read; (read = fread(block, 1, sizeof block, from)) > 0; *copied += read) {
        if (fwrite(block, 1, read, to) != read) return 0;
    }
    return !ferror(from);
}

int run(const char *folder, int argc, char **argv, FILE *in, FILE *out) {
    char path[512];
    size_t copied = 0;
    int reads = argc == 3 && !strcmp(argv[1], "read");
    if (argc != 3 || (!reads && strcmp(argv[1], "write"))) {
        fputs("usage: tool read NAME, or: tool write NAME < TEXT\n", stderr);
        return 1;
    }
    if (!path_of(path, sizeof path, folder, argv[2])) {
        fprintf(stderr, "\"%s\" is not a name: 1 to 64 letters, digits, - and _\n", argv[2]);
        return 1;
    }
    FILE *file = fopen(path, reads ? "rb" : "wb");
    int done = file && (reads ? copy(file, out, &copied) : copy(in, file, &copied));
    if (file && fclose(file)) done = 0;
    if (!done) {
        fprintf(stderr, "the note %s cannot be %s\n", argv[2], reads ? "read" : "written");
        return 1;
    }
    if (!reads) fprintf(out, "%zu bytes are written\n", copied);
    return 0;
}
